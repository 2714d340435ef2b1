/** How many waiters each release has woken, a bar for each; all waiters fill the height. The flaw beside its cure. */

import { $, el, svg } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';

/** Does it end in a list of counts? @param {import('./race.js').Race} race */
export const isIn = ({ ends }) => /^\d+ \d+ /.test(ends.notes ?? '');

/** @param {import('../timeline/events.js').ReplayEvent[][]} both events of the flaw and of its cure */
export function draw(both) {
  const all = both.map((events) => events.filter((e) => e.event === 'woken').map((e) => Number(e.value)));
  $('race-woken').hidden = all.every((woken) => !woken.length);
  $('race-woken').replaceChildren(...all.flatMap((woken, i) => (woken.length ? [chart(woken, t(i ? 'cured' : 'flaw'))] : [])));
}

/** @param {number[]} woken @param {string} name */
function chart(woken, name) {
  const all = woken.length;
  const bars = woken.map((n, i) => svg('rect', { x: i, y: all - n, width: 0.8, height: n }));
  return el('figure', {}, el('figcaption', {}, name),
    el('div', { class: 'woken-bars' }, svg('svg', { viewBox: `0 0 ${all} ${all}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...bars)),
    el('p', { class: 'woken-ends' }, el('span', {}, formatNumber(woken[0])), el('span', {}, formatNumber(woken[all - 1]))),
    // The last release has no waiter left.
    el('p', {}, t('wokenSum', all - 1, formatNumber(woken.reduce((sum, n) => sum + n, 0)))));
}
