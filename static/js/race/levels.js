/** The levels of the scheduler, from no lock to a token, and what was won: the fewest presses by hand, kept in the browser. */

import { $, el } from '../shared/dom.js';
import { localStore } from '../shared/storage.js';
import { currentLanguage, t } from '../shared/language.js';
import { nameOf } from '../lesson/lesson-number.js';
import { fewestPresses } from './fewest-presses.js';

/** @typedef {import('./race.js').Race} Race */

const LEVELS = ['1.1', '1.6', '1.7.2', '2.2', '2.6', '2.3', '2.3.gap', '2.7', '2.8', '3.6', '4.3.2', '003.deadlock.opposite-order', '003.pause'];

/** By lesson. @returns {Record<string, number>} */
const wonPresses = () => localStore.get('levels') ?? {};

/** @param {Race} race @param {number} presses */
export function recordWin({ lesson }, presses) {
  const won = wonPresses();
  if (LEVELS.includes(lesson)) localStore.set('levels', { ...won, [lesson]: Math.min(presses, won[lesson] ?? Infinity) });
}

/** What can be played here. @param {(lesson: string) => Race | null} raceOf @returns {Race[]} */
const playable = (raceOf) => LEVELS.flatMap((id) => raceOf(id) ?? []).filter(({ scheduled, cannot }) => scheduled && !cannot);

/** Draws the path; a level that is chosen keeps the scheduler open. @param {(lesson: string) => Race | null} raceOf @param {Race} shown @param {(lesson: string) => void} choose */
export function draw(raceOf, shown, choose) {
  const [won, lang] = [wonPresses(), currentLanguage()];
  const levels = playable(raceOf);
  const link = (/** @type {Race} */ race, /** @type {(Node | string)[]} */ ...parts) => {
    const a = el('a', { href: `#/${race.lesson}`, title: race.title[lang], 'aria-current': race === shown && 'step' }, ...parts);
    a.addEventListener('click', () => choose(race.lesson));
    return a;
  };
  const at = levels.indexOf(shown);
  const next = levels.find((race, i) => i > at && won[race.lesson] == null);
  $('schedule-levels').replaceChildren(...levels.map((race, i) => {
    const [presses, least] = [won[race.lesson], fewestPresses(race) ?? 0];
    return el('li', { 'data-won': presses == null ? '' : presses <= least ? 'best' : 'more' }, link(race, String(i + 1),
      ...(presses == null ? [] : [el('span', { 'aria-hidden': 'true' }, presses <= least ? '★' : '☆'), el('span', { class: 'unseen' }, t('scheduleLevelWon', presses, least))])));
  }), el('li', { class: 'dim' }, t('scheduleLevels', levels.filter(({ lesson }) => won[lesson] != null).length, levels.length)));
  $('schedule-next').replaceChildren(...(next && won[shown.lesson] != null ? [link(next, t('scheduleNextLevel', nameOf({ id: next.lesson, title: next.title }, lang)))] : []));
}
