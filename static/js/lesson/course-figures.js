/** The course's own figures beside those of this place, in the lessons that measure them. Pure, but for the table. */

import { el } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';

/** A figure: what it is, what the course has, and what was measured here. @typedef {{name: string, course: string, here: string}} Figure */
/** When a request began and was answered, in ms. @typedef {{begun: number, ended: number, failed: boolean}} Answered */

const NONE = '–';
/** The settings of §1.4: one instance, 100 threads, 50 loops. */
const JMETER = { target: 'one', threads: 100, loops: 50, hold_ms: 0, count: 5000 };
/** Those who leave together do so within this time. */
const TOGETHER_MS = 2000;

/** §1.4's Aggregate Report and stock. @param {string} lesson @param {import('../run/runs.js').Run | null} run @returns {Figure[]} */
export function loadFigures(lesson, run) {
  if (lesson !== '1.4') return [];
  const plan = /** @type {Record<string, unknown> | undefined} */ (run?.plan);
  const row = run?.row && Object.entries(JMETER).every(([name, value]) => plan?.[name] === value) ? run.row : null;
  const ms = (/** @type {number | undefined} */ n) => (n == null ? NONE : `${formatNumber(n)} ms`);
  return [
    { name: 'figureAverage', course: '37 ms', here: ms(row?.average) },
    { name: 'figureMedian', course: '36 ms', here: ms(row?.median) },
    { name: 'figureRate', course: '2,568.1/s', here: row ? `${row.throughput.toLocaleString('en-US', { maximumFractionDigits: 1 })}/s` : NONE },
    { name: 'figureLeft', course: '4,870', here: row ? formatNumber(row.after) : NONE },
  ];
}

/** §2.10.5's waits and §2.10.6's consoles. @param {string} lesson @param {Answered[]} answers @returns {Figure[]} */
export function answerFigures(lesson, answers) {
  const ended = answers.filter(({ ended: at, failed }) => at && !failed);
  if (lesson === '2.10.5') {
    const longest = Math.max(0, ...ended.map((one) => one.ended - one.begun));
    return [{ name: 'figureWait', course: t('figureAbout', 10), here: longest ? t('at', (longest / 1000).toFixed(1)) : NONE }];
  }
  if (lesson !== '2.10.6') return [];
  return [{ name: 'figureBatches', course: '3 / 3 / 3 / 1', here: batchesOf(ended.map((one) => one.ended)).join(' / ') || NONE }];
}

/** How many were answered together, one batch after the other. @param {number[]} times */
export function batchesOf(times) {
  /** @type {number[]} */
  const batches = [];
  let first = -Infinity;
  for (const at of [...times].sort((a, b) => a - b)) {
    if (at - first > TOGETHER_MS) {
      batches.push(0);
      first = at;
    }
    batches[batches.length - 1] += 1;
  }
  return batches;
}

/** @param {HTMLElement} box @param {Figure[]} figures */
export function draw(box, figures) {
  box.hidden = !figures.length;
  const now = JSON.stringify([figures, t('language')]);
  if (box.dataset.shown === now) return;
  box.dataset.shown = now;
  box.replaceChildren(el('caption', { class: 'unseen' }, t('figuresTitle')),
    el('thead', {}, el('tr', {}, el('td', {}), el('th', { scope: 'col' }, t('figuresCourse')), el('th', { scope: 'col' }, t('figuresHere')))),
    el('tbody', {}, ...figures.map(({ name, course, here }) => el('tr', {}, el('th', { scope: 'row' }, t(name)), el('td', {}, course), el('td', {}, here)))));
}
