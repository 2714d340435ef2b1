/** Who waits for whom: a circle for each actor, and an arrow from each that waits to the one that has what it wants. */

import { svg } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import { t } from '../shared/language.js';

/** @typedef {import('./scheduler.js').Wait} Wait */

/** Sizes in the picture's own units, which are sixteenths of the root's font size. */
const [BETWEEN, RADIUS, MIDDLE, HEIGHT] = [96, 17, 32, 64];

/**
 * @param {string[]} actors @param {Wait[]} waits
 * @param {{isDead: (actor: string) => boolean, stageOf: (actor: string) => string}} replay
 */
export function waitsPicture(actors, waits, replay) {
  const x = (/** @type {string} */ actor) => BETWEEN / 2 + BETWEEN * actors.indexOf(actor);
  const width = BETWEEN * actors.length;
  const isMutual = (/** @type {Wait} */ { from, to }) => waits.some((other) => other.from === to && other.to === from);
  // A circle of waits, or a wait for who is dead, never ends.
  const isEndless = (/** @type {Wait} */ wait) => replay.isDead(wait.to) || isMutual(wait);
  const arrows = waits.map((wait) => {
    const isRed = isEndless(wait);
    return svg('g', { class: isRed ? 'wait red' : 'wait', 'data-wait': `${wait.from} ${wait.to}` },
      ...(wait.from === wait.to ? loop(x(wait.from)) : arrow(x(wait.from), x(wait.to))),
      ...(wait.from >= wait.to || !isMutual(wait) ? [svg('text', { x: wait.from === wait.to ? x(wait.from) + 34 : (x(wait.from) + x(wait.to)) / 2, y: MIDDLE + 6, 'text-anchor': wait.from === wait.to ? 'start' : 'middle' }, t('laneNow', 'waits'))] : []));
  });
  const circles = actors.map((actor) => svg('g', { class: replay.stageOf(actor) === 'start' ? 'actor idle' : 'actor', 'data-actor': actor },
    svg('circle', { cx: x(actor), cy: MIDDLE, r: RADIUS }),
    replay.isDead(actor) ? placed(icons('skull'), x(actor)) : svg('text', { x: x(actor), y: MIDDLE + 7, 'text-anchor': 'middle' }, actor)));
  return svg('svg', { viewBox: `0 0 ${width} ${HEIGHT}`, width: width, height: HEIGHT, 'aria-hidden': 'true' }, ...arrows, ...circles);
}

/** A sign in the place of a letter. @param {SVGElement} sign @param {number} x */
function placed(sign, x) {
  const width = 22;
  for (const [name, value] of Object.entries({ x: x - width / 2, y: MIDDLE - width / 2, width, height: width })) sign.setAttribute(name, String(value));
  return sign;
}

/** To the left it passes above, to the right below, so that two opposite ones are two. @param {number} from @param {number} to */
function arrow(from, to) {
  const side = to < from ? -1 : 1;
  const [begin, end] = [from + side * RADIUS * 0.7, to - side * RADIUS * 0.8];
  const edge = MIDDLE + side * RADIUS * 0.7;
  const peak = MIDDLE + side * (RADIUS + 12);
  return [svg('path', { d: `M${begin} ${edge}Q${(begin + end) / 2} ${peak} ${end} ${edge}` }),
    svg('path', { class: 'head', d: `M${end} ${edge}l${-side * 9} ${side * 1}l${side * 4} ${side * 7}z` })];
}

/** @param {number} at */
function loop(at) {
  return [svg('path', { d: `M${at + 12} ${MIDDLE - 12}c26 -16 26 40 0 24` }),
    svg('path', { class: 'head', d: `M${at + 12} ${MIDDLE + 12}l9 -3l-1 8z` })];
}
