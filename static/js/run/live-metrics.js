/** The lines under the numbers: the pace, percentiles, errors, who answered how much; and what it cost to be exact. */

import { $, el, put, svg } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { PACES } from './run-figures.js';
import { number, t } from '../shared/language.js';

/** @typedef {import('./runs.js').Run} Run */

const NONE = '–';

/** @param {Run | null} run @param {string[]} names instances known to be there @param {number | null} polled every so many ms */
export function draw(run, names, polled) {
  const s = run?.snapshot;
  const row = run?.row;
  const ms = (/** @type {number | null | undefined} */ x) => (x == null ? NONE : `${number(x)} ms`);
  // While it runs, what was answered in the last second; at its end, the average.
  put($('throughput'), s ? number(row?.throughput ?? s.pace ?? s.throughput) : NONE);
  put($('p50'), ms(s && (row?.median ?? s.p50_ms)));
  put($('p99'), ms(s && (row?.p99_line ?? s.p99_ms)));
  put($('errors'), s ? number(s.errors) : NONE);
  instances(row?.instances ?? s?.instances ?? {}, row ? {} : s?.under_way ?? {}, names);
  spark(run?.paces ?? []);
  put($('cost'), cost(run, polled).join(' · '));
  $('raw').hidden = !row;
  $('raw').onclick = () => download('oversell-run.json', 'application/json', JSON.stringify(run, null, 2));
}

/** @param {Run | null} run @param {number | null} polled @returns {string[]} */
function cost(run, polled) {
  if (!run) return [];
  const { snapshot: s, row } = run;
  // Of what this run sold: the product on show is another.
  const some = row ? [t('leftThere', number(row.after))] : [];
  if (s.sold_out > 0) some.push(`${t('soldOut')} ${number(s.sold_out)}`);
  if (s.unknown > 0) some.push(`${t('noAnswer')} ${number(s.unknown)}`);
  const retries = row?.retries ?? s.retries;
  if (retries != null) some.push(t('retries', number(retries)));
  if (row?.waited_mean_ms != null) some.push(t('waits', number(row.waited_mean_ms), number(row.waited_max_ms)));
  if (row?.most_inside != null) some.push(t('mostInside', row.most_inside));
  if (row?.lock_lost > 0) some.push(t('lockLost', number(row?.lock_lost)));
  if (row && polled) some.push(t('polled', polled));
  return some;
}

/** @param {Record<string, number>} counts @param {Record<string, number>} waiting @param {string[]} names */
function instances(counts, waiting, names) {
  const all = [...new Set([...names, ...Object.keys(counts)])].toSorted();
  $('instances').replaceChildren(...all.map((name) => el('span', {},
    el('span', { class: 'dim' }, name), ' ', el('output', { class: 'some' }, counts[name] == null ? NONE : number(counts[name])),
    ...(waiting[name] > 0 ? [el('span', { class: 'dim' }, ` ${t('noAnswerYet', waiting[name])}`)] : []))));
}

/** @param {number[]} paces */
function spark(paces) {
  const top = Math.max(1, ...paces);
  const width = 120 / PACES;
  $('spark').replaceChildren(...paces.map((pace, i) => {
    const height = (24 * pace) / top;
    return svg('rect', { x: i * width, y: 24 - height, width: width - 1, height });
  }));
}
