/**
 * The class guesses before a race is played: phones with the class's page are asked, and each answer shows how many chose it. A person's
 * last guess counts.
 */

import * as api from '../shared/api.js';
import { follow } from '../shared/event-stream.js';

/** The lesson whose race is guessed; empty: none. */
let askedLesson = '';
let isFollowing = false;
/** By person. @type {Map<string, number>} */
const guesses = new Map();
let onGuess = () => {};

/** @param {string} id @param {() => void} then called on each guess */
export async function askClass(id, then) {
  askedLesson = id;
  onGuess = then;
  guesses.clear();
  if (!isFollowing) follow('classroom/events', { message: handleEvent }, { opened: () => guesses.clear() });
  isFollowing = true;
  await api.showLesson(id);
}

/** @param {import('../class/visits.js').ClassEvent} event */
function handleEvent({ event, key, actor = '', value }) {
  if (key !== askedLesson) return;
  if (event === 'lesson') guesses.clear();
  else if (event === 'guess') guesses.set(actor, Number(value));
  else return;
  onGuess();
}

/** The race has ended: phones say the answer. */
export const end = () => api.endLesson(askedLesson).catch(() => {});

/** @param {string} id */
export const isAsked = (id) => askedLesson === id && id !== '';
export const isAnyAsked = () => askedLesson !== '';
/** @param {number} n */
export const countOf = (n) => [...guesses.values()].filter((one) => one === n).length;
export const total = () => guesses.size;
