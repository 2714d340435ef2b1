/**
 * The teacher's desk: who is there, which lesson each is at, their races, and what waits. It calls everybody to a lesson or to a student's
 * race, and ends what waits.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { $, el, replaceKeepingFocus, setText } from '../shared/dom.js';
import { currentLanguage, errorText, t } from '../shared/language.js';
import { numberOf } from '../lesson/lesson-number.js';

/** @typedef {import('./presence.js').WatchedReplay} WatchedReplay */
/** @typedef {{lesson: string, running: boolean, replays: WatchedReplay[]}} Race the newest flaw and cure */
/** @typedef {{number: number, who: string | null, lesson: string, own: boolean, races: Race[]}} Visitor */
/** @typedef {{what: string, number: number | null, who: string | null, starts_in_ms: number}} Waiting */
/** @typedef {Map<string, {title: Record<'zh' | 'en', string>}>} Titles */

const INTERVAL_MS = 2000;

/** @type {{visitors: Visitor[], waiting: Waiting[]} | null} */
let desk = null;
let isTokenWanted = false;
/** @type {Titles} */
let titles = new Map();
let lastDrawn = '';
/** What was done last, or why not; in the page's language. */
let said = () => '';

/** @param {{who: string | null, number: number | null}} one */
const nameOf = ({ who, number }) => who ?? (number == null ? t('deskSomebody') : t('classVisitor', number));
/** @param {string} id */
const titleOf = (id) => `${numberOf(id)} ${titles.get(id)?.title[currentLanguage()] ?? ''}`;

/** @param {Titles} of all lessons @param {string} shown the lesson on show */
export function drawLessons(of, shown) {
  titles = of;
  const chosen = $('desk-lesson').value || shown;
  $('desk-lesson').replaceChildren(...[...titles.keys()].map((id) => el('option', { value: id, selected: id === chosen }, titleOf(id))));
  lastDrawn = '';
  draw();
}

function draw() {
  setText($('desk-say'), said());
  const now = JSON.stringify([currentLanguage(), desk, isTokenWanted]);
  if (now === lastDrawn) return;
  lastDrawn = now;
  // The teacher's own browser is no student.
  const visitors = desk?.visitors.filter((one) => !one.own) ?? [];
  const waiting = desk?.waiting ?? [];
  setText($('desk-summary'), isTokenWanted ? t('deskToken') : t('deskSummary', visitors.length, waiting.length));
  $('desk-tools').hidden = isTokenWanted;
  setText($('desk-clear'), t('deskClear', waiting.length));
  $('desk-clear').hidden = waiting.length === 0;
  $('desk-waiting').replaceChildren(...waiting.map((one) => el('li', {}, t('deskWaits', nameOf(one), one.what, Math.ceil(one.starts_in_ms / 1000)))));
  replaceKeepingFocus($('desk-visitors'), visitors.map((one) => el('li', { 'data-visitor': one.number }, el('b', {}, nameOf(one)), ` ${titleOf(one.lesson)} `, ...one.races.map((race) => showButton(one, race)))));
}

/** @param {Visitor} visitor @param {Race} race */
function showButton(visitor, { lesson, running, replays }) {
  const button = el('button', { 'data-key': `${visitor.number} ${lesson}`, 'data-race': lesson }, t('deskShow', numberOf(lesson), running));
  button.addEventListener('click', () => call(lesson, replays, () => t('deskShown', nameOf(visitor), numberOf(lesson))));
  return button;
}

/** @param {string} lesson @param {WatchedReplay[]} replays @param {() => string} done what is said then */
const call = (lesson, replays, done) => act(() => api.callClass({ lesson, replays: replays.map(({ id }) => id) }).then(() => done));

/** Says what was done, or why not. @param {() => Promise<() => string>} does */
async function act(does) {
  try {
    said = await does();
  } catch (error) {
    if (!admin.askForToken(error, $('desk-admin'), () => act(does))) said = () => errorText(/** @type {any} */ (error));
  }
  await ask();
}

async function ask() {
  try {
    [desk, isTokenWanted] = [await api.classDesk(), false];
  } catch (error) {
    [desk, isTokenWanted] = [null, /** @type {any} */ (error).status === 401];
  }
  draw();
}

/** Asks for the desk, and for the token where it is wanted. */
async function open() {
  if (!$('desk').open) return;
  await ask();
  if (isTokenWanted) admin.askForToken({ status: 401 }, $('desk-admin'), open);
}

/** Asks while the page is visible. @param {() => boolean} isDesk */
async function poll(isDesk) {
  if (!document.hidden && isDesk() && !isTokenWanted) await ask();
  setTimeout(poll, INTERVAL_MS, isDesk);
}

/** @param {() => boolean} isDesk whether this page is a desk now */
export function listen(isDesk) {
  $('desk-call').onclick = () => {
    const lesson = $('desk-lesson').value;
    call(lesson, [], () => t('deskCalled', numberOf(lesson)));
  };
  $('desk-clear').onclick = () => act(async () => {
    const ended = await api.clearQueue();
    return () => t('deskCleared', ended);
  });
  $('desk').addEventListener('toggle', open);
  poll(isDesk);
}
