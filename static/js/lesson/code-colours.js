/** Rust source for reading: comments stand back, what breaks the lesson stands out. */

import { el } from '../shared/dom.js';

/** @param {string} text @returns {(Node | string)[]} */
export function highlight(text) {
  let breaks = false;
  return text.trimEnd().split('\n').flatMap((line) => {
    if (!/^\s*\/\//.test(line)) return `${line}\n`;
    // From "What breaks it" to the end of its paragraph; bold says what the stars of the file say.
    const at = line.indexOf('**What breaks it');
    const from = at >= 0 ? at : breaks && line !== '//!' ? 0 : line.length;
    breaks = from < line.length;
    return [el('span', { class: 'doc' }, line.slice(0, from)), el('span', { class: 'breaks' }, line.slice(from).replaceAll('**', '')), '\n'];
  });
}
