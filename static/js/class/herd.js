/** The herd effect: how many are woken each time the lock is given back, by either way to wait, as two rows of bars. */

import { $, el, put, svg } from '../shared/dom.js';
import { reason, t } from '../shared/language.js';
import * as api from '../shared/api.js';

/** @typedef {{waiters: number, watch_parent: number, watch_predecessor: number, each: {watch_parent: number[], watch_predecessor: number[]}}} Herd */

const [WIDTH, HEIGHT] = [1000, 150];
/** @type {Herd | null} */
let herd = null;
let busy = false;
let failed = '';

export async function run() {
  if (busy) return;
  [busy, failed] = [true, ''];
  draw();
  try {
    herd = await api.herd();
  } catch (error) {
    failed = reason(/** @type {any} */ (error));
  }
  busy = false;
  draw();
}

const button = el('button', { id: 'herd-run', class: 'big' });
const said = el('output', { class: 'say' });
const rows = el('div', {});
button.addEventListener('click', run);
$('herd').replaceChildren(el('p', {}, button, ' ', said), rows);

export function draw() {
  button.setAttribute('aria-disabled', String(busy));
  put(button, t('herdRun'));
  put(said, failed || (busy ? t('herdBusy') : ''));
  rows.replaceChildren(...(herd ? [rowOf(t('herdParent'), herd.each.watch_parent, herd), rowOf(t('herdPredecessor'), herd.each.watch_predecessor, herd)] : []));
}

/** @param {string} name @param {number[]} each notifications of each release @param {Herd} all */
function rowOf(name, each, all) {
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
