/** Deadlocks of MySQL, played on the real server: what either transaction sends, who waits, who is rolled back, and why. */

import * as api from '../shared/api.js';
import { $, el, put } from '../shared/dom.js';
import { accountOf } from './innodb-status.js';
import { current, reason, t } from '../shared/language.js';

/** @typedef {import('./course.js').Title} Title */
/** @typedef {'A' | 'B'} Side */
/** A lesson of `GET /test/deadlock`. @typedef {{slug: string, breaks: Title, cure: Title}} Deadlock */
/** `waited_until`: the number of the step after which it was answered. @typedef {{side: Side, sql: string, waited_until: number | null, error: number | null, message: string | null, row_locks: number | null}} Step */
/**
 * What a play came to, of `POST /test/deadlock/{slug}`.
 * @typedef {{cured: boolean, steps: Step[], victim: Side | null, error: number | null, committed: Side[],
 *   plans: {when: string, type: string | null, key: string | null, rows: string | null}[], latest_deadlock: string | null}} Played
 */

/** @type {readonly Side[]} */
const SIDES = ['A', 'B'];

/** @type {Map<string, Deadlock>} */
const known = new Map();
/** The last play of each lesson, the flaw and the cure. @type {Map<string, {both: Played[], why: string}>} */
const plays = new Map();
let playing = false;
let shown = '';

/** @param {string[]} slugs of the lesson on show */
export function draw(slugs) {
  $('deadlock').hidden = slugs.length === 0;
  if (!slugs.length) return;
  const slug = slugs[0];
  const now = JSON.stringify([current(), slug, known.has(slug), playing, plays.get(slug)]);
  if (shown === now) return;
  shown = now;
  if (!known.has(slug)) load(slugs);
  const lang = current();
  const { breaks, cure } = known.get(slug) ?? {};
  const { both, why } = plays.get(slug) ?? { both: [], why: '' };
  $('deadlock-run').setAttribute('aria-disabled', String(playing));
  put($('deadlock-run'), t(both.length ? 'raceAgain' : 'race'));
  $('deadlock-run').onclick = () => play(slugs);
  put($('deadlock-say'), playing ? t('replayLive') : why ? t('failed', why) : both.length && breaks && cure ? `${t('why')}${breaks[lang]}${t('stop')}${t('space')}${t('cureIs')}${cure[lang]}${t('stop')}` : t('deadlockIdle'));
  $('deadlock-played').replaceChildren(...(playing ? [] : both.map((played) => el('section', {},
    el('h3', {}, t(played.cured ? 'cured' : 'flaw')), el('p', { class: 'say' }, verdict(played)), ...picture(played)))));
}

/** @param {string[]} slugs */
async function load(slugs) {
  for (const lesson of await api.deadlocks().catch(() => [])) known.set(lesson.slug, lesson);
  if (known.has(slugs[0])) draw(slugs);
}

/** The flaw, and then its cure. @param {string[]} slugs */
async function play(slugs) {
  if (playing) return;
  playing = true;
  draw(slugs);
  try {
    const both = [await api.playDeadlock(slugs[0], false), await api.playDeadlock(slugs[0], true)];
    plays.set(slugs[0], { both, why: '' });
  } catch (error) {
    plays.set(slugs[0], { both: [], why: reason(/** @type {any} */ (error)) });
  }
  playing = false;
  // Another lesson may be on show by now; it is drawn when this one is.
  if (JSON.parse(shown)[1] === slugs[0]) draw(slugs);
}

/** @param {Played} played */
const verdict = ({ victim, error, committed }) => t(victim ? 'deadlockVictim' : 'deadlockNone', { victim, error, committed });

/** A row for each statement, a column for each transaction. @param {Played} played */
function picture(played) {
  const head = el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, el('span', { class: 'unseen' }, t('deadlockOrder'))),
    ...SIDES.map((side) => el('th', { scope: 'col' }, side))));
  const rows = played.steps.map((step, i) => el('tr', {}, el('th', { scope: 'row' }, String(i + 1)), ...SIDES.map((side) => cell(played, step, i, side))));
  const table = el('table', { class: 'statements' }, el('caption', { class: 'unseen' }, t('deadlockOrder')), head, el('tbody', {}, ...rows));
  return [table, ...plans(played), ...account(played)];
}

/** @param {Played} played @param {Step} step @param {number} i @param {Side} side */
function cell({ steps }, step, i, side) {
  if (step.side === side) {
    const notes = [
      step.waited_until ? t('deadlockWaits', step.waited_until) : '',
      step.error ? t('deadlockError', step.error) : '',
      // The server counts the lock that is waited for, too.
      step.row_locks && !step.waited_until ? t('deadlockRows', step.row_locks) : '',
    ].filter(Boolean).join(t('comma'));
    return el('td', { class: step.error ? 'victim' : step.waited_until ? 'begins' : '' }, el('code', {}, plain(step.sql)), notes && el('span', { class: 'note' }, notes));
  }
  const waits = steps.some((s, at) => s.side === side && at < i && s.waited_until && i < s.waited_until);
  return el('td', { class: waits ? 'waits' : '' }, waits ? el('span', { class: 'unseen' }, t('laneNow', 'waits')) : '');
}

/** The table has a name of its own at each play. @param {string} sql */
const plain = (sql) => sql.replaceAll(/`?\b(?:\w+`?\.`?)?deadlock_[0-9a-f]+`?/g, 'goods');

/** @param {Played} played */
const plans = ({ plans: all }) => all.map(({ when, type, key, rows }) =>
  el('p', {}, t('deadlockPlan', { indexed: when.startsWith('after'), type: type ?? 'NULL', key: key ?? 'NULL', rows: rows ?? '?' })));

/** The server's own account of the deadlock: in words, and as it stands there. @param {Played} played */
function account(played) {
  const text = played.latest_deadlock;
  if (!text) return [];
  const said = accountOf(text);
  const other = played.victim === 'A' ? 'B' : 'A';
  const who = (/** @type {number} */ n) => (n === said.rolledBack ? played.victim : other);
  const locks = said.transactions.flatMap(({ number, waits }) => waits.map((lock) =>
    el('li', {}, t('deadlockWants', who(number), t('deadlockLock', lock), who(number) === 'A' ? 'B' : 'A'))));
  const ended = said.rolledBack ? [el('li', {}, t('deadlockEnded', played.victim, other))] : [];
  const words = said.rolledBack && locks.length ? [el('h3', {}, t('deadlockAccount')), el('ul', { class: 'account' }, ...locks, ...ended)] : [];
  return [...words, el('details', {}, el('summary', {}, 'SHOW ENGINE INNODB STATUS'), el('pre', { class: 'raw', tabindex: '0' }, plain(text)))];
}
