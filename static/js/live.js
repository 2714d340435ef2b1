/** The line under the numbers: throughput with its course, percentiles, errors, and who answered how much. */

import { $, el, put, svg } from './dom.js';
import { PACES } from './figures.js';
import { number, t } from './lang.js';

const NONE = '–';

/** @param {import('./api.js').Run | null} run @param {string[]} names instances known to be there */
export function draw(run, names) {
  const s = run?.snapshot;
  const row = run?.row;
  const ms = (/** @type {number | null} */ x) => (x == null ? NONE : `${number(x)} ms`);
  put($('throughput'), s ? number(row?.throughput ?? s.throughput) : NONE);
  put($('p50'), ms(s && (row?.median ?? s.p50_ms)));
  put($('p99'), ms(s && (row?.p99_line ?? s.p99_ms)));
  put($('errors'), s ? number(s.errors) : NONE);
  const rest = [['soldOut', s?.sold_out], ['noAnswer', s?.unknown]].filter(([, n]) => n > 0);
  const some = rest.map(([word, n]) => `${t(word)} ${number(n)}`);
  if (row?.retries > 0) some.push(t('retries', number(row.retries)));
  if (row?.waited_mean_ms != null) some.push(t('waits', number(row.waited_mean_ms), number(row.waited_max_ms)));
  if (row?.lock_lost > 0) some.push(t('lockLost', number(row.lock_lost)));
  put($('others'), some.join('  '));
  instances(row?.instances ?? s?.instances ?? {}, names);
  spark(run?.paces ?? []);
}

/** @param {Record<string, number>} counts @param {string[]} names */
function instances(counts, names) {
  const all = [...new Set([...names, ...Object.keys(counts)])].sort();
  $('instances').replaceChildren(...all.map((name) => el('span', {},
    el('span', { class: 'dim' }, name), ' ', el('output', { class: 'some' }, counts[name] == null ? NONE : number(counts[name])))));
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
