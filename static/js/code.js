/** Rust source for reading: comments stand back, what breaks the lesson stands out. */

import { el } from './dom.js';

/** @param {string} text @returns {Node[]} */
export function colour(text) {
  let breaks = false;
  return text.trimEnd().split('\n').map((line) => {
    const doc = line.startsWith('//!');
    // From "What breaks it" to the end of its paragraph.
    breaks = doc && line !== '//!' && (breaks || line.includes('What breaks it'));
    const kind = breaks ? 'breaks' : doc ? 'doc' : /^\s*\/\//.test(line) ? 'doc' : '';
    return el('span', { class: kind }, `${line}\n`);
  });
}
