/** A result as three bars, sold, gone and their difference, with its text. */

import { el, svg } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';

/** The row of a finished run, as the service sends it. @typedef {Record<string, any>} Row */

const [WIDTH, BAR, GAP] = [160, 10, 4];

/** @param {Row} row @param {number} fullScale the number of the full width @returns {SVGElement} */
export function resultBars(row, fullScale) {
  const gone = row.before - row.after;
  const x = (/** @type {number} */ n) => (WIDTH * Math.max(0, n)) / Math.max(1, fullScale);
  const over = Math.max(0, row.oversold);
  return svg('svg', { class: 'multiple', viewBox: `0 0 ${WIDTH} ${3 * BAR + 2 * GAP}`, 'aria-hidden': 'true', preserveAspectRatio: 'none' },
    svg('rect', { width: x(row.sold), height: BAR }),
    svg('rect', { y: BAR + GAP, width: x(gone), height: BAR }),
    svg('rect', { class: 'over-bar', x: x(gone), y: 2 * (BAR + GAP), width: x(over), height: BAR, fill: 'url(#hatch)' }));
}

/** @param {string} label @param {Row} row @param {number} fullScale @returns {Element} */
export function resultFigure(label, row, fullScale) {
  return el('figure', { class: row.oversold > 0 ? 'small red' : 'small' },
    el('figcaption', {}, label), resultBars(row, fullScale),
    el('p', {}, resultText(row)), el('p', { class: 'dim' }, resultDetails(row)));
}

/** A run with errors proves nothing. @param {Row} row */
export const hasErrors = (row) => row.errors + row.unknown > 0;

/** @param {Row} row */
export function resultText(row) {
  if (row.oversold > 0) return t('smallOver', formatNumber(row.sold), formatNumber(row.before - row.after), formatNumber(row.oversold));
  return t(row.verdict === 'exact' ? 'smallExact' : 'smallErrors', formatNumber(row.sold), formatNumber(row.errors + row.unknown));
}

/** Store, rate, and what the result cost. @param {Row} row */
export function resultDetails(row) {
  const parts = [t('sells', row.store), `${formatNumber(row.throughput)}/s`];
  if (row.polled_ms) parts.push(t('polls', row.polled_ms));
  if (row.retries > 0) parts.push(t('retries', formatNumber(row.retries)));
  if (row.waited_max_ms > 0) parts.push(t('waitedMost', formatNumber(row.waited_max_ms)));
  if (row.most_inside != null) parts.push(t('mostInside', row.most_inside));
  return parts.join(' · ');
}
