/** Draws the two numbers that ought to agree, their bars, and the difference. */

import { $, put } from '../shared/dom.js';
import { figures } from './run-figures.js';
import { number } from '../shared/language.js';

/** @param {import('./runs.js').Run | null} run null: not run yet @param {boolean} stale it is from other settings */
export function draw(run, stale) {
  const f = run ? figures(run) : { sold: null, gone: null, over: null, unsure: 0, full: 1 };
  value('sold', f.sold);
  value('gone', f.gone);
  value('over', f.over);
  bar('sold-bar', 0, f.sold, f.full);
  bar('gone-bar', 0, f.gone, f.full);
  // The difference begins where the shelf ends, so that gone + oversold = sold can be seen; so does what is not sure yet.
  bar('over-bar', Math.max(0, f.gone ?? 0), f.over, f.full);
  bar('unsure-bar', Math.min(f.sold ?? 0, f.gone ?? 0), f.unsure, f.full);
  $('over').closest('.figure').classList.toggle('red', (f.over ?? 0) > 0);
  $('figures').classList.toggle('stale', stale);
}

/** @param {string} id @param {number | null} n */
function value(id, n) {
  put($(id), n == null ? '–' : number(n));
  $(id).classList.toggle('none', n == null);
}

/** @param {string} id @param {number} from @param {number | null} n @param {number} full */
function bar(id, from, n, full) {
  const percent = (/** @type {number | null} */ x) => `${(100 * Math.max(0, x ?? 0)) / full}%`;
  $(id).setAttribute('x', percent(from));
  $(id).setAttribute('width', percent(n));
}
