/**
 * The class guesses before a race is played: phones that have the class's page open are asked, and how many have guessed what stands
 * beside each answer. Of one person the last guess counts.
 */

import * as api from '../shared/api.js';
import { follow } from '../shared/event-stream.js';

/** The lesson whose race is guessed; nothing: the class is not asked. */
let askedLesson = '';
let isFollowing = false;
/** By who guesses. @type {Map<string, number>} */
const guesses = new Map();
let onGuess = () => {};

/** Asks the class. @param {string} id @param {() => void} then another guess has come */
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

/** Is the class asked about this one? @param {string} id */
export const isAsked = (id) => askedLesson === id && id !== '';
/** About any. */
export const isAnyAsked = () => askedLesson !== '';
/** @param {number} n */
export const countOf = (n) => [...guesses.values()].filter((one) => one === n).length;
export const total = () => guesses.size;
