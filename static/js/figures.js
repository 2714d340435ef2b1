/** The arithmetic of the page: what was sold, what left the shelf, and the difference. No drawing here. */

/** @typedef {import('./api.js').Run} Run */

/**
 * @param {Run} run
 * @returns {{sold: number, gone: number | null, over: number | null, full: number}}
 *   `full`: the number that a whole bar stands for; null: not known yet
 */
export function figures({ plan, snapshot, shelf, row }) {
  const full = (/** @type {number} */ sold) => Math.max(1, Math.min(plan.threads * plan.loops, plan.count), sold);
  if (row) return { sold: row.sold, gone: row.before - row.after, over: row.oversold, full: full(row.sold) };
  const sold = snapshot.sold;
  const gone = shelf == null ? null : plan.count - shelf;
  return { sold, gone, over: gone == null ? null : inFlight(sold - gone, plan.threads), full: full(sold) };
}

/**
 * While it runs, shelf and answers are not read in the same instant: each thread may have one request on its way.
 * A difference no larger than that says nothing yet.
 * @param {number} difference @param {number} threads
 */
const inFlight = (difference, threads) => (difference > threads ? difference : 0);

/** Will this show an oversell? One thread alone is never interrupted. @param {string} promise @param {{target: string, threads: number}} settings */
export function willOversell(promise, { target, threads }) {
  return threads > 1 && (promise === 'unsafe' || (promise === 'one-process' && target === 'three'));
}

/** Seconds that a run still needs, by its pace so far; 0 where that cannot be told. @param {Run['snapshot']} snapshot */
export function secondsLeft({ samples, planned, elapsed_ms }) {
  return samples > 0 ? Math.ceil((elapsed_ms * (planned - samples)) / samples / 1000) : 0;
}

/** How many of them are kept: the picture has room for no more. */
export const PACES = 30;

/**
 * Answers per second between two snapshots: the throughput of the service is an average over the whole run.
 * @param {Run['snapshot']} earlier @param {Run['snapshot']} later
 */
export function paceBetween(earlier, later) {
  const ms = later.elapsed_ms - (earlier?.elapsed_ms ?? 0);
  return ms > 0 ? ((later.samples - (earlier?.samples ?? 0)) * 1000) / ms : null;
}
