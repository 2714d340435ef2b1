/**
 * Where everything of a model stands, as numbers in pixels, for drawing.js. Pure, given the width of texts.
 *
 * From the top: a lane for each actor (labels above its bar), the locks (wedges, their queue below), the shelf, the row's token, the axis.
 */

import { joinClose, placeLabels } from './labels.js';
import { leftAt } from './lock-lanes.js';

/** @typedef {import('./model.js').Model} Model */
/** @typedef {import('./labels.js').Placed} Placed */
/** @typedef {import('./labels.js').Wanted} Wanted */
/** @typedef {{x: number, width: number, kind: string, within: boolean, at: number, text: string}} BarShape `within`: over another bar; `text`: inside it */
/** @typedef {{top: number, bar: number, bars: BarShape[], overlaps: {x: number, width: number}[], carries: {from: number, at: number, to: number, text: string}[], dots: {x: number, at: number, event: string, red: boolean}[], labels: Placed[], actor: string}} LaneShape */
/** @typedef {{points: string, x: number, width: number, owner: string, texts: {x: number, at: number, text: string}[]}} WedgeShape */
/** @typedef {{top: number, base: number, height: number, wedges: WedgeShape[], labels: Placed[], queue: {x: number, y: number, width: number, name: string, at: number}[], queueTop: number}} LockShape */
/** @typedef {{top: number, base: number, lines: {x: number, width: number, red: boolean}[], marks: {x: number, at: number, red: boolean}[], labels: Placed[]}} StepShape */
/** @typedef {{x: number, from: number, to: number, at: number, red: boolean}} ArrowShape */
/** A message between an actor and a server. @typedef {{x: number, from: number, to: number, at: number, actor: string, event: string}} MessageShape */
/**
 * @typedef {object} Scene
 * @property {number} width
 * @property {number} height
 * @property {number} gutter where time begins
 * @property {(at: number) => number} x
 * @property {(x: number) => number} timeAt
 * @property {number} barHeight
 * @property {LaneShape[]} lanes
 * @property {LockShape[]} locks
 * @property {StepShape | null} shelf
 * @property {StepShape | null} row
 * @property {ArrowShape[]} arrows
 * @property {MessageShape[]} messages
 * @property {{x: number, text: string}[]} axis
 */
/**
 *
 * @typedef {object} Room
 * @property {number} width
 * @property {number} shown the visible part of it
 * @property {number} unit a sixteenth of the root's font size
 * @property {number} begin the first moment shown, in microseconds
 * @property {number} span the time shown, in microseconds
 * @property {boolean} dense thinner bars, for a projector
 * @property {(text: string, bold: boolean) => number} measure
 * @property {import('./model.js').Model} model
 * @property {{tick: (e: any) => string, arrow: (a: any) => string, seconds: (s: number) => string, stopped: string, comma: string}} words
 */

/** Heights in units: a line of words, a place in the queue, the arc of a stale value. */
const [LINE, PLACE, ARC] = [22, 22, 20];
/** The width of a dot with its rim, in units. */
const DOT = 16;
/** Heights in units of a bar, a wedge, and the gap between lanes: usually, and on a projector, where the words get the room. */
const [ROOMY, DENSE] = [{ BAR: 20, WEDGE: 36, GAP: 9 }, { BAR: 14, WEDGE: 26, GAP: 4 }];
const [GUTTER, NARROW] = [172, 76];
/** The events of an open dot. */
export const OPEN_DOTS = ['read', 'checked'];
/** The events that are messages to the store, and those to the lock's server. */
const [TO_SHELF, TO_LOCK] = [['read', 'written'], ['checked', 'deleted', 'lost', 'released']];
/** A narrower screen has less room for names. */
const PHONE = 600;
/** Room at the right for the words of the last moment. */
const EDGE = 64;

/** @param {Room} room @returns {Scene} */
export function sceneOf({ width, shown, unit, begin, span, dense, measure, model, words }) {
  const { BAR, WEDGE, GAP } = dense ? DENSE : ROOMY;
  const gutter = (shown < PHONE * unit ? NARROW : GUTTER) * unit;
  const [from, to] = [gutter, width - EDGE * unit];
  // What was before is at the edge.
  const x = (/** @type {number} */ at) => Math.max(from, from + ((to - from) * (at - begin)) / span);
  const timeAt = (/** @type {number} */ place) => begin + ((place - from) / (to - from)) * span;
  const u = (/** @type {number} */ n) => n * unit;
  const crossing = model.arrows.map((arrow) => x(arrow.at));
  const placeWords = (/** @type {Wanted[]} */ wanted, /** @type {number[]} */ lines) => placeLabels(joinClose(wanted, u(10)), { from: from - u(4), to: width, lines, measure, comma: words.comma });
  const rows = (/** @type {Placed[]} */ labels) => Math.max(0, ...labels.map((label) => label.row + 1));
  const flat = (/** @type {import('./model.js').Span} */ s) => ({ x: x(s.from), width: Math.max(0, x(s.to) - x(s.from)) });
  let y = 0;

  const lanes = model.lanes.map((lane, i) => {
    // An arrow begins in its own lane and crosses those below.
    const lines = crossing.filter((_, a) => model.lanes.findIndex((l) => l.actor === model.arrows[a].from) < i);
    const labels = placeWords(lane.ticks.map((tick) => ({ x: x(tick.at), gap: -2, red: tick.red, parts: [{ at: tick.at, text: words.tick(tick.event) }] })), lines);
    const top = y;
    const bar = top + u(LINE) * Math.max(model.compact ? 0 : 1, rows(labels));
    y = bar + u(BAR + (model.compact ? GAP / 2 : GAP) + (lane.carries.length ? ARC : 0));
    const solid = lane.bars.filter((b) => b.kind === 'inside');
    return {
      top, bar, labels, actor: lane.actor,
      carries: lane.carries.map((carry) => ({ from: x(carry.read), at: carry.to, to: x(carry.to), text: carry.value })),
      bars: lane.bars.map((b) => ({ ...flat(b), kind: b.kind, at: b.from, text: b.kind === 'stopped' && measure(words.stopped, false) + u(24) < flat(b).width ? words.stopped : '', within: b.kind === 'waits' && solid.some((s) => s.from <= b.from && b.to <= s.to) })),
      overlaps: [...lane.overlaps, ...lane.carries].map(flat),
      dots: uncovered(lane.ticks.map((tick) => ({ x: x(tick.at), at: tick.at, event: tick.event.event, red: tick.red })), u(DOT)),
    };
  });

  const locks = model.locks.map((lock) => {
    const into = model.arrows.filter((arrow) => arrow.to === 'lock' && (model.locks.length === 1 || arrow.key === lock.key));
    const labels = placeWords(into.map((arrow) => ({ x: x(arrow.at), gap: u(8), red: true, parts: [{ at: arrow.at, text: words.arrow(arrow) }] })), crossing);
    const top = y;
    const height = u(model.locks.length > 1 ? WEDGE / 2 : WEDGE);
    const base = top + u(LINE) * Math.max(model.locks.length > 1 ? 0 : 0.2, rows(labels)) + height;
    y = base + u(GAP);
    const queueTop = y;
    y += lock.queue.length ? u(PLACE + GAP) : 0;
    return {
      top, base, height, labels, queueTop,
      wedges: wedgeShapes(lock.wedges, { x, base, height, measure, unit }),
      queue: lock.queue.flatMap((q, i) => (q.names.length ? [{ ...flat({ from: q.at, to: lock.queue[i + 1]?.at ?? model.end }), y: queueTop, name: q.names.join(' '), at: q.at }] : [])),
    };
  });

  const stepShape = (/** @type {import('./model.js').Step[]} */ steps, /** @type {Placed[]} */ extra) => {
    if (!steps.length) return null;
    const labels = placeWords(steps.map((step) => ({ x: x(step.at), gap: u(4), red: step.red, bold: true, parts: [{ at: step.at, text: step.red ? `${step.value} !` : step.value }] })), []);
    const above = rows(labels);
    extra.forEach((label) => labels.push({ ...label, row: label.row + above }));
    const top = y;
    const base = top + u(LINE) * Math.max(1, rows(labels));
    y = base + u(GAP);
    return {
      top, base, labels,
      lines: steps.map((step, i) => ({ ...flat({ from: step.at, to: steps[i + 1]?.at ?? model.end }), red: step.red })),
      marks: steps.map((step) => ({ x: x(step.at), at: step.at, red: step.red })),
    };
  };
  const shelf = stepShape(model.shelf, []);
  const refused = model.arrows.filter((arrow) => arrow.to === 'row');
  const row = stepShape(model.row, placeWords(refused.map((arrow) => ({ x: x(arrow.at), gap: u(8), red: false, bold: true, parts: [{ at: arrow.at, text: words.arrow(arrow) }] })), crossing));

  const arrows = model.arrows.flatMap((arrow) => {
    const lane = lanes[model.lanes.findIndex((l) => l.actor === arrow.from)];
    const lock = locks[Math.max(0, model.locks.findIndex((l) => l.key === arrow.key))];
    const end = arrow.to === 'row' ? row?.base : lock && lock.base - lock.height * 0.35;
    return lane && end ? [{ x: x(arrow.at), from: lane.bar + u(BAR) / 2, to: end, at: arrow.at, red: arrow.to === 'lock' }] : [];
  });
  // With several locks it is unknown which one a message went to.
  const messages = lanes.flatMap((lane) => lane.dots.flatMap(({ x: place, at, event }) => {
    const to = TO_SHELF.includes(event) ? shelf && shelf.base - u(LINE) : TO_LOCK.includes(event) && locks.length === 1 ? locks[0].base - locks[0].height : null;
    return to ? [{ x: place, from: lane.bar + u(BAR), to, at, actor: lane.actor, event }] : [];
  }));
  const axis = seconds(begin, span).map((s) => ({ x: x(s * 1e6), text: words.seconds(s) }));
  return { width, height: y + u(LINE), gutter, x, timeAt, barHeight: u(BAR), lanes, locks, shelf, row, arrows, messages, axis };
}

/** A read that a later dot would cover stands before it: both moments are seen. @param {LaneShape['dots']} dots by time @param {number} width of a dot @returns {LaneShape['dots']} */
function uncovered(dots, width) {
  let next = Infinity;
  return dots.reduceRight((/** @type {LaneShape['dots']} */ placed, dot) => {
    const x = OPEN_DOTS.includes(dot.event) ? Math.min(dot.x, next - width) : dot.x;
    next = Math.min(next, x);
    return [{ ...dot, x }, ...placed];
  }, []);
}

/** Owners that share a lock begin at one place: their names stand beside each other. @param {import('./model.js').Wedge[]} wedges @param {Parameters<typeof wedgeShape>[1]} room */
function wedgeShapes(wedges, room) {
  let free = -Infinity;
  return wedges.map((wedge) => {
    const shape = wedgeShape(wedge, room);
    const [first] = shape.texts;
    if (first && first.x < free) first.x = free;
    if (first) free = first.x + room.measure(first.text, true) + 4 * room.unit;
    return shape;
  });
}

/** @param {import('./model.js').Wedge} wedge @param {{x: (at: number) => number, base: number, height: number, measure: (text: string, bold: boolean) => number, unit: number}} room @returns {WedgeShape} */
function wedgeShape(wedge, { x, base, height, measure, unit }) {
  // A wedge begins at full height, however long its lease is.
  const lease = Math.max(...wedge.left.map((left) => left.pttl));
  const tall = (/** @type {number} */ ms) => (ms < 0 || lease <= 0 ? height : (height * ms) / lease);
  const edge = wedge.left.flatMap((left, i) => {
    const until = Math.min(wedge.left[i + 1]?.at ?? wedge.to, wedge.to);
    return [[left.at, tall(left.pttl)], [until, tall(leftAt({ ...wedge, left: [left] }, until))]];
  });
  const points = [[wedge.from, 0], ...edge, [wedge.to, 0]].map(([at, h]) => `${x(at).toFixed(1)},${(base - h).toFixed(1)}`);
  let free = -Infinity;
  const counted = wedge.counts.length > 1 || wedge.counts[0]?.count > 1;
  const texts = wedge.counts.flatMap(({ at, count }, i) => {
    const text = `${i === 0 ? wedge.owner : ''}${counted ? ` ×${count}` : ''}`.trim();
    const left = x(at) + 6 * unit;
    const wide = measure(text, true);
    if (!text || left < free || left + wide > x(wedge.to)) return [];
    free = left + wide + 4 * unit;
    return [{ x: left, at, text }];
  });
  return { points: points.join(' '), owner: wedge.owner, x: x(wedge.from), width: x(wedge.to) - x(wedge.from), texts };
}

/** The marks of the axis: few and round. @param {number} begin @param {number} span */
function seconds(begin, span) {
  const all = span / 1e6;
  const step = [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20].find((s) => all / s <= 8) ?? 60;
  const first = Math.ceil(begin / 1e6 / step);
  return Array.from({ length: Math.floor((begin / 1e6 + all) / step) - first + 1 }, (_, i) => Math.round((first + i) * step * 1e5) / 1e5);
}

/** How much time the picture shows: a little more than there is; while more may come, in steps. @param {number} end @param {boolean} live */
export function spanOf(end, live) {
  if (!live) return Math.max(end * 1.02, 1000);
  const room = end * 1.15;
  return [3, 5, 8, 12, 16, 20, 30, 45, 60, 120].map((s) => s * 1e6).find((s) => s >= room) ?? room * 1.5;
}
