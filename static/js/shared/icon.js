/** Signs drawn as paths, so that they look the same in every font, without one for symbols, and from the last row. */

import { svg } from './dom.js';

/** In a square of 12; an end at its own begin is a dot. @satisfies {Record<string, string>} */
const PATHS = {
  tick: 'M1 6.5 4.5 10 11 2.500',
  cross: 'M2 2 10 10M10 2 2 10',
  lease: 'M6 0V3M6 5V7.500M6 9.500V12',
  clock: 'M6 .5a5.500 5.500 0 1 0 .01 0zM6 3V6L8.500 7.500',
  skull: 'M3.500 9.500V8.500Q1 7.500 1 5A5 4.500 0 0 1 11 5Q11 7.500 8.500 8.500V9.500zM4 5.500h.01M8 5.500h.01M5 11.500h2',
  swap: 'M1 4H11L8 1M11 8H1L4 11',
  play: 'M3 1.500 10 6 3 10.500z',
  pause: 'M3.500 2V10M8.500 2V10',
  back: 'M9.500 2 4 6 9.500 10zM2 2V10',
  forward: 'M2.500 2 8 6 2.500 10zM10 2V10',
  unfold: 'M2 4 6 8 10 4',
};

/** @typedef {keyof typeof PATHS} Icon */

/** Signs beside each other, as high as a line's letters. @param {Icon[]} names @returns {SVGElement} */
export function icons(...names) {
  const width = names.length * 14;
  return svg('svg', { class: 'mark', viewBox: `0 0 ${width} 12`, width: `${width / 16}em`, height: '.75em', 'aria-hidden': 'true', 'data-icon': names.join(' ') },
    ...names.map((name, i) => svg('path', { d: PATHS[name], transform: `translate(${i * 14 + 1})` })));
}
