/** What can be known of a run before it, from promise, target, threads, hold, lease and stock. Pure. */

/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../page/address.js').Settings} Settings */

/** How long a request waits for a lock by default. */
const LOCK_WAIT_MS = 30_000;
/** Fewer requests without any hold may miss each other. */
const FEW_REQUESTS = 20;

/** The name of the sentence that holds, and its arguments. @param {Strategy} strategy @param {Settings} settings @returns {[string, ...any[]]} */
export function prediction({ slug, promise, lease_ms }, settings) {
  const { target, threads, loops, hold_ms, count } = settings;
  const requests = threads * loops;
  const n = Math.min(requests, count);
  if (count === 0) return ['willSellNone'];
  if (threads === 1) return ['willBeExact', n];
  if (slug.endsWith('-as-printed')) return ['mayDiffer'];
  if (promise === 'unsafe' || (promise === 'one-process' && target === 'three')) {
    if (hold_ms === 0 && requests < FEW_REQUESTS) return ['mayOversell', n];
    return requests > count ? ['willSellTooMany', count] : ['willOversell', n];
  }
  // A hold longer than the lease lets another in, however many wait.
  if (lease_ms != null && hold_ms >= lease_ms) return ['willOutlive', lease_ms / 1000, hold_ms / 1000];
  if (hold_ms * threads > LOCK_WAIT_MS) return ['willWaitTooLong', Math.round((hold_ms * threads) / 1000), LOCK_WAIT_MS / 1000];
  if (promise === 'lease' && lease_ms === undefined && hold_ms > 0) return ['exactWithinLease', n];
  return ['willBeExact', n];
}

/**
 * About how long it will take, in seconds; null if unknown. Holds under a lock follow one another; the rate is that of the last such run,
 * or else that of the strategy on a small machine.
 * @param {Strategy} strategy @param {Settings} settings @param {number | undefined} perSecond
 */
export function expectedSeconds({ promise, pace }, { target, threads, loops, hold_ms }, perSecond) {
  const requests = threads * loops;
  const parallel = promise === 'one-process' && target === 'three' ? 3 : promise === 'unsafe' ? threads : 1;
  const holdSeconds = (hold_ms * requests) / parallel / 1000;
  const paceSeconds = perSecond || pace ? requests / (perSecond || pace) : 0;
  const seconds = Math.max(holdSeconds, paceSeconds);
  return seconds > 0 ? seconds : null;
}
