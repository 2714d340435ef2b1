/** Series of runs, kept in this browser: each has a name, its settings and its rows. */

import { always } from '../shared/storage.js';

/** @typedef {import('../run/result-bars.js').Row} Row */
/** @typedef {{id: string, name: string, at: string, settings: import('../page/address.js').Settings, rows: Row[]}} Series */

/** More than a browser's storage would hold otherwise. */
const MOST = 30;

/** @type {Series[]} the newest first */
let kept = always.get('series') ?? [];

const keep = () => always.set('series', kept);

/** @returns {Series[]} the newest first */
export const all = () => kept;

/** @param {string} name @param {import('../page/address.js').Settings} settings @returns {Series} */
export function begin(name, settings) {
  const at = new Date().toISOString();
  const series = { id: at, name, at, settings, rows: [] };
  kept = [series, ...kept].slice(0, MOST);
  keep();
  return series;
}

/** @param {Series} series @param {Row} row */
export function add(series, row) {
  series.rows.push(row);
  keep();
}

/** @param {Series} series @param {string} name */
export function rename(series, name) {
  series.name = name;
  keep();
}

/** @param {Series} series */
export function remove(series) {
  kept = kept.filter((one) => one !== series);
  keep();
}
