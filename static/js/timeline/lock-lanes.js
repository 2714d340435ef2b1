/**
 * The locks as their servers report them: wedges that shrink with the lease.
 *
 * 1. `held` begins a wedge; a further `held` of the same owner changes its count.
 * 2. `renewed` raises it again.
 * 3. `free`, `expired` or another owner ends it.
 * 4. `queue` lists the waiters in order.
 */

import { isActor } from './events.js';

/** @typedef {import('./events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('./model.js').LockLane} LockLane */
/** @typedef {import('./model.js').Wedge} Wedge */

const CLOCK_SLACK_US = 100_000;
const MIN_RENEWAL = 0.1;

/** @param {ReplayEvent[]} all sorted by time @param {number} end @returns {LockLane[]} */
export function locksOf(all, end) {
  /** @type {Map<string, LockLane>} */
  const locks = new Map();
  const actors = new Set(all.filter(isActor).map((e) => e.actor));
  for (const e of all.filter((e) => e.actor === 'lock')) {
    const key = e.key ?? '';
    const lock = locks.get(key) ?? { key, wedges: [], queue: [] };
    locks.set(key, lock);
    if (e.event === 'queue') lock.queue.push({ at: e.t_us, names: (e.value ?? '').split(/\s+/).filter(Boolean) });
    else applyEvent(lock, e, ownerOf(e, all, actors), end, all);
  }
  const seen = [...locks.values()].filter((lock) => lock.wedges.length > 0 || lock.queue.length > 0);
  // The nodes of a lock on several.
  const ordered = seen.length > 1 ? [...seen].sort((a, b) => nodeOf(a.key) - nodeOf(b.key)) : seen;
  return ordered.map((lock) => ({ ...lock, wedges: lock.wedges.map((wedge) => closeWedge(wedge, end, seen.length > 1 ? [] : all)) }));
}

/** `redis redLock` is the first node, `redis-2 redLock` the second; other keys count as 1. @param {string} key */
const nodeOf = (key) => Number(/^redis(?:-(\d+))? /.exec(key)?.[1] ?? 1);

/** @param {LockLane} lock @param {ReplayEvent} e @param {string} owner @param {number} end @param {ReplayEvent[]} all */
function applyEvent(lock, e, owner, end, all) {
  const at = e.t_us;
  const open = lock.wedges.filter((wedge) => wedge.to === Infinity);
  const current = open.find((wedge) => wedge.owner === owner) ?? open.at(-1) ?? null;
  const left = { at, pttl: e.pttl ?? -1 };
  if (e.event === 'free' || e.event === 'expired') {
    if (current) current.to = at;
  } else if (e.event === 'renewed') {
    if (current && isRenewal(current, left)) current.left.push(left);
  } else if (e.event === 'held') {
    const count = { at, count: Number(e.value ?? 1) || 1 };
    if (current?.owner === owner) {
      if (e.pttl != null) current.left.push(left);
      current.counts.push(count);
    } else {
      // Readers share the lock: each releases it later.
      for (const other of open) if (!isReleasedLater(other.owner, e, all)) other.to = Math.min(at, end);
      lock.wedges.push({ owner, from: at, to: Infinity, open: false, left: [left], counts: [count] });
    }
  }
}

/** Is its end reported later, before the same owner holds it again? @param {string} owner @param {ReplayEvent} held @param {ReplayEvent[]} all */
function isReleasedLater(owner, held, all) {
  const later = all.filter((e) => e.actor === 'lock' && e.key === held.key && e.owner === owner && e.t_us > held.t_us);
  return ['free', 'expired'].includes(later.find((e) => e.event !== 'renewed')?.event ?? '');
}

/** A lease is observed a little early or late: a real renewal raises it by more. @param {Wedge} wedge @param {import('./model.js').Left} left */
function isRenewal(wedge, left) {
  return left.pttl - leftAt(wedge, left.at) > wedge.left[0].pttl * MIN_RENEWAL;
}

/** The owner. A key may not name it (`111`) or name it late: then it is whoever acquired it just now. @param {ReplayEvent} held @param {ReplayEvent[]} all @param {Set<string>} actors */
function ownerOf(held, all, actors) {
  const acquisitions = all.filter((e) => isActor(e) && (e.event === 'taken' || e.event === 'locked') && e.t_us <= held.t_us + CLOCK_SLACK_US);
  const justNow = acquisitions.filter((e) => held.t_us - e.t_us <= CLOCK_SLACK_US).map((e) => e.actor);
  const reportedOwner = held.owner ?? '';
  if (actors.has(reportedOwner) && (justNow.length === 0 || justNow.includes(reportedOwner))) return reportedOwner;
  return justNow.at(-1) ?? acquisitions.at(-1)?.actor ?? reportedOwner.slice(0, 8);
}

/** A wedge without an end lasts until its owner has unlocked, or its lease is over. @param {Wedge} wedge @param {number} end @param {ReplayEvent[]} all @returns {Wedge} */
function closeWedge(wedge, end, all) {
  if (wedge.to !== Infinity) return wedge;
  const unlocked = all.findLast((e) => e.actor === wedge.owner && ['deleted', 'released'].includes(e.event) && e.t_us > wedge.from && wedge.counts.length === 1);
  if (unlocked) return { ...wedge, to: unlocked.t_us };
  const last = /** @type {{at: number, pttl: number}} */ (wedge.left.at(-1));
  const over = last.pttl < 0 ? end : Math.min(end, last.at + last.pttl * 1000);
  return { ...wedge, to: Math.max(over, wedge.from), open: over === end && leftAt(wedge, end) !== 0 };
}

/** The rest of the lease at this moment, in ms; -1: no lease. @param {Wedge} wedge @param {number} at */
export function leftAt(wedge, at) {
  const last = wedge.left.findLast((l) => l.at <= at) ?? wedge.left[0];
  return last.pttl < 0 ? -1 : Math.max(0, last.pttl - (at - last.at) / 1000);
}
