/** What a student types to see a lesson: each line to copy, with what it prints, one fold for each terminal. */

import { $, el } from './dom.js';
import { t } from './lang.js';

/** @typedef {import('./course.js').Line} Line */

let shown = '';

/** @param {Line[]} lines in the order in which they are typed @param {boolean} alone there is nothing else to do in this lesson */
export function draw(lines, alone) {
  $('by-hand').hidden = lines.length === 0;
  const now = JSON.stringify([lines, t('language')]);
  if (shown === now) return;
  shown = now;
  $('by-hand').firstElementChild.open = alone;
  const numbered = lines.map((line, i) => ({ ...line, number: i + 1 }));
  const terminals = [...new Set(lines.map((line) => line.terminal))].toSorted();
  $('terminals').replaceChildren(...terminals.map((terminal) => el('details', { open: true },
    el('summary', {}, t('terminal', terminal)),
    el('ol', { class: 'typed' }, ...numbered.filter((line) => line.terminal === terminal).map(item)))));
}

/** @param {Line & {number: number}} line */
function item({ number, run, expect, again }) {
  const copy = el('button', { type: 'button' }, t('copy'));
  const typed = el('pre', { tabindex: '0' }, run);
  copy.addEventListener('click', async () => {
    copy.textContent = await copied(run, typed) ? t('copied') : t('selected');
    setTimeout(() => { copy.textContent = t('copy'); }, 2000);
  });
  return el('li', { value: String(number) }, copy, typed,
    again ? el('p', { class: 'dim' }, t('again')) : '',
    expect ? el('pre', { class: 'expect', tabindex: '0', 'aria-label': t('prints') }, expect) : '');
}

/** Where the browser lets no page write to the clipboard, the line is selected. @param {string} text @param {Element} shown */
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}
