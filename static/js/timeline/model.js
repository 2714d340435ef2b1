/**
 * What a replay's events mean: lanes, wedges, steps and arrows. Pure: no drawing, no words of any language here.
 *
 * 1. Each actor (A, B, C) has a lane: it waits, is inside, stands still; where two are inside at once the bars overlap.
 * 2. Each lock has wedges: its owner, from when to when, and how much of its lease is left.
 * 3. The shelf and the row's fencing token are steps.
 * 4. Who deletes another's lock, and who is refused by the row, has an arrow.
 * 5. Who reads, and writes by what it has read although another has written since, carries a stale value: from that other's write
 *    to its own.
 * 6. A caption says what has happened: it stands from when the last of it has, and never before.
 *
 * All times are in microseconds since the replay began. Next: actor-lanes.js, how a lane's bars are found; layout.js.
 */

import { isActor, isForeignDelete, isInteger } from './events.js';
import { lanesOf } from './actor-lanes.js';
import { locksOf } from './lock-lanes.js';

/** @typedef {import('./events.js').ReplayEvent} ReplayEvent */
/** @typedef {{from: number, to: number}} Span */
/**
 * `waits`; `inside`; `shared`: inside with others, as is allowed; `vain`: it tried, and another was faster; `shut`: it
 * believes to be inside, but the row has seen a newer token; `leaves`: it has written and not unlocked yet.
 * @typedef {Span & {kind: 'waits' | 'inside' | 'shared' | 'vain' | 'shut' | 'stopped' | 'leaves', open: boolean}} Bar
 */
/** A number that is no longer so, from another's write to one's own; `read`: when it was read. @typedef {Span & {value: string, read: number}} Carry */
/** A moment on a lane, with what is said of it. @typedef {{at: number, event: ReplayEvent, red: boolean}} Tick */
/** @typedef {{actor: string, instance: string, token: number, runs: string, bars: Bar[], overlaps: Span[], carries: Carry[], ticks: Tick[]}} Lane */
/** @typedef {{at: number, pttl: number}} Left how much of the lease was left then, in ms; -1: there is no lease */
/** @typedef {Span & {owner: string, left: Left[], counts: {at: number, count: number}[]}} Wedge */
/** @typedef {{key: string, wedges: Wedge[], queue: {at: number, names: string[]}[]}} LockLane */
/** `by`: whose write it is, where that is known. @typedef {{at: number, value: string, red: boolean, by?: ReplayEvent}} Step */
/** @typedef {{at: number, from: string, to: 'lock' | 'row', key: string, owner: string, event: ReplayEvent}} Arrow */
/** @typedef {{at: number, zh: string, en: string}} Caption */
/**
 * @typedef {object} Model
 * @property {number} end the last moment
 * @property {Lane[]} lanes
 * @property {LockLane[]} locks
 * @property {Step[]} shelf
 * @property {Step[]} row
 * @property {Arrow[]} arrows
 * @property {Caption[]} captions
 * @property {number[]} moments when something happens, in order
 * @property {boolean} [compact] many lanes, without words: one line for each
 */

/** The shelf is looked at again and again; a look so soon after a write may have seen what was there before. */
const STALE_LOOK_US = 150_000;

/**
 * @param {ReplayEvent[]} events in any order
 * @param {number} [now] how far it has come; by default to its last event
 * @param {number} [room] so many may be inside at once: the permits of a semaphore, readers
 * @param {{live?: boolean, actors?: string[]}} [how] `live`: what happens just now is not over; `actors`: who will have a lane
 * @returns {Model}
 */
export function modelOf(events, now = 0, room = 1, { live = false, actors = [] } = {}) {
  const all = events.toSorted((a, b) => a.t_us - b.t_us).filter((e) => e.event !== 'sent' && e.event !== 'stands');
  const end = Math.max(now, all.at(-1)?.t_us ?? 0);
  const row = stepsOf(all.filter((e) => e.actor === 'row' && e.token != null), (e) => String(e.token));
  // Of what is not sold there is no shelf.
  const sells = all.some((e) => e.actor === 'stock' || e.event === 'sold');
  const shelf = sells ? shelfOf(all) : [];
  const lanes = lanesOf(all, end, shelf, room, actors);
  return {
    end, lanes, shelf, row,
    locks: locksOf(all, end),
    arrows: all.flatMap(arrowsOf),
    captions: captionsOf(all, live),
    moments: [...new Set(all.map((e) => e.t_us))],
  };
}

/** The first of each run of equal values. @param {ReplayEvent[]} events @param {(e: ReplayEvent) => string} value */
function stepsOf(events, value) {
  /** @type {Step[]} */
  const steps = [];
  for (const e of events) {
    if (steps.at(-1)?.value !== value(e)) steps.push({ at: e.t_us, value: value(e), red: false });
  }
  return steps;
}

/**
 * The shelf, by those who write it and by who looks at it. A write that leaves no fewer than there were has sold a piece
 * that did not leave: it is red.
 * @param {ReplayEvent[]} all
 */
function shelfOf(all) {
  /** @type {Step[]} */
  const steps = [];
  const written = all.filter((e) => isActor(e) && e.event === 'written' && isInteger(e.value));
  for (const e of all) {
    const wrote = written.includes(e);
    if (!wrote && !(e.actor === 'stock' && isInteger(e.value))) continue;
    const value = String(e.value);
    const last = steps.at(-1);
    const known = written.some((w) => w.t_us <= e.t_us && e.t_us - w.t_us <= STALE_LOOK_US);
    if (!wrote && last && (known || last.value === value)) continue;
    // Who looked may have seen it before the writer says so.
    if (wrote && last && !last.by && last.value === value && steps.length > 1) last.by = e;
    else steps.push({ at: e.t_us, value, red: last != null && Number(value) >= Number(last.value), by: wrote ? e : undefined });
  }
  return steps;
}

/** @param {ReplayEvent} e @returns {Arrow[]} */
function arrowsOf(e) {
  const base = { at: e.t_us, from: e.actor, key: e.key ?? '', owner: e.owner ?? '', event: e };
  if (isForeignDelete(e)) return [{ ...base, to: 'lock' }];
  if (isActor(e) && e.event === 'refused-by-row') return [{ ...base, to: 'row' }];
  return [];
}

/** What happens too often, or too silently, to hold a caption back. */
const INCIDENTAL = ['refused', 'waits', 'renew', 'renewed', 'retries', 'queue', 'woken'];
/** What takes longer is told of as soon as it begins. */
const MAX_CAPTION_DELAY_US = 1_500_000;

/** Each at the last of what it speaks about; of what goes on just now nothing is said yet. @param {ReplayEvent[]} all @param {boolean} live @returns {Caption[]} */
function captionsOf(all, live) {
  const said = all.flatMap((e, i) => (e.actor === 'step' ? [i] : []));
  return said.flatMap((i, n) => {
    const next = said[n + 1];
    if (next == null && live) return [];
    const about = all.slice(i + 1, next).filter((e) => !INCIDENTAL.includes(e.event)).map((e) => e.t_us);
    const at = about.findLast((t) => t - about[0] <= MAX_CAPTION_DELAY_US) ?? all[next ?? i].t_us;
    return [{ ...captionOf(all[i]), at }];
  });
}

/** @param {ReplayEvent} e @returns {Caption} */
function captionOf(e) {
  try {
    const { zh = '', en = '' } = JSON.parse(e.value ?? '');
    return { at: e.t_us, zh, en };
  } catch {
    return { at: e.t_us, zh: e.value ?? '', en: e.value ?? '' };
  }
}
