/** The parts of a strategy's Rust file that the page shows: SQL statements, functions, and the whole file with its comments set apart. */

import { el } from '../shared/dom.js';

const TRIVIAL_FUNCTIONS = ['key', 'lease'];

/** The SQL statements of a file; its functions use them by name. @param {string} source @returns {string[]} */
export const sqlStatements = (source) => [...source.matchAll(/^const \w+: &str =\s+"[A-Z]{2,}[^;]*;$/gm)].flatMap(([found]) => found.split('\n'));

/** How often waiters poll, in ms; null where they are notified. @param {string[]} steps in English @param {string} source @returns {number | null} */
export function pollIntervalOf(steps, source) {
  const match = /again in (?:about )?(\d+) ms/.exec(steps.join(' '))?.[1];
  if (match) return Number(match);
  return source.includes('stage::lock(') ? 50 : null;
}

/** The functions of a file, without their common indent. @param {string} text @returns {string[]} */
export function functionsOf(text) {
  const lines = text.split('\n');
  /** @type {string[]} */
  const shown = [];
  for (let i = 0; i < lines.length; i += 1) {
    const fn = /^(\s*)(?:pub(?:\([^)]*\))? )?(?:async )?fn (\w+)/.exec(lines[i]);
    if (!fn) continue;
    const end = lines.findIndex((line, n) => n >= i && line === `${fn[1]}}`);
    if (end < 0 || TRIVIAL_FUNCTIONS.includes(fn[2])) continue;
    if (shown.length) shown.push('');
    shown.push(...lines.slice(i, end + 1).map((line) => line.slice(fn[1].length)));
    i = end;
  }
  return shown;
}

/** The file with its comments dimmed and "What breaks it" emphasised. @param {string} text @returns {(Node | string)[]} */
export function highlight(text) {
  let breaks = false;
  return text.trimEnd().split('\n').flatMap((line) => {
    if (!/^\s*\/\//.test(line)) return `${line}\n`;
    // From "What breaks it" to the end of its paragraph; bold replaces the stars.
    const at = line.indexOf('**What breaks it');
    const from = at >= 0 ? at : breaks && line !== '//!' ? 0 : line.length;
    breaks = from < line.length;
    return [el('span', { class: 'doc' }, line.slice(0, from)), el('span', { class: 'breaks' }, line.slice(from).replaceAll('**', '')), '\n'];
  });
}
