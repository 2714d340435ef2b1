/** The mark of a promise: ✗ oversells, ✓✗ exact on one instance, ✓┆ exact within a lease, ✓ exact. */

import { t } from '../shared/language.js';
import { svg } from '../shared/dom.js';

// Drawn as paths, so that they look the same in every font and from the last row.
const TICK = 'M1 6.5 4.5 10 11 2.500';
const CROSS = 'M2 2 10 10M10 2 2 10';
const LEASE = 'M6 0V3M6 5V7.500M6 9.500V12';

/** @type {Record<string, string[]>} */
const SIGNS = { unsafe: [CROSS], 'one-process': [TICK, CROSS], lease: [TICK, LEASE], safe: [TICK] };

/** @param {string} promise @returns {SVGElement} */
export function promiseMark(promise) {
  const signs = SIGNS[promise] ?? [];
  const width = signs.length * 14;
  return svg('svg', { class: 'mark', viewBox: `0 0 ${width} 12`, width: `${width / 16}em`, height: '.75em', role: 'img', 'aria-label': t('mark', promise) },
    svg('title', {}, t('mark', promise)),
    ...signs.map((d, i) => svg('path', { d, transform: `translate(${i * 14 + 1})` })));
}
