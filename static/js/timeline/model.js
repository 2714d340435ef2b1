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

import { ACTOR_NAME, TRANSPORT, isActor, isForeignDelete, isInteger, withoutVainWaits } from './events.js';
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

/** The read and the write that lost something, of one actor; none: nothing was lost. @param {Model} model */
export function losingPair({ lanes }) {
  const lane = lanes.find(({ carries }) => carries.length);
  return lane ? [lane.carries[0].read, lane.carries[0].to].map((at) => ({ actor: lane.actor, at })) : [];
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
const INCIDENTAL = ['start', 'renew', 'renewed', 'retries'];
const LEASE_ENDS = ['expired', 'free'];
const RELEASES = ['deleted', 'released', 'lost', 'sold', 'done'];
/** Words of a caption that name no event of its own: what has not happened, is awaited, is wanted, or was before; who comes to read, or to write. */
const NO_EVENT = /(没|不|等(?!得|到)|要|只拿|自动)[^，：；。、]*|[^，：；。]*以后|(在|(?<=来)|独自)[读写]|读完/g;
/** What the words of a caption name; an empty list is whatever comes of its doer. @type {[RegExp, string[]][]} */
const NAMED_EVENTS = [
  [/(?<!进)来/, []], [/拿到|进来|进去|进了|放行/, ['locked', 'taken', 'entered']], [/读|看|GET/, ['read', 'checked', 'compared', 'lost']], [/(?<!检)查/, ['read', 'checked', 'compared', 'lost', 'failed']],
  [/写|下了单/, ['written', 'committed', 'refused-by-row', 'conflict', 'failed']], [/提交/, ['committed']], [/释放|解锁|还一次|还了/, RELEASES], [/删(?!掉?的是)/, [...RELEASES, ...LEASE_ENDS]],
  [/到期|过期/, LEASE_ENDS], [/续|重置/, ['renewed']], [/(?<!唤)醒/, ['continued']], [/设成/, ['set']], [/(?<!计)数到|加三次/, ['counted']], [/干完/, ['leaves', 'lost', 'released', 'done']],
  [/做完就走|离开/, ['done']], [/买一件/, ['sold']], [/拒绝/, ['refused', 'refused-by-row', 'conflict', 'failed']], [/超时/, ['failed']],
];
/** What the service says while other replays come first. */
const QUEUED = '排队：';

/** The events of a race without the time in which it stood in the queue: its picture begins where it does. @param {ReplayEvent[]} events @returns {ReplayEvent[]} */
export function withoutQueue(events) {
  const first = events.findIndex((e) => e.actor !== 'step' || !captionOf(e).zh.startsWith(QUEUED));
  if (first < 1) return events;
  const waited = events[first].t_us - events[0].t_us;
  return events.slice(first).map((e) => ({ ...e, t_us: e.t_us - waited }));
}

/** The names in a text. @param {string} text */
const actorsIn = (text) => text.split(ACTOR_NAME).filter((_, i) => i % 2);

/** What a caption names: who does it is the last name before the word, else that of the clause before; else anybody. @param {string} zh */
function namedIn(zh) {
  let last = '';
  return zh.replace(NO_EVENT, '').split(/[，：；。、]/).flatMap((clause) => {
    const named = NAMED_EVENTS.flatMap(([words, names]) => {
      const at = clause.search(words);
      const doer = actorsIn(clause.slice(0, Math.max(at, 0))).at(-1) ?? last;
      return at < 0 || (!names.length && !doer) ? [] : [{ doer, names, isOfBoth: clause.includes('两个') }];
    });
    last = actorsIn(clause)[0] ?? last;
    return named;
  });
}

/** Whose event is it? A lease is its owner's, a queue that of all in it. @param {ReplayEvent} e @param {string} doer */
function isOf(e, doer) {
  if (isActor(e)) return !doer || e.actor === doer;
  if (LEASE_ENDS.includes(e.event)) return !doer || e.owner === doer;
  return e.event === 'queue' && doer !== '' && (e.value ?? '').includes(doer);
}

/**
 * Each caption stands at the last event that it names, and not before; one that names none, at the first event of who is named in it. Without
 * such an event it stands at the end of its step, where the next one begins.
 * @param {ReplayEvent[]} all @param {number} now @returns {Caption[]}
 */
function captionsOf(all, now) {
  const captionIndexes = all.flatMap((e, i) => (e.actor === 'step' ? [i] : []));
  /** Up to where the events of each are told. What one does when another has just released may come before its caption. @type {Record<string, number>} */
  const told = {};
  return captionIndexes.flatMap((i, n) => {
    const caption = captionOf(all[i]);
    const next = captionIndexes[n + 1];
    const said = namedIn(caption.zh);
    const named = said.length ? said : [{ doer: actorsIn(caption.zh.replace(NO_EVENT, ''))[0] ?? '', names: [], isOfBoth: false }];
    const before = { ...told };
    const found = named.map(({ doer, names, isOfBoth }) => {
      const isNamed = (/** @type {ReplayEvent} */ e) => (names.length ? names.includes(e.event) : !LEASE_ENDS.includes(e.event) && !INCIDENTAL.includes(e.event));
      const begin = names.length && doer ? Math.max(captionIndexes[n - 1] ?? i, (before[doer] ?? -1) + 1) : i;
      const its = all.slice(Math.max(begin, told[doer] ?? 0), next).filter((e) => isOf(e, doer) && isNamed(e));
      const one = isOfBoth && !doer ? its.find((e) => e.actor !== its[0].actor) : its[0];
      // Who does two things does one after the other.
      if (one && doer) told[doer] = all.indexOf(one);
      return one;
    });
    // Its place in the queue is told at once.
    const hasCome = caption.zh.startsWith(QUEUED) || found.every(Boolean);
    const last = hasCome ? Math.max(i, ...found.map((e) => (e ? all.indexOf(e) : i))) : next ?? all.length - 1;
    return hasCome || next != null || now === Infinity ? [{ ...caption, at: all[last].t_us }] : [];
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
