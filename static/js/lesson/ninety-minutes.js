/** The twelve lessons of ninety minutes, in order: what everybody should have seen; and which of them were. The others are by chapter. */

import { always } from '../shared/storage.js';

/** A lesson's number, and about how many minutes it takes in class. @type {readonly (readonly [string, number])[]} */
export const SPINE = [
  ['1.1', 8], ['1.5', 6], ['1.6', 8], ['1.7.2', 8], ['1.7.3', 8], ['2.2', 8],
  ['2.3', 10], ['2.3.gap', 6], ['2.7', 8], ['3.4.2.herd', 6], ['003.pause', 8], ['002.new-mutex', 6],
];

/** @returns {string[]} */
const seen = () => always.get('seen') ?? [];

/** Its race was played to its end. @param {string} id */
export function saw(id) {
  if (SPINE.some(([own]) => own === id) && !seen().includes(id)) always.set('seen', [...seen(), id]);
}

/** @param {string} id */
export const isSeen = (id) => seen().includes(id);

/** How many were seen, and how many minutes the others take. */
export function progress() {
  const left = SPINE.filter(([id]) => !isSeen(id));
  return { seen: SPINE.length - left.length, all: SPINE.length, minutes: left.reduce((sum, [, minutes]) => sum + minutes, 0) };
}

/** Where a lesson stands in it, from 1; 0: nowhere. @param {string} id */
export const placeOf = (id) => SPINE.findIndex(([own]) => own === id) + 1;

/** The one after this; null where it is not in it, or the last. @param {string} id */
export const after = (id) => (placeOf(id) ? SPINE[placeOf(id)]?.[0] ?? null : null);
