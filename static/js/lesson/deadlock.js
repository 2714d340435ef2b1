/** Deadlocks of MySQL, played on the real server: what each transaction sends, who waits, who is rolled back, and why. */

import * as api from '../shared/api.js';
import { $, el, setText } from '../shared/dom.js';
import { parseDeadlock } from './innodb-status.js';
import { currentLanguage, errorText, t } from '../shared/language.js';

/** @typedef {import('./course.js').Title} Title */
/** @typedef {'A' | 'B'} Side */
/** A lesson of `GET /test/deadlock`. @typedef {{slug: string, breaks: Title, cure: Title}} Deadlock */
/** `waited_until`: the number of the step after which it was answered. @typedef {{side: Side, sql: string, waited_until: number | null, error: number | null, message: string | null, row_locks: number | null}} Step */
/**
 * The answer of `POST /test/deadlock/{slug}`.
 * @typedef {{cured: boolean, steps: Step[], victim: Side | null, error: number | null, committed: Side[],
 *   plans: {when: string, type: string | null, key: string | null, rows: string | null}[], latest_deadlock: string | null}} DeadlockReplay
 */

/** @type {readonly Side[]} */
const SIDES = ['A', 'B'];

/** @type {Map<string, Deadlock>} */
const lessons = new Map();
/** The last results by lesson, flaw and cure. @type {Map<string, {both: DeadlockReplay[], why: string}>} */
const results = new Map();
let isPlaying = false;
let lastDrawn = '';

/** @param {string[]} slugs of the lesson on show */
export function draw(slugs) {
  $('deadlock').hidden = slugs.length === 0;
  if (!slugs.length) return;
  const slug = slugs[0];
  const now = JSON.stringify([currentLanguage(), slug, lessons.has(slug), isPlaying, results.get(slug)]);
  if (lastDrawn === now) return;
  lastDrawn = now;
  if (!lessons.has(slug)) load(slugs);
  const lang = currentLanguage();
  const { breaks, cure } = lessons.get(slug) ?? {};
  const { both, why } = results.get(slug) ?? { both: [], why: '' };
  $('deadlock-run').setAttribute('aria-disabled', String(isPlaying));
  setText($('deadlock-run'), t(both.length ? 'raceAgain' : 'race'));
  $('deadlock-run').onclick = () => play(slugs);
  setText($('deadlock-say'), isPlaying ? t('replayLive') : why ? t('failed', why) : both.length && breaks && cure ? `${t('why')}${breaks[lang]}${t('stop')}${t('space')}${t('cureIs')}${cure[lang]}${t('stop')}` : t('deadlockIdle'));
  $('deadlock-played').replaceChildren(...(isPlaying ? [] : both.map((played) => el('section', {},
    el('h3', {}, t(played.cured ? 'cured' : 'flaw')), el('p', { class: 'say' }, verdict(played)), ...picture(played)))));
}

/** @param {string[]} slugs */
async function load(slugs) {
  for (const lesson of await api.deadlocks().catch(() => [])) lessons.set(lesson.slug, lesson);
  if (lessons.has(slugs[0])) draw(slugs);
}

/** Plays the flaw, then its cure. @param {string[]} slugs */
async function play(slugs) {
  if (isPlaying) return;
  isPlaying = true;
  draw(slugs);
  try {
    const both = [await api.playDeadlock(slugs[0], false), await api.playDeadlock(slugs[0], true)];
    results.set(slugs[0], { both, why: '' });
  } catch (error) {
    results.set(slugs[0], { both: [], why: errorText(/** @type {any} */ (error)) });
  }
  isPlaying = false;
  // Another lesson may be on show by now.
  if (JSON.parse(lastDrawn)[1] === slugs[0]) draw(slugs);
}

/** @param {DeadlockReplay} played */
const verdict = ({ victim, error, committed }) => t(victim ? 'deadlockVictim' : 'deadlockNone', { victim, error, committed });

/** A row for each statement, a column for each transaction. @param {DeadlockReplay} played */
function picture(played) {
  const head = el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, el('span', { class: 'unseen' }, t('deadlockOrder'))),
    ...SIDES.map((side) => el('th', { scope: 'col' }, side))));
  const rows = played.steps.map((step, i) => el('tr', {}, el('th', { scope: 'row' }, String(i + 1)), ...SIDES.map((side) => cell(played, step, i, side))));
  const table = el('table', { class: 'statements' }, el('caption', { class: 'unseen' }, t('deadlockOrder')), head, el('tbody', {}, ...rows));
  return [table, ...planSentences(played), ...serverReport(played)];
}

/** @param {DeadlockReplay} played @param {Step} step @param {number} i @param {Side} side */
function cell({ steps }, step, i, side) {
  if (step.side === side) {
    const notes = [
      step.waited_until ? t('deadlockWaits', step.waited_until) : '',
      step.error ? t('deadlockError', step.error) : '',
      // The server's count includes the lock that it waits for.
      step.row_locks && !step.waited_until ? t('deadlockRows', step.row_locks) : '',
    ].filter(Boolean).join(t('comma'));
    return el('td', { class: step.error ? 'victim' : step.waited_until ? 'begins' : '' }, el('code', {}, readableSql(step.sql)), notes && el('span', { class: 'note' }, notes));
  }
  const waits = steps.some((s, at) => s.side === side && at < i && s.waited_until && i < s.waited_until);
  return el('td', { class: waits ? 'waits' : '' }, waits ? el('span', { class: 'unseen' }, t('laneNow', 'waits')) : '');
}

/** Each play has a table with a name of its own. @param {string} sql */
const readableSql = (sql) => sql.replaceAll(/`?\b(?:\w+`?\.`?)?deadlock_[0-9a-f]+`?/g, 'goods');

/** @param {DeadlockReplay} played */
const planSentences = ({ plans: all }) => all.map(({ when, type, key, rows }) =>
  el('p', {}, t('deadlockPlan', { indexed: when.startsWith('after'), type: type ?? 'NULL', key: key ?? 'NULL', rows: rows ?? '?' })));

/** The server's report of the deadlock, in words and as text. @param {DeadlockReplay} played */
function serverReport(played) {
  const text = played.latest_deadlock;
  if (!text) return [];
  const report = parseDeadlock(text);
  const other = played.victim === 'A' ? 'B' : 'A';
  const sideOf = (/** @type {number} */ n) => (n === report.rolledBack ? played.victim : other);
  const locks = report.transactions.flatMap(({ number, waits }) => waits.map((lock) =>
    el('li', {}, t('deadlockWants', sideOf(number), t('deadlockLock', lock), sideOf(number) === 'A' ? 'B' : 'A'))));
  const ended = report.rolledBack ? [el('li', {}, t('deadlockEnded', played.victim, other))] : [];
  const words = report.rolledBack && locks.length ? [el('h3', {}, t('deadlockAccount')), el('ul', { class: 'account' }, ...locks, ...ended)] : [];
  return [...words, el('details', {}, el('summary', {}, 'SHOW ENGINE INNODB STATUS'), el('pre', { class: 'raw', tabindex: '0' }, readableSql(text)))];
}
