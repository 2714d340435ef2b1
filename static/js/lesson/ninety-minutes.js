/** The twelve lessons of ninety minutes, in order: what everybody should have seen; and which of them were. The others are by chapter. */

import { localStore } from '../shared/storage.js';

/** A lesson's number, and about how many minutes it takes in class. @type {readonly (readonly [string, number])[]} */
export const NINETY_MINUTES = [
  ['1.1', 8], ['1.5', 6], ['1.6', 8], ['1.7.2', 8], ['1.7.3', 8], ['2.2', 8],
  ['2.3', 10], ['2.3.gap', 6], ['2.7', 8], ['3.4.2.herd', 6], ['003.pause', 8], ['002.new-mutex', 6],
];

/** @returns {string[]} */
const finishedIds = () => localStore.get('seen') ?? [];

/** Its race was played to its end. @param {string} id */
export function markFinished(id) {
  if (NINETY_MINUTES.some(([own]) => own === id) && !finishedIds().includes(id)) localStore.set('seen', [...finishedIds(), id]);
}

/** @param {string} id */
export const isFinished = (id) => finishedIds().includes(id);

/** How many were seen, and how many minutes the others take. */
export function progress() {
  const left = NINETY_MINUTES.filter(([id]) => !isFinished(id));
  return { seen: NINETY_MINUTES.length - left.length, all: NINETY_MINUTES.length, minutes: left.reduce((sum, [, minutes]) => sum + minutes, 0) };
}

/** Where a lesson stands in it, from 1; 0: nowhere. @param {string} id */
export const positionOf = (id) => NINETY_MINUTES.findIndex(([own]) => own === id) + 1;

/** The one after this; null where it is not in it, or the last. @param {string} id */
export const nextAfter = (id) => (positionOf(id) ? NINETY_MINUTES[positionOf(id)]?.[0] ?? null : null);
