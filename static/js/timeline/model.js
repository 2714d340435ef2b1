/**
 * The meaning of a replay's events: lanes, wedges, steps and arrows. Pure: no drawing, no words of a language.
 *
 * 1. Each actor (A, B, C) has a lane: it waits, is inside, is stopped; where two are inside at once the bars overlap.
 * 2. Each lock has wedges: its owner, from when to when, and the rest of its lease.
 * 3. The shelf and the row's fencing token are steps.
 * 4. A foreign release, and a refusal by the row, is an arrow.
 * 5. A write based on a read that another write has made stale carries a stale value, from the other write to its own.
 * 6. A caption stands from the moment when the last of the events that it names has happened.
 *
 * All times are in microseconds since the replay began. Read on in actor-lanes.js and layout.js.
 */

import { TRANSPORT, isActor, isForeignDelete, isInteger, withoutVainWaits } from './events.js';
import { lanesOf } from './actor-lanes.js';
import { locksOf } from './lock-lanes.js';

/** @typedef {import('./events.js').ReplayEvent} ReplayEvent */
/** @typedef {{from: number, to: number}} Span */
/**
 * `shared`: inside with others, as is allowed; `vain`: an attempt that another beat; `shut`: it believes to be inside, but the row has seen
 * a newer token; `leaves`: it has written and not unlocked yet.
 * @typedef {Span & {kind: 'waits' | 'inside' | 'shared' | 'vain' | 'shut' | 'stopped' | 'leaves', open: boolean}} Bar
 */
/** A stale value, from another's write to one's own; `read`: when it was read. @typedef {Span & {value: string, read: number}} Carry */
/** A labelled moment on a lane. @typedef {{at: number, event: ReplayEvent, red: boolean}} Tick */
/** @typedef {{actor: string, instance: string, token: number, runs: string, bars: Bar[], overlaps: Span[], carries: Carry[], ticks: Tick[]}} Lane */
/** @typedef {{at: number, pttl: number}} Left the rest of the lease then, in ms; -1: no lease */
/** `open`: held to the end. @typedef {Span & {owner: string, open: boolean, left: Left[], counts: {at: number, count: number}[]}} Wedge */
/** @typedef {{key: string, wedges: Wedge[], queue: {at: number, names: string[]}[]}} LockLane */
/** `by`: the event that wrote it, if known. @typedef {{at: number, value: string, red: boolean, by?: ReplayEvent}} Step */
/** @typedef {{at: number, from: string, to: 'lock' | 'row', key: string, owner: string, event: ReplayEvent}} Arrow */
/** @typedef {{at: number, zh: string, en: string}} Caption */
/**
 *
 * @typedef {object} Model
 * @property {number} begin the first moment of an actor
 * @property {number} end the last moment
 * @property {Lane[]} lanes
 * @property {LockLane[]} locks
 * @property {Step[]} shelf
 * @property {Step[]} row
 * @property {Arrow[]} arrows
 * @property {Caption[]} captions
 * @property {number[]} moments the times of all events, sorted
 * @property {boolean} [compact] many lanes, without labels
 */

/** The shelf is polled: a reading this soon after a write may be of the time before. */
const STALE_LOOK_US = 150_000;

/**
 *
 * @param {ReplayEvent[]} events in any order
 * @param {number} [now] the time now; by default that of the last event
 * @param {number} [room] how many may be inside at once: permits, readers
 * @param {{live?: boolean, actors?: string[]}} [how] `live`: more events may come; `actors`: who has a lane in any case
 * @returns {Model}
 */
export function modelOf(events, now = 0, room = 1, { live = false, actors = [] } = {}) {
  const all = withoutVainWaits([...events].sort((a, b) => a.t_us - b.t_us)).filter((e) => !TRANSPORT.includes(e.event));
  const end = Math.max(now, all.at(-1)?.t_us ?? 0);
  const row = stepsOf(all.filter((e) => e.actor === 'row' && e.token != null), (e) => String(e.token));
  // Where nothing is sold there is no shelf.
  const sells = all.some((e) => e.actor === 'stock' || e.event === 'sold');
  const shelf = sells ? shelfOf(all) : [];
  const lanes = lanesOf(all, end, shelf, room, actors);
  return {
    begin: all.find(isActor)?.t_us ?? 0, end, lanes, shelf, row,
    locks: locksOf(all, end),
    arrows: all.flatMap(arrowsOf),
    captions: captionsOf(all, live ? end : Infinity),
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

/** The shelf, from writes and readings. A write that does not lower it has sold a piece that did not leave: it is red. @param {ReplayEvent[]} all */
function shelfOf(all) {
  /** @type {Step[]} */
  const steps = [];
  const written = all.filter((e) => isActor(e) && e.event === 'written' && isInteger(e.value));
  for (const e of all) {
    const wrote = written.includes(e);
    if (!wrote && !(e.actor === 'stock' && isInteger(e.value))) continue;
    const value = String(e.value);
    const last = steps.at(-1);
    const isRecentWrite = written.some((w) => w.t_us <= e.t_us && e.t_us - w.t_us <= STALE_LOOK_US);
    if (!wrote && last && (isRecentWrite || last.value === value)) continue;
    // The reading may come before the writer's event.
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

/** These come by themselves: no caption is about them unless it names them. */
const INCIDENTAL = ['start', 'refused', 'waits', 'renew', 'renewed', 'retries', 'queue', 'woken'];
/** A caption that names the end of a lease waits for it, however long the lease is. */
const LEASE_ENDS = ['expired', 'free'];
/** Words of a caption that name no event of its own: what has not happened, is awaited, is wanted, or was before; who comes to read, or to write; a timer. */
const NO_EVENT = /(没|不|等(?!得)|要|只拿)[^，：；。、]*|[^，：；。]*以后|(在里面|在|来|独自)[读写]|读完|定时器醒了|去续期/g;
/** The events that the words of a caption name, and its first one of each is waited for. @type {[RegExp, string[]][]} */
const NAMED_EVENTS = [
  [/拿到|进来|进去|进了|抢到/, ['locked', 'taken', 'entered']], [/读|看/, ['read', 'checked']], [/写/, ['written', 'refused-by-row', 'conflict', 'failed']],
  [/提交/, ['committed']], [/删|释放|解锁/, ['deleted', 'released', 'lost', ...LEASE_ENDS]], [/到期/, LEASE_ENDS], [/续/, ['renewed']], [/(?<!唤)醒/, ['continued']],
];
/** What happens later after the first event of a step is told by the picture. */
const CAPTION_STEP_US = 1_500_000;

/** Each caption stands at the last event that it names, and not before. @param {ReplayEvent[]} all @param {number} now @returns {Caption[]} */
function captionsOf(all, now) {
  const captionIndexes = all.flatMap((e, i) => (e.actor === 'step' ? [i] : []));
  return captionIndexes.flatMap((i, n) => {
    const next = captionIndexes[n + 1];
    const caption = captionOf(all[i]);
    const events = all.slice(i + 1, next);
    const told = events.filter((e) => !INCIDENTAL.includes(e.event) && e.actor !== 'stock' && e.event !== 'held');
    const first = (told[0] ?? events[0])?.t_us;
    const own = caption.zh.replace(NO_EVENT, '');
    const kinds = NAMED_EVENTS.filter(([words]) => words.test(own)).map(([, names]) => names);
    const named = kinds.map((names) => events.find((e) => names.includes(e.event) && (names === LEASE_ENDS || e.t_us - first <= CAPTION_STEP_US))?.t_us);
    const found = named.filter((at) => at != null);
    const awaitsLease = named.some((at, k) => at == null && kinds[k] === LEASE_ENDS);
    const isWhole = next != null || now === Infinity || (first != null && found.length === kinds.length) || (now - first > CAPTION_STEP_US && !awaitsLease);
    const at = found.length ? Math.max(...found) : first ?? all[next ?? i].t_us;
    return isWhole ? [{ ...caption, at }] : [];
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
