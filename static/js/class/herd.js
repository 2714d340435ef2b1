/** The herd effect: how many waiters each release wakes, for both ways to wait, as two rows of bars. */

import { $, el, setText, svg } from '../shared/dom.js';
import { errorText, t } from '../shared/language.js';
import * as api from '../shared/api.js';

/** @typedef {{waiters: number, watch_parent: number, watch_predecessor: number, each: {watch_parent: number[], watch_predecessor: number[]}}} Herd */

const [WIDTH, HEIGHT] = [1000, 150];
/** @type {Herd | null} */
let result = null;
let isBusy = false;
let errorMessage = '';

export async function run() {
  if (isBusy) return;
  [isBusy, errorMessage] = [true, ''];
  draw();
  try {
    result = await api.playHerd();
  } catch (error) {
    errorMessage = errorText(/** @type {any} */ (error));
  }
  isBusy = false;
  draw();
}

const button = el('button', { id: 'herd-run', class: 'big' });
const status = el('output', { class: 'say' });
const rows = el('div', {});
button.addEventListener('click', run);
$('herd').replaceChildren(el('p', {}, button, ' ', status), rows);

export function draw() {
  button.setAttribute('aria-disabled', String(isBusy));
  setText(button, t('herdRun'));
  setText(status, errorMessage || (isBusy ? t('herdBusy') : ''));
  rows.replaceChildren(...(result ? [chartOf(t('herdParent'), result.each.watch_parent, result), chartOf(t('herdPredecessor'), result.each.watch_predecessor, result)] : []));
}

/** @param {string} name @param {number[]} each notifications per release @param {Herd} all */
function chartOf(name, each, all) {
  const wide = WIDTH / each.length;
  const sum = each.reduce((a, b) => a + b, 0);
  const summed = t('herdSaid', sum, each.length, (sum / each.length).toFixed(2));
  const bars = each.map((n, i) => {
    const height = Math.max(n > 0 ? 2 : 0, (n / all.waiters) * (HEIGHT - 2));
    return svg('rect', { 'data-n': n, x: i * wide, width: Math.max(1, wide - 3), y: HEIGHT - height, height });
  });
  const first = each.slice(0, 3).join(t('and'));
  return el('figure', { class: 'herd' }, el('figcaption', {}, el('b', {}, name), ` ${first} … `, summed),
    svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${name}: ${summed}` },
      svg('path', { class: 'ground', d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }), ...bars));
}
