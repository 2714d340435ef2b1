/** The lessons of ninety minutes, in order, each with a race; and which of them were finished. */

import { localStore } from '../shared/storage.js';

/** A lesson, and about how many minutes it takes in class. @type {readonly (readonly [string, number])[]} */
export const NINETY_MINUTES = [
  ['1.1', 8], ['1.6', 8], ['1.7.2', 7], ['1.7.3', 7], ['2.2', 7], ['2.3', 9], ['2.3.gap', 6],
  ['2.7', 7], ['2.10.6', 6], ['3.4.2.herd', 6], ['4.3.2', 6], ['003.pause', 8], ['002.new-mutex', 5],
];

/** @returns {string[]} */
const finishedIds = () => localStore.get('seen') ?? [];

/** A lesson is finished once its race was played to the end. @param {string} id */
export function markFinished(id) {
  if (NINETY_MINUTES.some(([own]) => own === id) && !finishedIds().includes(id)) localStore.set('seen', [...finishedIds(), id]);
}

/** @param {string} id */
export const isFinished = (id) => finishedIds().includes(id);

/** How many are finished, and how many minutes the others take. */
export function progress() {
  const left = NINETY_MINUTES.filter(([id]) => !isFinished(id));
  return { seen: NINETY_MINUTES.length - left.length, all: NINETY_MINUTES.length, minutes: left.reduce((sum, [, minutes]) => sum + minutes, 0) };
}

/** The position of a lesson, from 1; 0: it is not one of them. @param {string} id */
export const positionOf = (id) => NINETY_MINUTES.findIndex(([own]) => own === id) + 1;

/** The next of them; null for the last, and for other lessons. @param {string} id */
export const nextAfter = (id) => (positionOf(id) ? NINETY_MINUTES[positionOf(id)]?.[0] ?? null : null);
