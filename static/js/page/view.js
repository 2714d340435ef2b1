/** What is on show: a lesson with its run, a lesson without one (`text`), the comparison, all verdicts, or that there is no such lesson. */

import { $ } from '../shared/dom.js';

/** @typedef {'lesson' | 'text' | 'compare' | 'unknown' | 'verdicts'} View */

/** @type {View | ''} */
let shown = '';

/** Shows what belongs to a view (`data-in`), and hides what does not. @param {View} view */
export function showView(view) {
  // The same again would show what a lesson has none of, too.
  if (view === shown) return;
  shown = view;
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-in]'))) {
    part.hidden = !(part.dataset.in ?? '').split(' ').includes(view);
  }
  $('frame').dataset.view = view;
}
