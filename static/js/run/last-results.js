/** The last results: this lesson on one instance and on three, and the lesson before it. */

import { $, el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { resultFigure } from './result-bars.js';

/** @typedef {{label: string, row: import('./result-bars.js').Row | null | undefined, href: string}} LastResult */

let lastDrawn = '';

/** @param {LastResult[]} all */
export function draw(all) {
  const now = JSON.stringify([all.map(({ label, row }) => [label, row]), t('language')]);
  if (lastDrawn === now) return;
  lastDrawn = now;
  const results = all.filter((one) => one.row);
  $('strip').hidden = results.length < 2;
  const rows = results.map((one) => /** @type {import('./result-bars.js').Row} */ (one.row));
  const full = Math.max(1, ...rows.map((row) => row.sold));
  const stores = new Set(rows.map((row) => row.store));
  $('strip').replaceChildren(...results.map(({ label, href }, i) => el('a', { href }, resultFigure(label, rows[i], full))),
    ...(stores.size > 1 ? [el('p', { class: 'dim' }, t('otherStores'))] : []));
}
