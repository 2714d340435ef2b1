/** The arithmetic: what was sold, what left the shelf, and the difference. Pure. */

/** Before this the rate of the last second is unknown. */
const MIN_ELAPSED_MS = 1500;
const NEARLY_ALL = 0.8;

/** @typedef {import('./runs.js').Run} Run */
/** @typedef {import('./runs.js').Snapshot} Snapshot */

/**
 *
 * @param {Run} run
 * @returns {{sold: number, gone: number | null, over: number | null, unsure: number, full: number}}
 *   `full`: the number of a full bar; null: not known yet; `unsure`: a difference that may only come from reading
 *   both at different moments
 */
export function figuresOf({ plan, snapshot, remaining, row }) {
  const full = (/** @type {number} */ sold) => Math.max(1, Math.min(plan.threads * plan.loops, plan.count), sold);
  if (row) return { sold: row.sold, gone: row.before - row.after, over: row.oversold, unsure: 0, full: full(row.sold) };
  const sold = snapshot.sold;
  const gone = remaining == null ? null : plan.count - remaining;
  if (gone == null) return { sold, gone, over: null, unsure: 0, full: full(sold) };
  // Each thread may have one request on its way: a smaller difference says nothing yet.
  const difference = sold - gone;
  const isCertain = difference > plan.threads;
  return { sold, gone, over: isCertain ? difference : null, unsure: isCertain ? 0 : Math.abs(difference), full: full(Math.max(sold, gone)) };
}

/** Seconds left at the present rate; 0 if unknown. @param {Snapshot} snapshot */
export function secondsLeft({ samples, planned, elapsed_ms }) {
  return samples > 0 ? Math.ceil((elapsed_ms * (planned - samples)) / samples / 1000) : 0;
}

/** How many rates the picture has room for. */
export const MAX_PACES = 30;

/** Answers per second between two snapshots. @param {Snapshot} earlier @param {Snapshot} later */
export function paceBetween(earlier, later) {
  const ms = later.elapsed_ms - (earlier?.elapsed_ms ?? 0);
  return ms > 0 ? ((later.samples - (earlier?.samples ?? 0)) * 1000) / ms : null;
}

/** Where unanswered requests wait while nothing is answered; null while something is. @param {Snapshot} snapshot @returns {{name: string | null, waiting: number, all: number} | null} `name`: the instance where nearly all wait */
export function stalledRequests({ under_way, unanswered, pace, elapsed_ms }) {
  const all = unanswered ?? 0;
  if (pace !== 0 || elapsed_ms < MIN_ELAPSED_MS || all < 2) return null;
  const [name, waiting] = Object.entries(under_way ?? {}).sort((a, b) => b[1] - a[1])[0] ?? ['', 0];
  return { name: waiting >= NEARLY_ALL * all ? name : null, waiting, all };
}

/** Does this result have other settings? @param {Run} run @param {import('../page/address.js').Settings} settings */
export const isStale = ({ plan }, { threads, loops, hold_ms, count }) =>
  plan.threads !== threads || plan.loops !== loops || plan.hold_ms !== hold_ms || plan.count !== count;
