/**
 * The first thing of the first lesson: what this is, and one press that sells 5,000 pieces by three instances without a lock. Two numbers
 * that ought to agree do not.
 */

import { $, el, setText, svg } from '../shared/dom.js';
import { figuresOf } from '../run/run-figures.js';
import { oversoldSentence } from '../run/status-line.js';
import { formatNumber, t } from '../shared/language.js';

/** @type {import('../run/runs.js').Plan} */
export const PLAN = { strategy: 'none', target: 'three', threads: 100, loops: 50, hold_ms: 0, count: 5000 };
/** The lesson of an empty address. */
export const FIRST_LESSON = '1.1';

/** @param {string} lesson */
export function show(lesson) {
  $('opening').hidden = lesson !== FIRST_LESSON;
}

/** @param {import('../run/runs.js').Runs} runs @param {boolean} isReached */
export function draw(runs, isReached) {
  if ($('opening').hidden) return;
  // A race's pictures have the place above.
  const isBelow = document.documentElement.hasAttribute('data-stage');
  if (isBelow !== ($('race').nextElementSibling === $('opening'))) isBelow ? $('race').after($('opening')) : $('main').prepend($('opening'));
  const run = runs.runOf(PLAN.strategy, PLAN.target);
  $('opening-run').setAttribute('aria-disabled', String(!isReached || runs.active != null));
  $('opening-figures').hidden = !run || run.state === 'failed';
  $('opening-means').hidden = !run?.row;
  setText($('opening-say'), run?.state === 'failed' ? t('failed', run.detail ?? '') : t('openingNote'));
  if (!run || run.state === 'failed') return;
  const { sold, gone, over, full } = figuresOf(run);
  if (run.row) setText($('opening-oversold'), over ? oversoldSentence(run) : t('exact'));
  const rows = /** @type {[string, number | null][]} */ ([['sold', sold], ['gone', gone], ['over', over]]);
  $('opening-figures').replaceChildren(...rows.map(([name, n]) => el('div', { class: name === 'over' && n ? 'red' : '' }, el('dt', {}, t(name)),
    el('dd', {}, n == null ? '–' : formatNumber(n), svg('svg', { class: 'bar', 'aria-hidden': 'true' }, svg('rect', { height: '100%', width: `${(100 * Math.max(0, n ?? 0)) / full}%`, ...(name === 'over' ? { fill: 'url(#hatch)' } : {}) }))))));
}

/** @param {() => void} then starts the run */
export function listen(then) {
  $('opening-run').onclick = () => {
    if ($('opening-run').getAttribute('aria-disabled') !== 'true') then();
  };
  $('opening-why').onclick = () => {
    $('race-run').focus({ preventScroll: true });
    $('race').scrollIntoView();
    if (!$('race-run').matches('.cancel, [aria-disabled="true"]')) $('race-run').click();
  };
}
