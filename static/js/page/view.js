/** The views: a lesson with its run, a lesson without one (`text`), the comparison, all verdicts, or an unknown lesson. */

import { $ } from '../shared/dom.js';

/** @typedef {'lesson' | 'text' | 'compare' | 'unknown' | 'verdicts'} View */

/** @type {View | ''} */
let shown = '';

/** Shows the elements of a view (`data-in`) and hides the others. @param {View} view */
export function showView(view) {
  // Showing it again would reveal what the lesson has hidden.
  if (view === shown) return;
  shown = view;
  for (const part of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll('[data-in]'))) {
    part.hidden = !(part.dataset.in ?? '').split(' ').includes(view);
  }
  $('frame').dataset.view = view;
}
