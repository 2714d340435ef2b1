/** A legend below the pictures: each mark that they use, and what it means. */

import { el, svg } from '../shared/dom.js';
import { currentLanguage, t } from '../shared/language.js';

/** A mark, where it is in the pictures, and a small one. @type {[string, string, () => Element][]} */
const MARKS = [
  ['waits', '[data-kind=waits]', () => svg('line', { class: 'waits', x1: 2, x2: 30, y1: 8, y2: 8 })],
  ['inside', '[data-kind=inside]', () => box('inside')],
  ['leaves', '[data-kind=leaves]', () => svg('line', { class: 'leaves', x1: 2, x2: 30, y1: 8, y2: 8 })],
  ['overlap', '[data-kind=overlap]', () => svg('rect', { class: 'overlap', x: 2, y: 2, width: 28, height: 12, fill: 'url(#hatch)' })],
  ['stopped', '[data-kind=stopped]', () => box('stopped')],
  ['shared', '[data-kind=shared]', () => box('shared')],
  ['vain', '[data-kind=vain]', () => box('vain')],
  ['shut', '[data-kind=shut]', () => box('shut')],
  ['wedge', '[data-kind=wedge]', () => svg('polygon', { class: 'wedge', points: '2,14 2,2 30,14' })],
  ['message', '[data-kind=message]', () => svg('line', { class: 'message', x1: 16, x2: 16, y1: 0, y2: 16 })],
  ['carry', '[data-kind=carry]', () => svg('path', { class: 'carry', d: 'M2 3V10H28V3' })],
  ['arrow', '[data-kind=arrow]', () => svg('path', { class: 'arrow', d: 'M16 0V14m-5 -5l5 6l5 -6' })],
  ['open', '.dot-open', () => svg('circle', { class: 'dot-open', cx: 16, cy: 8, r: 5 })],
  ['place', '.place', () => svg('rect', { class: 'place', x: 2, y: 2, width: 28, height: 12 })],
  ['full', '.dot-full', () => svg('circle', { class: 'dot-full', cx: 16, cy: 8, r: 5 })],
  ['red', 'circle.red', () => svg('circle', { class: 'dot-full red', cx: 16, cy: 8, r: 5 })],
];

/** @param {string} kind */
const box = (kind) => svg('rect', { class: kind, x: 2, y: 2, width: 28, height: 12 });

/** A mark that is part of a word. @type {[string, string, RegExp][]} */
const SIGNS = [['times', '.owner', /×/], ['repeated', ':not(.owner)', / × \d/], ['bang', '.bold', /!$/]];

/** @type {WeakMap<Element, string>} */
const lastDrawn = new WeakMap();

/** @param {HTMLElement} host @param {HTMLElement[]} pictures that stand; none: they still move */
export function draw(host, pictures) {
  const isUsed = (/** @type {string} */ at) => pictures.some((picture) => picture.querySelector(at));
  const used = MARKS.filter(([, at]) => isUsed(at));
  const signs = SIGNS.filter(([, at, sign]) => pictures.some((picture) => [...picture.querySelectorAll(`.label${at}`)].some((label) => sign.test(label.textContent ?? ''))));
  host.hidden = !used.length;
  const now = JSON.stringify([currentLanguage(), used.map(([kind]) => kind), signs.map(([kind]) => kind)]);
  if (now === lastDrawn.get(host)) return;
  lastDrawn.set(host, now);
  host.replaceChildren(...used.map(([kind, , make]) => el('li', { 'data-mark': kind }, svg('svg', { class: 'timeline', viewBox: '0 0 32 16', width: 32, height: 16, 'aria-hidden': 'true' }, make()), t('legendOf', kind))),
    ...signs.map(([kind]) => el('li', { 'data-mark': kind }, t('legendOf', kind))));
}
