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
 * @property {number} needed the height that it needs, in units
 * @property {number} gutter where time begins
 * @property {(at: number) => number} x
 * @property {(x: number) => number} timeAt
 * @property {number} line the distance of two rows of labels
 * @property {number} barHeight
 * @property {LaneShape[]} lanes
 * @property {LockShape[]} locks
 * @property {StepShape | null} shelf
 * @property {StepShape | null} row
 * @property {ArrowShape[]} arrows
 * @property {MessageShape[]} messages
 * @property {{x: number, text: string}[]} axis
 */
/** What is below the actors, as in `GET /replays`. @typedef {{locks: number, queue: boolean, stock: boolean, fence: boolean}} ServerLanes */
/**
 *
 * @typedef {object} Room
 * @property {number} width
 * @property {number} shown the visible part of it
 * @property {number} unit a sixteenth of the root's font size
 * @property {number} begin the first moment shown, in microseconds
 * @property {number} span the time shown, in microseconds
 * @property {boolean} [stepped] each labelled moment has a column, whatever time lies between
 * @property {boolean} dense thinner bars, for a projector
 * @property {(text: string, bold: boolean) => number} measure
 * @property {number} [height] its height, whatever comes; else what it needs
 * @property {ServerLanes} [comes] what the servers will show
 * @property {import('./model.js').Model} model
 * @property {{tick: (e: any) => string, arrow: (a: any) => string, seconds: (s: number) => string, stopped: string, comma: string}} words
 */

/** Heights in units: a line of words, a place in the queue, the arc of a stale value. */
const [LINE, PLACE, ARC] = [22, 22, 20];
/** The width of a dot with its rim, in units. */
const DOT = 16;
/** Heights in units of a bar, a wedge, and the gap between lanes: usually, and on a projector, where the words get the room. */
const [ROOMY, DENSE] = [{ BAR: 20, WEDGE: 36, GAP: 9 }, { BAR: 14, WEDGE: 26, GAP: 4 }];
const [GUTTER, NARROW] = [172, 92];
/** The events of an open dot. */
export const OPEN_DOTS = ['read', 'checked'];
/** The events that are messages to the store, and those to the lock's server. */
const [TO_SHELF, TO_LOCK] = [['read', 'written'], ['checked', 'deleted', 'lost', 'released']];
/** A narrower screen has less room for names. */
const PHONE = 600;
/** Room at the right for the words of the last moment. */
const EDGE = 64;

/** More rows of labels do not fit where the height is given: usually, and where a page is scrolled for them. */
const [MAX_ROWS, MAX_ROWS_STEPPED] = [2, 3];
/** Marks nearer to each other than this share a label, in units: usually, and where there are too many rows. */
const NEAR = [10, 40, 80, 160, 320];
/** The room for a label above a single lock, where its line has some already. */
const ABOVE_LOCK = 0.2;
/** @type {ServerLanes} */
const NOTHING = { locks: 0, queue: false, stock: false, fence: false };

/**
 * The height of each part with the labels that it usually has, in units, from the top: all actors but the first have a second row of labels,
 * a foreign release stands above a single lock, a refusal above the row's token.
 * @param {number} actors @param {ServerLanes} shows @param {boolean} dense
 */
function usualHeights(actors, { locks, queue, stock, fence }, dense) {
  const { BAR, WEDGE, GAP } = dense ? DENSE : ROOMY;
  const lock = (locks > 1 ? WEDGE / 2 : LINE + WEDGE) + GAP + (queue ? PLACE + GAP : 0);
  const lanes = Array.from({ length: actors }, (_, i) => LINE * (i ? 2 : 1) + BAR + GAP);
  return [...lanes, ...Array.from({ length: locks }, () => lock), ...(stock ? [LINE + GAP] : []), ...(fence ? [2 * LINE + GAP] : [])];
}

const sum = (/** @type {number[]} */ all) => all.reduce((a, b) => a + b, 0);

/** The height of the picture of a race, in units: a stale value has room too. It is known before the first event. @param {Parameters<typeof usualHeights>} race */
export const heightOf = (...race) => sum(usualHeights(...race)) + ARC + LINE;

/**
 * How the parts of a picture fill its height: room above each, or all of them closer to each other. What comes does not move the parts while
 * there is room above its own. The first row of labels keeps its room: above it is nothing into which it could reach.
 * @param {number[]} needs @param {number[]} usual @param {number | undefined} height
 */
function fillHeight(needs, usual, height) {
  const need = sum(needs);
  if (height == null || need >= height) return { closer: height == null ? 1 : Math.max(0, (height - LINE) / (need - LINE)), above: needs.map(() => 0) };
  let [wider, level] = [needs.map(() => true), 0];
  for (let before = -1; before !== wider.filter(Boolean).length;) {
    before = wider.filter(Boolean).length;
    level = (height - sum(needs.map((n, i) => (wider[i] ? usual[i] : n)))) / before;
    wider = wider.map((is, i) => is && needs[i] - usual[i] < level);
  }
  return { closer: 1, above: needs.map((n, i) => Math.max(0, usual[i] + level - n)) };
}

/** @param {Room} room @returns {Scene} */
export function sceneOf({ width, shown, unit, begin, span, stepped = false, dense, measure, model, words, height, comes = NOTHING }) {
  const { BAR, WEDGE, GAP } = dense ? DENSE : ROOMY;
  const gutter = (shown < PHONE * unit ? NARROW : GUTTER) * unit;
  const [from, to] = [gutter, width - EDGE * unit];
  const points = stepped ? columnsOf(model, ((EDGE - DOT) * unit) / (to - from)) : [[begin, 0], [begin + span, 1]];
  // What was before is at the edge.
  const x = (/** @type {number} */ at) => Math.max(from, from + (to - from) * between(points, 0, at));
  const timeAt = (/** @type {number} */ place) => between(points, 1, (place - from) / (to - from));
  const u = (/** @type {number} */ n) => n * unit;
  const crossing = model.arrows.map((arrow) => x(arrow.at));
  const rows = (/** @type {Placed[]} */ labels) => Math.max(0, ...labels.map((label) => label.row + 1));
  const placeWords = (/** @type {Wanted[]} */ wanted, /** @type {number[]} */ lines) => {
    const fits = (/** @type {string[]} */ texts) => measure(texts.join(words.comma), true) <= width - from;
    const ways = NEAR.map((near) => () => placeLabels(joinClose(wanted, u(near), fits), { from: from - u(4), to: width, lines, measure, comma: words.comma }));
    let placed = ways[0]();
    for (let n = 1; height != null && n < ways.length && rows(placed) > (stepped ? MAX_ROWS_STEPPED : MAX_ROWS); n += 1) placed = ways[n]();
    return placed;
  };
  const flat = (/** @type {import('./model.js').Span} */ s) => ({ x: x(s.from), width: Math.max(0, x(s.to) - x(s.from)) });

  // First the labels, which decide what each part needs.
  const laneLabels = model.lanes.map((lane, i) => {
    // An arrow begins in its own lane and crosses those below.
    const lines = crossing.filter((_, a) => model.lanes.findIndex((l) => l.actor === model.arrows[a].from) < i);
    return placeWords(lane.ticks.map((tick) => ({ x: x(tick.at), gap: -2, red: tick.red, parts: [{ at: tick.at, text: words.tick(tick.event) }] })), lines);
  });
  const lockCount = Math.max(model.locks.length, comes.locks);
  const above = lockCount > 1 ? 0 : ABOVE_LOCK;
  const lockLabels = model.locks.map((lock) => placeWords(model.arrows
    .filter((arrow) => arrow.to === 'lock' && (model.locks.length === 1 || arrow.key === lock.key))
    .map((arrow) => ({ x: x(arrow.at), gap: u(8), red: true, parts: [{ at: arrow.at, text: words.arrow(arrow) }] })), crossing));
  const stepLabels = (/** @type {import('./model.js').Step[]} */ steps) => placeWords(steps.map((step) => ({ x: x(step.at), gap: u(3), red: step.red, bold: true, parts: [{ at: step.at, text: step.red ? `${step.value} !` : step.value }] })), []);
  const shelfLabels = stepLabels(model.shelf);
  const rowLabels = stepLabels(model.row);
  const refused = model.arrows.filter((arrow) => arrow.to === 'row');
  const refusals = placeWords(refused.map((arrow) => ({ x: x(arrow.at), gap: u(8), red: false, bold: true, parts: [{ at: arrow.at, text: words.arrow(arrow) }] })), crossing);
  const upper = rows(rowLabels);
  rowLabels.push(...refusals.map((label) => ({ ...label, row: label.row + upper })));
  const hasQueue = comes.queue || model.locks.some((lock) => lock.queue.length);
  const wedgeHeight = lockCount > 1 ? WEDGE / 2 : WEDGE;
  const stepsNeed = (/** @type {Placed[]} */ labels) => LINE * Math.max(1, rows(labels)) + GAP;
  const [stock, fence] = [model.shelf.length > 0 || comes.stock, model.row.length > 0 || comes.fence];
  // What the servers will show has its place before it comes.
  const needs = [
    ...model.lanes.map((lane, i) => LINE * Math.max(model.compact ? 0 : 1, rows(laneLabels[i])) + BAR + (model.compact ? GAP / 2 : GAP) + (lane.carries.length ? ARC : 0)),
    ...Array.from({ length: lockCount }, (_, i) => LINE * Math.max(above, rows(lockLabels[i] ?? [])) + wedgeHeight + GAP + (hasQueue ? PLACE + GAP : 0)),
    ...(stock ? [stepsNeed(shelfLabels)] : []), ...(fence ? [stepsNeed(rowLabels)] : []),
  ];
  const usual = usualHeights(model.lanes.length, { locks: lockCount, queue: hasQueue, stock, fence }, dense);
  const axisHeight = u(LINE);
  const { closer, above: empty } = fillHeight(needs, usual, height == null ? undefined : (height - axisHeight) / unit);
  const down = (/** @type {number} */ n) => n * unit * closer;
  let y = u(LINE) - down(LINE);
  const tops = needs.map((need, i) => {
    const top = y + u(empty[i]);
    y = top + down(need);
    return top;
  });

  const lanes = model.lanes.map((lane, i) => {
    const labels = laneLabels[i];
    const top = tops[i];
    const bar = top + down(LINE) * Math.max(model.compact ? 0 : 1, rows(labels));
    const solid = lane.bars.filter((b) => b.kind === 'inside');
    return {
      top, bar, labels, actor: lane.actor,
      carries: lane.carries.map((carry) => ({ from: x(carry.read), at: carry.to, to: x(carry.to), text: carry.value })),
      bars: lane.bars.map((b) => ({ ...flat(b), kind: b.kind, at: b.from, text: b.kind === 'stopped' && measure(words.stopped, false) + u(24) < flat(b).width ? words.stopped : '', within: b.kind === 'waits' && solid.some((s) => s.from <= b.from && b.to <= s.to) })),
      overlaps: [...lane.overlaps, ...lane.carries].map(flat),
      dots: uncovered(lane.ticks.map((tick) => ({ x: x(tick.at), at: tick.at, event: tick.event.event, red: tick.red })), u(DOT)),
    };
  });

  const locks = model.locks.map((lock, i) => {
    const [labels, top] = [lockLabels[i], tops[lanes.length + i]];
    const wedge = down(wedgeHeight);
    const base = top + down(LINE) * Math.max(above, rows(labels)) + wedge;
    const queueTop = base + down(GAP);
    return {
      top, base, height: wedge, labels, queueTop,
      wedges: wedgeShapes(lock.wedges, { x, base, height: wedge, measure, unit }),
      queue: lock.queue.flatMap((q, n) => (q.names.length ? [{ ...flat({ from: q.at, to: lock.queue[n + 1]?.at ?? model.end }), y: queueTop, name: q.names.join(' '), at: q.at }] : [])),
    };
  });

  const stepShape = (/** @type {import('./model.js').Step[]} */ steps, /** @type {Placed[]} */ labels, /** @type {number} */ top) => {
    if (!steps.length) return null;
    return {
      top, base: top + down(LINE) * Math.max(1, rows(labels)), labels,
      lines: steps.map((step, i) => ({ ...flat({ from: step.at, to: steps[i + 1]?.at ?? model.end }), red: step.red })),
      marks: steps.map((step) => ({ x: x(step.at), at: step.at, red: step.red })),
    };
  };
  const shelf = stepShape(model.shelf, shelfLabels, tops[lanes.length + lockCount]);
  const row = stepShape(model.row, rowLabels, tops[needs.length - 1]);

  const arrows = model.arrows.flatMap((arrow) => {
    const lane = lanes[model.lanes.findIndex((l) => l.actor === arrow.from)];
    const lock = locks[Math.max(0, model.locks.findIndex((l) => l.key === arrow.key))];
    const end = arrow.to === 'row' ? row?.base : lock && lock.base - lock.height * 0.35;
    return lane && end ? [{ x: x(arrow.at), from: lane.bar + down(BAR) / 2, to: end, at: arrow.at, red: arrow.to === 'lock' }] : [];
  });
  // With several locks it is unknown which one a message went to.
  const messages = lanes.flatMap((lane) => lane.dots.flatMap(({ x: place, at, event }) => {
    const to = TO_SHELF.includes(event) ? shelf && shelf.base - down(LINE) : TO_LOCK.includes(event) && locks.length === 1 ? locks[0].base - locks[0].height : null;
    return to ? [{ x: place, from: lane.bar + down(BAR), to, at, actor: lane.actor, event }] : [];
  }));
  const axis = stepped ? points.slice(1, -1).map(([at], i) => ({ x: x(at), text: i ? '' : words.seconds(0) })) : seconds(begin, span).map((s) => ({ x: x(s * 1e6), text: words.seconds(s) }));
  return { width, height: y + axisHeight, needed: sum(needs) + LINE, gutter, x, timeAt, line: down(LINE), barHeight: down(BAR), lanes, locks, shelf, row, arrows, messages, axis };
}

/**
 * A column for each moment that has a label, and one before the first for what was before: their times and places from 0 to 1; for what comes
 * after the last half a column, and no more than `edge`.
 * @param {Model} model @param {number} edge
 */
function columnsOf({ lanes, shelf, begin, end }, edge) {
  const times = [...new Set([...lanes.flatMap(({ ticks }) => ticks), ...shelf.slice(1).filter(({ by }) => !by)].map(({ at }) => at))].sort((a, b) => a - b);
  const [first = begin, last = begin] = [times[0], times.at(-1)];
  return [[Math.min(begin, first - 1), 0], ...times.map((at, i) => [at, (i + 1) / times.length]), [Math.max(end, last + 1), 1 + Math.min(0.5 / times.length, edge)]];
}

/** Where a value of one column of the points lies in the other one; before the first and after the last as between the nearest two. @param {number[][]} points @param {0 | 1} by @param {number} value */
function between(points, by, value) {
  const n = points.slice(1, -1).filter((point) => point[by] < value).length;
  const [a, b] = points.slice(n, n + 2);
  return a[1 - by] + ((b[1 - by] - a[1 - by]) * (value - a[by])) / (b[by] - a[by] || 1);
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
  const first = Math.max(0, Math.ceil(begin / 1e6 / step));
  return Array.from({ length: Math.floor((begin / 1e6 + all) / step) - first + 1 }, (_, i) => Math.round((first + i) * step * 1e5) / 1e5);
}

/** How much time the picture shows: a little more than there is; while more may come, in steps. @param {number} end @param {boolean} live */
export function spanOf(end, live) {
  if (!live) return Math.max(end * 1.02, 1000);
  const room = end * 1.15;
  return [3, 5, 8, 12, 16, 20, 30, 45, 60, 120].map((s) => s * 1e6).find((s) => s >= room) ?? room * 1.5;
}
