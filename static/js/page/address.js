/**
 * The address holds the state: `#/2.3?target=three&threads=100&loops=50&hold_ms=0`.
 *
 * The first part is the lesson's number, or another view (`compare`). A lesson of several strategies names one (`strategy=`) unless it is
 * the first. `count` is written only where it is not 5000.
 */

import { FIELDS, checkSettings } from '../run/setting-limits.js';

/** @typedef {import('../run/setting-limits.js').Field} Field */
/** @typedef {{target: 'one' | 'three', threads: number, loops: number, hold_ms: number, count: number}} Settings */
/** @typedef {Record<Field, string>} Typed the fields' text, right or wrong */

/** Settings that show a lesson's claim where the defaults do not. @type {Record<string, Partial<Settings>>} */
const PRESETS = {
  1.1: { threads: 2, loops: 1, hold_ms: 200, count: 5 }, 1.3: { threads: 1 }, 1.4: { target: 'one' }, 1.5: { target: 'one' },
  // Each hold is longer than the lease.
  2.3: { threads: 4, loops: 1, hold_ms: 3500 }, '001.expire': { threads: 4, loops: 1, hold_ms: 3500 },
};

/** Whether this lesson has settings of its own: then a run with them shows its claim. @param {string} id */
export const hasOwnSettings = (id) => id in PRESETS;

/** Whether this lesson has one buyer. @param {string} id */
export const isOneBuyer = (id) => PRESETS[id]?.threads === 1;

/** @type {Settings} */
export const DEFAULT_SETTINGS = { target: 'three', threads: 100, loops: 50, hold_ms: 0, count: 5000 };

/**
 *
 * @param {string} hash
 * @returns {{name: string, strategy: string | null, target: 'one' | 'three', typed: Typed, asksForRun: boolean}} what is missing is the lesson's preset
 *   or the default; `asksForRun`: it has settings
 */
export function parseAddress(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parameters = new URLSearchParams(query);
  // Old addresses of races.
  const name = decodePath(path).replace(/^replay\//, '');
  const own = { ...DEFAULT_SETTINGS, ...PRESETS[name] };
  const typed = { threads: '', loops: '', hold_ms: '', count: '' };
  for (const field of FIELDS) typed[field] = parameters.get(field) ?? String(own[field]);
  const target = parameters.get('target') ?? own.target;
  return { name, strategy: parameters.get('strategy'), target: target === 'one' ? 'one' : 'three', typed, asksForRun: parameters.size > 0 };
}

/** The settings; null if one of them is wrong. @param {'one' | 'three'} target @param {Typed} typed @returns {Settings | null} */
export function settingsOf(target, typed) {
  const { numbers, wrong } = checkSettings(typed);
  return Object.keys(wrong).length ? null : { target, ...numbers };
}

/** @param {string} name @param {Settings} settings @param {string | null} [strategy] @returns {string} */
export function formatAddress(name, { target, threads, loops, hold_ms, count }, strategy = null) {
  const query = new URLSearchParams({ target, threads: String(threads), loops: String(loops), hold_ms: String(hold_ms) });
  if (count !== DEFAULT_SETTINGS.count) query.set('count', String(count));
  if (strategy) query.set('strategy', strategy);
  return `#/${encodeURIComponent(name)}?${query}`;
}

/** @param {string} path */
function decodePath(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
