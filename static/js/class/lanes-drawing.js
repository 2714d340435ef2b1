/**
 * Draws the lanes of a class: dotted while waiting, black inside, grey for readers together, hatched red where more are inside than may be.
 *
 * Many lanes are thin, and stand in two columns where there is room.
 */

import { svg } from '../shared/dom.js';
import { t } from '../shared/language.js';

/** @typedef {import('./visit-lanes.js').ClassPicture} ClassPicture */
/** @typedef {import('./visit-lanes.js').ClassLane} ClassLane */
/** Sizes in pixels. @typedef {{width: number, row: number, bar: number, gutter: number, rows: number, columns: number, unit: number}} Dimensions */

/** Height of a lane and of its bar, by the number of rows; then the width for names. In units. */
const SIZES = [{ most: 3, row: 58, bar: 38 }, { most: 6, row: 42, bar: 26 }, { most: 10, row: 32, bar: 20 }, { most: Infinity, row: 25, bar: 15 }];
const [GUTTER, NARROW_GUTTER, AXIS_HEIGHT, PHONE_WIDTH] = [190, 104, 28, 600];
/** Only the last ones are drawn. */
const MAX_LANES = 30;
/** Bold letters are at most this much wider. */
const BOLD_FACTOR = 1.15;
/** More lanes than this stand in two columns. */
const ONE_COLUMN = 12;
const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

/** @param {HTMLElement} host @param {ClassPicture} shown @param {string} me whose lane stands first and is marked */
export function draw(host, shown, me) {
  const root = parseFloat(getComputedStyle(document.documentElement).fontSize);
  const unit = root / 16;
  const width = host.clientWidth;
  const phone = width < PHONE_WIDTH * unit;
  const mine = shown.lanes.filter((lane) => me !== '' && lane.who === me);
  const others = shown.lanes.filter((lane) => !mine.includes(lane));
  const lanes = [...mine, ...others.slice(-(MAX_LANES - mine.length))];
  const columns = !phone && lanes.length > ONE_COLUMN ? 2 : 1;
  const rows = Math.max(1, Math.ceil(lanes.length / columns));
  const size = SIZES.find(({ most }) => rows <= most) ?? SIZES[0];
  const room = { width: width / columns - (columns - 1) * 12 * unit, row: size.row * unit, bar: size.bar * unit, gutter: (phone ? NARROW_GUTTER : GUTTER) * unit, rows, columns, unit };
  pen.font = `${(phone ? 1 : 1.25) * root}px ${getComputedStyle(host).fontFamily}`;
  const height = rows * room.row + AXIS_HEIGHT * unit;
  const all = Array.from({ length: columns }, (_, column) => {
    const own = lanes.slice(column * rows, (column + 1) * rows);
    return svg('g', { transform: `translate(${column * (width - room.width)} 0)` }, axis(shown, room), ...own.map((lane, i) => laneOf(lane, i * room.row, shown, room, me)));
  });
  host.replaceChildren(svg('svg', { class: 'timeline class-lanes', viewBox: `0 0 ${width} ${height}`, width, height, 'aria-hidden': 'true' }, hatch(unit), ...all));
}

/** @param {ClassPicture} shown @param {Dimensions} room */
const scale = ({ now, span }, { gutter, width }) => {
  // Once more time has passed than the span holds, the beginning scrolls out of the picture.
  const begin = Math.max(0, now - span);
  return (/** @type {number} */ at) => gutter + Math.max(0, Math.min(1, (at - begin) / span)) * (width - gutter);
};

/** @param {ClassLane} lane @param {number} top @param {ClassPicture} shown @param {Dimensions} room @param {string} me */
function laneOf(lane, top, shown, room, me) {
  const x = scale(shown, room);
  const middle = top + room.row / 2;
  const y = middle - room.bar / 2;
  const mine = me !== '' && lane.who === me;
  const box = (/** @type {import('../timeline/model.js').Span} */ s, /** @type {Record<string, any>} */ with_) => svg('rect', { x: x(s.from), width: Math.max(1.5, x(s.to) - x(s.from)), y, height: room.bar, ...with_ });
  // A short stay is a dot, not a bar.
  const long = lane.bars.filter((bar) => bar.kind === 'waits' || !lane.dots.some((dot) => dot.at === bar.from));
  const bars = long.map((bar) => (['waits', 'leaves'].includes(bar.kind)
    ? svg('line', { class: bar.kind, 'data-kind': bar.kind, x1: x(bar.from), x2: x(bar.to), y1: middle, y2: middle })
    : box(bar, { class: bar.kind, 'data-kind': bar.kind })));
  const red = lane.overlaps.map((span) => box(span, { class: 'overlap', 'data-kind': 'overlap', fill: 'url(#class-hatch)' }));
  const dots = lane.dots.flatMap(({ at, n }) => [
    svg('circle', { class: 'dot-full', 'data-kind': 'dot', cx: x(at), cy: middle, r: 7 * room.unit }),
    ...(n == null ? [] : [labelBeside(x(at), middle, t('classLeft', n), 'count', room)])]);
  const ends = lane.ends.map(({ at, lost }) => labelBeside(x(at), middle, t(lost ? 'classGone' : 'classVain'), 'end', room));
  const name = svg('text', { class: mine ? 'who mine' : 'who', x: 0, y: middle + 7 * room.unit }, `${mine ? '▶ ' : ''}${shortened(lane.name, (room.gutter - (mine ? 34 : 12) * room.unit) / (mine ? BOLD_FACTOR : 1))}`);
  // The instance, if there is room for it.
  const at = svg('tspan', { class: 'of' }, ` ${lane.instance}`);
  if (!mine && pen.measureText(`${lane.name} ${lane.instance}`).width < room.gutter - 12 * room.unit) name.append(at);
  const marked = mine ? [svg('rect', { class: 'own', x: 0, y: top, width: room.width, height: room.row })] : [];
  return svg('g', { class: mine ? 'lane mine' : 'lane', 'data-who': lane.name }, ...marked, ...bars, ...red, ...dots, ...ends, name);
}

/** A label after a mark, or before it at the right edge. @param {number} x @param {number} y @param {string} text @param {string} kind @param {Dimensions} room */
function labelBeside(x, y, text, kind, { unit, width }) {
  const fits = x + 12 * unit + pen.measureText(text).width <= width;
  return svg('text', { class: 'label', 'data-kind': kind, x: x + (fits ? 12 : -12) * unit, y: y + 7 * unit, 'text-anchor': fits ? 'start' : 'end' }, text);
}

/** Shortens a name to this width. @param {string} name @param {number} width */
function shortened(name, width) {
  if (pen.measureText(name).width <= width) return name;
  const letters = [...name];
  while (letters.length > 1 && pen.measureText(`${letters.join('')}…`).width > width) letters.pop();
  return `${letters.join('')}…`;
}

/** @param {ClassPicture} shown @param {Dimensions} room */
function axis(shown, room) {
  const x = scale(shown, room);
  const begin = Math.max(0, shown.now - shown.span) / 1e6;
  const step = [2, 5, 10, 20, 30].find((s) => shown.span / 1e6 / s <= (room.width < 700 * room.unit ? 4 : 8)) ?? 30;
  const foot = room.rows * room.row;
  const seconds = Array.from({ length: Math.floor(shown.span / 1e6 / step) + 1 }, (_, i) => Math.ceil(begin / step) * step + i * step);
  const marks = seconds.filter((s) => s * 1e6 - begin * 1e6 <= shown.span).flatMap((s) => [
    svg('line', { x1: x(s * 1e6), x2: x(s * 1e6), y1: 0, y2: foot }),
    svg('text', { x: x(s * 1e6), y: foot + 21 * room.unit, 'text-anchor': x(s * 1e6) > room.width - 30 ? 'end' : 'middle' }, `${s} s`)]);
  return svg('g', { class: 'axis' }, ...marks, svg('line', { class: 'cursor', x1: x(shown.now), x2: x(shown.now), y1: 0, y2: foot }));
}

/** @param {number} unit */
function hatch(unit) {
  const wide = 10 * unit;
  return svg('defs', {}, svg('pattern', { id: 'class-hatch', width: wide, height: wide, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('rect', { class: 'hatch-ground', width: wide, height: wide }), svg('rect', { class: 'hatch-line', width: wide / 2, height: wide })));
}
