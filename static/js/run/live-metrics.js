/** The line below the numbers: throughput, percentiles, errors, answers by instance, and what exactness cost. */

import { $, download, el, setText, svg } from '../shared/dom.js';
import { MAX_PACES } from './run-figures.js';
import { formatNumber, t } from '../shared/language.js';

/** @typedef {import('./runs.js').Run} Run */

const NONE = '–';

/** @param {Run | null} run @param {string[]} names known instances @param {number | null} polled the interval in ms */
export function draw(run, names, polled) {
  const snapshot = run?.snapshot;
  const row = run?.row;
  const ms = (/** @type {number | null | undefined} */ x) => (x == null ? NONE : `${formatNumber(x)} ms`);
  // While it runs, the rate of the last second; at its end, the average.
  setText($('throughput'), snapshot ? formatNumber(row?.throughput ?? snapshot.pace ?? snapshot.throughput) : NONE);
  setText($('p50'), ms(snapshot && (row?.median ?? snapshot.p50_ms)));
  setText($('p99'), ms(snapshot && (row?.p99_line ?? snapshot.p99_ms)));
  setText($('errors'), snapshot ? formatNumber(snapshot.errors) : NONE);
  drawInstances(row?.instances ?? snapshot?.instances ?? {}, row ? {} : snapshot?.under_way ?? {}, names);
  drawSparkline(run?.paces ?? []);
  setText($('cost'), costNotes(run, polled).join(' · '));
  $('raw').hidden = !row;
  $('raw').onclick = () => download('oversell-run.json', 'application/json', JSON.stringify(run, null, 2));
}

/** @param {Run | null} run @param {number | null} polled @returns {string[]} */
function costNotes(run, polled) {
  if (!run) return [];
  const { snapshot, row } = run;
  // The stock of this run's own product, which is not the one on show.
  const notes = row ? [t('leftThere', formatNumber(row.after))] : [];
  if (snapshot.sold_out > 0) notes.push(`${t('soldOut')} ${formatNumber(snapshot.sold_out)}`);
  if (snapshot.unknown > 0) notes.push(`${t('noAnswer')} ${formatNumber(snapshot.unknown)}`);
  const retries = row?.retries ?? snapshot.retries;
  if (retries != null) notes.push(t('retries', formatNumber(retries)));
  if (row?.waited_mean_ms != null) notes.push(t('waits', formatNumber(row.waited_mean_ms), formatNumber(row.waited_max_ms)));
  if (row?.most_inside != null) notes.push(t('mostInside', row.most_inside));
  if (row?.lock_lost > 0) notes.push(t('lockLost', formatNumber(row?.lock_lost)));
  if (row && polled) notes.push(t('polled', polled));
  return notes;
}

/** @param {Record<string, number>} counts @param {Record<string, number>} waiting @param {string[]} names */
function drawInstances(counts, waiting, names) {
  const all = [...new Set([...names, ...Object.keys(counts)])].sort();
  $('instances').replaceChildren(...all.map((name) => el('span', {},
    el('span', { class: 'dim' }, name), ' ', el('output', { class: 'some' }, counts[name] == null ? NONE : formatNumber(counts[name])),
    ...(waiting[name] > 0 ? [el('span', { class: 'dim' }, ` ${t('noAnswerYet', waiting[name])}`)] : []))));
}

/** @param {number[]} paces */
function drawSparkline(paces) {
  const top = Math.max(1, ...paces);
  const width = 120 / MAX_PACES;
  $('spark').replaceChildren(...paces.map((pace, i) => {
    const height = (24 * pace) / top;
    return svg('rect', { x: i * width, y: 24 - height, width: width - 1, height });
  }));
}
