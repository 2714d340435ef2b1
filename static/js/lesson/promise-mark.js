/** The mark of a promise: a cross where it oversells; a tick, with a cross or a broken line, where it is exact on one instance, or within a lease. */

import { svg } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import { t } from '../shared/language.js';

/** @type {Record<string, import('../shared/icon.js').Icon[]>} */
const SIGNS = { unsafe: ['cross'], 'one-process': ['tick', 'cross'], lease: ['tick', 'lease'], safe: ['tick'] };

/** @param {string} promise @returns {SVGElement} */
export function promiseMark(promise) {
  const mark = icons(...SIGNS[promise] ?? []);
  mark.removeAttribute('aria-hidden');
  mark.setAttribute('role', 'img');
  mark.setAttribute('aria-label', t('mark', promise));
  mark.prepend(svg('title', {}, t('mark', promise)));
  return mark;
}
