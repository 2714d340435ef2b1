/** Draws the two numbers that ought to agree, their bars, and the difference. */

import { $, setText } from '../shared/dom.js';
import { figuresOf } from './run-figures.js';
import { formatNumber } from '../shared/language.js';

/** @param {import('./runs.js').Run | null} run null before the first run @param {boolean} stale it has other settings */
export function draw(run, stale) {
  const figures = run ? figuresOf(run) : { sold: null, gone: null, over: null, unsure: 0, full: 1 };
  setValue('sold', figures.sold);
  setValue('gone', figures.gone);
  setValue('over', figures.over);
  setBar('sold-bar', 0, figures.sold, figures.full);
  setBar('gone-bar', 0, figures.gone, figures.full);
  // The difference begins where "gone" ends, to show that gone + oversold = sold; so does the uncertain part.
  setBar('over-bar', Math.max(0, figures.gone ?? 0), figures.over, figures.full);
  setBar('unsure-bar', Math.min(figures.sold ?? 0, figures.gone ?? 0), figures.unsure, figures.full);
  $('over').closest('.figure').classList.toggle('red', (figures.over ?? 0) > 0);
  $('figures').classList.toggle('stale', stale);
}

/** @param {string} id @param {number | null} n */
function setValue(id, n) {
  setText($(id), n == null ? '–' : formatNumber(n));
  $(id).classList.toggle('none', n == null);
}

/** @param {string} id @param {number} from @param {number | null} n @param {number} full */
function setBar(id, from, n, full) {
  const percent = (/** @type {number | null} */ x) => `${(100 * Math.max(0, x ?? 0)) / full}%`;
  $(id).setAttribute('x', percent(from));
  $(id).setAttribute('width', percent(n));
}
