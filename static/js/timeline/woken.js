/** How many each release has woken: a bar for each, on a scale on which all who waited fill the height. */

import { $, el, put, svg } from '../dom.js';
import { number, t } from '../lang.js';

/** @param {import('./events.js').ReplayEvent[]} events of a replay */
export function draw(events) {
  const woken = events.filter((e) => e.event === 'woken').map((e) => Number(e.value));
  $('replay-woken').hidden = woken.length === 0;
  if (!woken.length) return;
  const all = woken.length;
  const bars = woken.map((n, i) => svg('rect', { x: i, y: all - n, width: 0.8, height: n }));
  $('woken-bars').replaceChildren(svg('svg', { viewBox: `0 0 ${all} ${all}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...bars));
  $('woken-ends').replaceChildren(el('span', {}, number(woken[0])), el('span', {}, number(woken[all - 1])));
  // The last one gives back what nobody waits for.
  put($('woken-sum'), t('wokenSum', all - 1, number(woken.reduce((sum, n) => sum + n, 0))));
}
