/** Sends visitors: their names, and the requests. */

import * as api from '../shared/api.js';
import { errorText, t } from '../shared/language.js';
import { isEnter, isLeave } from './class-lessons.js';

/** @typedef {import('./class-lessons.js').Action} Action */
/** @typedef {import('./visits.js').Visit} Visit */

/** Long enough for a class: thirty visitors of five seconds each, three at a time, take fifty seconds. */
const WAIT_MS = 600_000;
/** Roles of one person each. */
const SINGLE_ROLES = ['monitor', 'teacher'];

/** The highest number given with each name: a second press sends others. @type {Map<string, number>} */
const numbers = new Map();

/** @param {string} who @param {number} many @param {Visit[]} visits known visits, those of other pages included @returns {string[]} */
function nextNames(who, many, visits) {
  const word = t('classWho', who);
  if (SINGLE_ROLES.includes(who)) return [word];
  const numbersGiven = visits.filter((visit) => visit.who.startsWith(`${word} `)).map((visit) => Number(visit.who.slice(word.length + 1)) || 0);
  const last = Math.max(numbers.get(word) ?? 0, ...numbersGiven);
  numbers.set(word, last + many);
  return Array.from({ length: many }, (_, i) => `${word} ${last + 1 + i}`);
}

/** The visits that have entered and not left; each has its node's name. @param {Visit[]} visits */
const insideNow = (visits) => visits.filter((visit) => isEnter(visit.route) && visit.member && !visit.lost
  && !visits.some((v) => isLeave(v.route) && v.who === visit.who && v.from >= visit.from));

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** From the desk: the service sends them, since a browser has six connections. @param {Action} action @param {Visit[]} visits @returns {Promise<string>} the error, or an empty text */
export async function sendFromDesk({ visit, many, who, hold_ms, members, apart_ms }, visits) {
  const term = { visit, hold_ms, members, wait_ms: WAIT_MS };
  const requests = isLeave(visit)
    ? insideNow(visits).map((one) => api.sendVisitors({ ...term, names: [one.who], member: one.member }))
    : apart_ms == null ? [api.sendVisitors({ ...term, names: nextNames(who, many, visits) })]
      : nextNames(who, many, visits).map((name, i) => pause(i * apart_ms).then(() => api.sendVisitors({ ...term, names: [name] })));
  return failureText(Promise.all(requests));
}

/** From a phone: one request under the own name. @param {Action} action @param {string} who @param {Visit[]} visits @returns {Promise<string>} the error, or an empty text */
export function visitFromPhone({ visit, hold_ms, members }, who, visits) {
  const own = isLeave(visit) ? insideNow(visits).findLast((one) => one.who === who) : undefined;
  const query = new URLSearchParams({ who });
  for (const [name, value] of Object.entries({ hold_ms, members, member: own?.member, wait_ms: WAIT_MS })) if (value != null) query.set(name, String(value));
  return failureText(api.requestText(`${visit}?${query}`));
}

/** @param {Promise<any>} requests */
const failureText = (requests) => requests.then(() => '', (error) => errorText(error));
