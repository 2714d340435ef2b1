/**
 * From visits to lanes: which time is shown, who has which lane, and what the timeline's own model makes of it. Pure.
 *
 * 1. The time that is shown begins when somebody came and nobody had been there for a while, and grows in steps; it never goes
 *    back further than the last step.
 * 2. Who comes twice has one lane, unless it is there twice at once.
 * 3. The picture stands still when nobody is there: it is talked about then.
 */

import { modelOf } from '../timeline/model.js';
import { isEnter, isLeave, isRead } from './class-lessons.js';

/** @typedef {import('./visits.js').Visit} Visit */
/** @typedef {import('./class-lessons.js').ClassLesson} View */
/** @typedef {import('../timeline/model.js').Span} Span */
/** `dots`: who was inside for a moment, and what was counted; `ends`: who gave up, or whose instance went away. */
/** @typedef {{name: string, who: string, instance: string, visits: Visit[], bars: import('../timeline/model.js').Bar[], overlaps: Span[], dots: {at: number, n: number | null}[], ends: {at: number, lost: boolean}[]}} ClassLane */
/** Times in microseconds since `from`. @typedef {{from: number, now: number, span: number, lanes: ClassLane[]}} ClassPicture */

const SECOND = 1e6;
/** Steps by which the time that is shown grows. */
const STEPS = [15, 20, 30, 45, 60, 90, 120].map((s) => s * SECOND);
const MAX_SPAN = /** @type {number} */ (STEPS.at(-1));
/** Nobody was there for so long: what comes is something new. */
const QUIET_GAP = 8 * SECOND;
/** After the last one has gone, time goes on for so long. */
const TIME_AFTER_LAST = 1.5 * SECOND;
/** Who came within this came together, and stands in the order of the names. */
const SAME_ARRIVAL = 0.1 * SECOND;
/** A stay that is shorter is drawn as a dot. */
const SHORT_STAY = 0.15 * SECOND;

/** @param {Visit[]} visits of one object, by when they came @param {View} view @param {number} clock what time it is @param {(n: number) => string} visitor the name of one without a name @returns {ClassPicture} */
export function classPictureOf(visits, view, clock, visitor) {
  const ends = visits.map((visit) => endOf(visit, visits));
  const last = Math.max(0, ...ends.map((end) => (end === Infinity ? clock : end)));
  const now = visits.length === 0 ? clock : Math.min(clock, last + TIME_AFTER_LAST);
  let from = now;
  visits.toReversed().forEach((visit, i) => {
    if (i === 0 || ends[visits.length - 1 - i] >= from - QUIET_GAP) from = Math.min(from, visit.from);
  });
  from = Math.max(Math.min(from, now), now - MAX_SPAN);
  const span = STEPS.find((step) => step >= now - from) ?? MAX_SPAN;
  const seen = visits.filter((_, i) => ends[i] >= from);
  return { from, now: now - from, span, lanes: lanesOf(sortedByArrival(seen), visits, view, from, now, visitor) };
}

/** @param {Visit[]} visits by when they came */
function sortedByArrival(visits) {
  /** @type {Visit[][]} */
  const groups = [];
  for (const visit of visits) {
    const last = groups.at(-1);
    if (last && visit.from - last[0].from < SAME_ARRIVAL) last.push(visit);
    else groups.push([visit]);
  }
  return groups.flatMap((group) => group.toSorted((a, b) => a.who.localeCompare(b.who, 'zh', { numeric: true })));
}

/** When it is over; Infinity while it is not. Who has entered a room is there until it leaves. @param {Visit} visit @param {Visit[]} all */
function endOf(visit, all) {
  if (!isEnter(visit.route) || visit.entered == null || visit.lost) return visit.left ?? Infinity;
  const leaves = all.find((v) => isLeave(v.route) && v.who === visit.who && v.from >= visit.from);
  return leaves ? leaves.left ?? Infinity : Infinity;
}

/** @param {Visit[]} seen @param {Visit[]} all @param {View} view @param {number} from @param {number} now @param {(n: number) => string} visitor @returns {ClassLane[]} */
function lanesOf(seen, all, view, from, now, visitor) {
  /** @type {{name: string, who: string, visits: Visit[]}[]} */
  const lanes = [];
  const unnamed = all.filter((visit) => !visit.who);
  for (const visit of seen) {
    const lane = visit.who && lanes.find((l) => l.who === visit.who && (isLeave(visit.route) || l.visits.every((v) => (v.left ?? Infinity) <= visit.from)));
    if (lane) lane.visits.push(visit);
    else lanes.push({ name: visit.who || visitor(unnamed.indexOf(visit) + 1), who: visit.who, visits: [visit] });
  }
  const number = (/** @type {number} */ i) => String(i).padStart(4, '0');
  const events = lanes.flatMap((lane, i) => lane.visits.flatMap((visit) => eventsOf(visit, number(i), from)));
  const model = modelOf(events, now - from, view.room);
  return lanes.map((lane, i) => {
    const drawn = model.lanes.find((l) => l.actor === number(i));
    const dots = lane.visits.filter((v) => v.entered != null && isMoment(v, all, view)).map((v) => ({ at: Number(v.entered) - from, n: v.count ? v.count.n : null }));
    const ends = lane.visits.filter((v) => v.left != null && (v.lost || (v.entered == null && !isLeave(v.route)))).map((v) => ({ at: Number(v.left) - from, lost: v.lost }));
    return { ...lane, ends, instance: lane.visits.at(-1)?.instance ?? '', bars: drawn?.bars ?? [], overlaps: drawn?.overlaps ?? [], dots };
  });
}

/** Did it only go past? @param {Visit} visit @param {Visit[]} all @param {View} view */
const isMoment = (visit, all, view) => !isLeave(visit.route) && !isEnter(visit.route)
  && (view.room === Infinity || endOf(visit, all) - Number(visit.entered) < SHORT_STAY);

/** As the timeline knows it. @param {Visit} visit @param {string} actor @param {number} from @returns {import('../timeline/events.js').ReplayEvent[]} */
function eventsOf(visit, actor, from) {
  const { route, instance } = visit;
  const at = (/** @type {number | null} */ t, /** @type {string} */ event, /** @type {string} */ value = '') => (t == null ? [] : [{ t_us: t - from, actor, instance, event, value }]);
  // Who leaves a room has left it when all have.
  if (isLeave(route)) return [...at(visit.from, 'committed'), ...at(visit.left, 'released')];
  const stays = isEnter(route) && visit.entered != null && !visit.lost;
  return [
    ...at(visit.from, 'start'),
    ...at(visit.entered, 'locked', isRead(route) ? 'read' : ''),
    ...(stays ? [] : at(visit.left, visit.entered == null ? 'failed' : 'released')),
  ];
}

/** Who waits, who is inside, and how many are too many, now. @param {ClassPicture} shown */
export function countsNow({ now, lanes }) {
  const has = (/** @type {ClassLane} */ lane, /** @type {string[]} */ kinds) => lane.bars.some((bar) => kinds.includes(bar.kind) && bar.open && bar.from <= now);
  return {
    waiting: lanes.filter((lane) => has(lane, ['waits'])).length,
    inside: lanes.filter((lane) => has(lane, ['inside', 'leaves'])).length,
    reading: lanes.filter((lane) => has(lane, ['shared'])).length,
    crowded: lanes.some((lane) => lane.overlaps.some((span) => span.to >= now)),
    broken: lanes.some((lane) => lane.overlaps.length > 0),
  };
}

/** How long this one has waited and stayed, in microseconds; null where it has not come. `passed`: it went on at once. @param {Visit | undefined} visit @param {number} clock @param {Visit[]} all @param {View} view */
export function timesOf(visit, clock, all, view) {
  if (!visit) return null;
  const end = Math.min(clock, endOf(visit, all));
  const waited = Math.max(0, (visit.entered ?? end) - visit.from);
  const inside = visit.entered == null ? null : Math.max(0, end - visit.entered);
  const over = end < clock;
  return { waited, inside, over, passed: over && inside != null && isMoment(visit, all, view), failed: visit.entered == null && visit.left != null };
}
