/**
 * Lanes from visits: which span of time is shown, who has which lane, and what the timeline's model draws in it. Pure.
 *
 * 1. The picture begins with the first visit after a quiet gap, and its span grows in steps up to a maximum.
 * 2. A visitor has one lane, unless two visits overlap.
 * 3. Time stands still while nobody is there, so that a class can talk about the picture.
 */

import { modelOf } from '../timeline/model.js';
import { isEnter, isLeave, isRead } from './class-lessons.js';

/** @typedef {import('./visits.js').Visit} Visit */
/** @typedef {import('./class-lessons.js').ClassLesson} ClassLesson */
/** @typedef {import('../timeline/model.js').Span} Span */
/** `dots`: short stays, with the count then; `ends`: visits that failed, or whose instance went away. */
/** @typedef {{name: string, who: string, instance: string, visits: Visit[], bars: import('../timeline/model.js').Bar[], overlaps: Span[], dots: {at: number, n: number | null}[], ends: {at: number, lost: boolean}[]}} ClassLane */
/** Times in microseconds since `from`. @typedef {{from: number, now: number, span: number, lanes: ClassLane[]}} ClassPicture */

const SECOND = 1e6;
/** The spans that the picture may have. */
const STEPS = [15, 20, 30, 45, 60, 90, 120].map((s) => s * SECOND);
const MAX_SPAN = /** @type {number} */ (STEPS.at(-1));
/** After so long without anybody a new picture begins. */
const QUIET_GAP = 8 * SECOND;
/** Time goes on for this long after the last visit. */
const TIME_AFTER_LAST = 1.5 * SECOND;
/** Visits that begin within this time are sorted by name. */
const SAME_ARRIVAL = 0.1 * SECOND;
/** A shorter stay is a dot. */
const SHORT_STAY = 0.15 * SECOND;

/** @param {Visit[]} visits of one object, sorted by arrival @param {ClassLesson} view @param {number} clock the time now @param {(n: number) => string} visitor names one who has no name @returns {ClassPicture} */
export function classPictureOf(visits, view, clock, visitor) {
  const ends = visits.map((visit) => endOf(visit, visits));
  const last = Math.max(0, ...ends.map((end) => (end === Infinity ? clock : end)));
  const now = visits.length === 0 ? clock : Math.min(clock, last + TIME_AFTER_LAST);
  let from = now;
  [...visits].reverse().forEach((visit, i) => {
    if (i === 0 || ends[visits.length - 1 - i] >= from - QUIET_GAP) from = Math.min(from, visit.from);
  });
  from = Math.max(Math.min(from, now), now - MAX_SPAN);
  const span = STEPS.find((step) => step >= now - from) ?? MAX_SPAN;
  const seen = visits.filter((_, i) => ends[i] >= from);
  return { from, now: now - from, span, lanes: lanesOf(sortedByArrival(seen), visits, view, from, now, visitor) };
}

/** @param {Visit[]} visits sorted by arrival */
function sortedByArrival(visits) {
  /** @type {Visit[][]} */
  const groups = [];
  for (const visit of visits) {
    const last = groups.at(-1);
    if (last && visit.from - last[0].from < SAME_ARRIVAL) last.push(visit);
    else groups.push([visit]);
  }
  return groups.flatMap((group) => [...group].sort((a, b) => a.who.localeCompare(b.who, 'zh', { numeric: true })));
}

/** When a visit ends; Infinity while it lasts. After `enter` it lasts until the same visitor's `leave`. @param {Visit} visit @param {Visit[]} all */
function endOf(visit, all) {
  if (!isEnter(visit.route) || visit.entered == null || visit.lost) return visit.left ?? Infinity;
  const leaves = all.find((v) => isLeave(v.route) && v.who === visit.who && v.from >= visit.from);
  return leaves ? leaves.left ?? Infinity : Infinity;
}

/** @param {Visit[]} seen @param {Visit[]} all @param {ClassLesson} view @param {number} from @param {number} now @param {(n: number) => string} visitor @returns {ClassLane[]} */
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

/** Was the visitor inside only for a moment? @param {Visit} visit @param {Visit[]} all @param {ClassLesson} view */
const isMoment = (visit, all, view) => !isLeave(visit.route) && !isEnter(visit.route)
  && (view.room === Infinity || endOf(visit, all) - Number(visit.entered) < SHORT_STAY);

/** A visit as events of the timeline. @param {Visit} visit @param {string} actor @param {number} from @returns {import('../timeline/events.js').ReplayEvent[]} */
function eventsOf(visit, actor, from) {
  const { route, instance } = visit;
  const at = (/** @type {number | null} */ t, /** @type {string} */ event, /** @type {string} */ value = '') => (t == null ? [] : [{ t_us: t - from, actor, instance, event, value }]);
  // A double barrier is left when all parties have left.
  if (isLeave(route)) return [...at(visit.from, 'committed'), ...at(visit.left, 'released')];
  const stays = isEnter(route) && visit.entered != null && !visit.lost;
  return [
    ...at(visit.from, 'start'),
    ...at(visit.entered, 'locked', isRead(route) ? 'read' : ''),
    ...(stays ? [] : at(visit.left, visit.entered == null ? 'failed' : 'released')),
  ];
}

/** How many wait, are inside and read now, and whether more are inside than may be. @param {ClassPicture} shown */
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

/** How long a visit has waited and stayed, in microseconds. `passed`: it stayed only for a moment. @param {Visit | undefined} visit @param {number} clock @param {Visit[]} all @param {ClassLesson} view */
export function timesOf(visit, clock, all, view) {
  if (!visit) return null;
  const end = Math.min(clock, endOf(visit, all));
  const waited = Math.max(0, (visit.entered ?? end) - visit.from);
  const inside = visit.entered == null ? null : Math.max(0, end - visit.entered);
  const over = end < clock;
  return { waited, inside, over, passed: over && inside != null && isMoment(visit, all, view), failed: visit.entered == null && visit.left != null };
}
