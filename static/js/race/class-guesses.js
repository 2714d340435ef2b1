/**
 * The class guesses before a race is played: phones that have the class's page open are asked, and how many have guessed what stands
 * beside each answer. Of one person the last guess counts.
 */

import * as api from '../shared/api.js';
import { follow } from '../class/class-stream.js';

/** The lesson whose race is guessed; nothing: the class is not asked. */
let lesson = '';
let following = false;
/** By who guesses. @type {Map<string, number>} */
const guesses = new Map();
let changed = () => {};

/** Asks the class. @param {string} id @param {() => void} then another guess has come */
export async function ask(id, then) {
  lesson = id;
  changed = then;
  guesses.clear();
  if (!following) follow({ begin: () => guesses.clear(), told, lost: () => {} });
  following = true;
  await api.showLesson(id);
}

/** @param {import('../class/visits.js').Told} event */
function told({ event, key, actor = '', value }) {
  if (key !== lesson) return;
  if (event === 'lesson') guesses.clear();
  else if (event === 'guess') guesses.set(actor, Number(value));
  else return;
  changed();
}

/** Is the class asked about this one? @param {string} id */
export const isAsked = (id) => lesson === id && id !== '';
/** About any. */
export const isOpen = () => lesson !== '';
/** @param {number} n */
export const count = (n) => [...guesses.values()].filter((one) => one === n).length;
export const all = () => guesses.size;
