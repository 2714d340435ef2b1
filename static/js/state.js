/**
 * The address holds the state: `#/2.3?target=three&threads=100&loops=50&hold_ms=0`.
 *
 * The first part names the lesson by its number in the course, or what else is on show (`compare`, `replay/2.3`). A lesson of
 * several strategies says which one (`strategy=`) where it is not the first. `count` is written only where it is not 5000.
 */

import { FIELDS, check } from './rules.js';

/** @typedef {import('./rules.js').Field} Field */
/** @typedef {{target: 'one' | 'three', threads: number, loops: number, hold_ms: number, count: number}} Settings */
/** @typedef {Record<Field, string>} Typed what the fields hold, right or wrong */

/** @type {Settings} */
export const DEFAULTS = { target: 'three', threads: 100, loops: 50, hold_ms: 0, count: 5000 };

/**
 * @param {string} hash
 * @returns {{name: string, strategy: string | null, target: 'one' | 'three', typed: Typed}} what is not there is the default
 */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const given = new URLSearchParams(query);
  const typed = { threads: '', loops: '', hold_ms: '', count: '' };
  for (const name of FIELDS) typed[name] = given.get(name) ?? String(DEFAULTS[name]);
  return { name: decoded(path), strategy: given.get('strategy'), target: given.get('target') === 'one' ? 'one' : 'three', typed };
}

/** The settings that were typed; null where one of them is wrong. @param {'one' | 'three'} target @param {Typed} typed @returns {Settings | null} */
export function settingsOf(target, typed) {
  const { numbers, wrong } = check(typed);
  return Object.keys(wrong).length ? null : { target, ...numbers };
}

/** @param {string} name @param {Settings} settings @param {string | null} [strategy] @returns {string} */
export function format(name, { target, threads, loops, hold_ms, count }, strategy = null) {
  const query = new URLSearchParams({ target, threads: String(threads), loops: String(loops), hold_ms: String(hold_ms) });
  if (count !== DEFAULTS.count) query.set('count', String(count));
  if (strategy) query.set('strategy', strategy);
  return `#/${encodeURIComponent(name)}?${query}`;
}

/** @param {string} path */
function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
