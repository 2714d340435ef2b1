/** The limits of a run's settings, as the service has them: a wrong number is refused in its field. Pure. */

/** @typedef {'threads' | 'loops' | 'hold_ms' | 'count'} Field */
/** A broken rule: the name of its text, and its arguments. @typedef {[string, ...number[]]} BrokenRule */
/** @typedef {Record<Field, number>} Numbers */

/** @type {Record<Field, [number, number]>} */
export const LIMITS = { threads: [1, 1000], loops: [1, 10_000], hold_ms: [0, 60_000], count: [0, 1_000_000] };
export const FIELDS = /** @type {Field[]} */ (Object.keys(LIMITS));

const MAX_REQUESTS = 100_000;
/** All holds one after the other: ten minutes. */
const MAX_TOTAL_HOLD_MS = 600_000;

/**
 *
 * @param {Record<Field, string>} typed
 * @returns {{numbers: Numbers, wrong: Partial<Record<Field, BrokenRule>>}} `numbers` are valid if nothing is wrong
 */
export function checkSettings(typed) {
  /** @type {Partial<Record<Field, BrokenRule>>} */
  const wrong = {};
  const numbers = { threads: 0, loops: 0, hold_ms: 0, count: 0 };
  for (const name of FIELDS) {
    const [least, most] = LIMITS[name];
    const text = typed[name].trim();
    numbers[name] = Number(text);
    if (!/^\d+$/.test(text) || numbers[name] < least || numbers[name] > most) wrong[name] = ['ruleWhole', least, most];
  }
  const requests = numbers.threads * numbers.loops;
  if (!wrong.threads && !wrong.loops) {
    if (requests > MAX_REQUESTS) wrong.loops = ['ruleRequests', requests, MAX_REQUESTS];
    else if (requests * numbers.hold_ms > MAX_TOTAL_HOLD_MS) wrong.hold_ms ??= ['ruleHeld', (requests * numbers.hold_ms) / 1000, MAX_TOTAL_HOLD_MS / 1000];
  }
  return { numbers, wrong };
}
