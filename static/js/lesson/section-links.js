/** Links from the head of a lesson to its sections further down. */

import { $, el } from '../shared/dom.js';

const SECTIONS = ['deadlock', 'how', 'tries', 'by-hand', 'seen'];

/** Links to the sections of this lesson. @param {boolean} isFar what is run stands between */
export function draw(isFar) {
  $('jumps').replaceChildren(...SECTIONS.filter((id) => isFar && !$(id).hidden).map((id) => {
    const head = /** @type {HTMLElement} */ ($(id).querySelector('h2'));
    const button = el('button', { type: 'button' }, `${head.textContent} ↓`);
    button.addEventListener('click', () => {
      const fold = head.closest('details');
      if (fold) fold.open = true;
      head.tabIndex = -1;
      head.focus({ preventScroll: true });
      head.scrollIntoView({ block: 'start' });
    });
    return button;
  }));
}
