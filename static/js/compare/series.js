/** Series of runs, stored in this browser. */

import { localStore } from '../shared/storage.js';

/** @typedef {import('../run/result-bars.js').Row} Row */
/** @typedef {{id: string, name: string, at: string, settings: import('../page/address.js').Settings, rows: Row[]}} Series */

/** More may not fit in the browser's storage. */
const MAX_SERIES = 30;

/** @type {Series[]} newest first */
let stored = localStore.get('series') ?? [];

const save = () => localStore.set('series', stored);

/** @returns {Series[]} newest first */
export const all = () => stored;

/** @param {string} name @param {import('../page/address.js').Settings} settings @returns {Series} */
export function begin(name, settings) {
  const at = new Date().toISOString();
  const series = { id: at, name, at, settings, rows: [] };
  stored = [series, ...stored].slice(0, MAX_SERIES);
  save();
  return series;
}

/** @param {Series} series @param {Row} row */
export function add(series, row) {
  series.rows.push(row);
  save();
}

/** @param {Series} series @param {string} name */
export function rename(series, name) {
  series.name = name;
  save();
}

/** @param {Series} series */
export function remove(series) {
  stored = stored.filter((one) => one !== series);
  save();
}
