/**
 * Draws a scene as SVG up to a cursor.
 *
 * Bars, wedges and lines are cut off at the cursor; dots, words and arrows are hidden until their moment.
 */

import { svg } from '../shared/dom.js';
import { OPEN_DOTS } from './layout.js';

/** @typedef {import('./layout.js').Scene} Scene */
/** @typedef {import('./labels.js').Placed} Placed */
/** The name of a lane, and its state at the cursor. @typedef {{name: string, detail: string, now: string}} Name */
/** @typedef {{lanes: Name[], locks: Name[], shelf: Name, row: Name}} Names */

let drawings = 0;

export class Drawing {
  #id = `timeline-${(drawings += 1)}`;
  /** @type {{at: number, node: Element}[]} */
  #marks = [];
  /** @type {{parts: import('./labels.js').Part[], node: Element, shown: number}[]} */
  #labels = [];
  /** @type {Map<string, Element>} */
  #nows = new Map();
  /** The names at the left; they stay there when the picture is scrolled. */
  #names = svg('g', { class: 'names' });
  /** @type {Element | undefined} */
  #clip;
  /** @type {Element | undefined} */
  #cursor;
  /** @type {Scene | undefined} */
  #scene;
  #unit = 1;
  #comma = ', ';

  /** @type {SVGElement} */
  node = svg('svg', { class: 'timeline', 'aria-hidden': 'true' });

  /** Draws everything anew. @param {Scene} scene @param {Names} names @param {number} unit @param {string} comma */
  drawScene(scene, names, unit, comma) {
    this.#scene = scene;
    this.#unit = unit;
    this.#comma = comma;
    [this.#marks, this.#labels] = [[], []];
    this.#nows.clear();
    const height = Math.ceil(scene.height);
    this.node.setAttribute('viewBox', `0 0 ${scene.width} ${height}`);
    this.node.setAttribute('width', String(scene.width));
    this.node.setAttribute('height', String(height));
    const clip = svg('rect', { x: 0, y: 0, width: 0, height });
    this.#clip = clip;
    const cursor = svg('line', { class: 'cursor', y1: 0, y2: height - 24 * unit });
    this.#cursor = cursor;
    const spans = svg('g', { 'clip-path': `url(#${this.#id}-clip)` });
    const marks = svg('g');
    this.#names.replaceChildren(svg('rect', { class: 'ground', x: -4, y: 0, width: scene.gutter - 8 * unit, height }));
    scene.lanes.forEach((lane, i) => this.#lane(lane, names.lanes[i], spans, marks, i));
    scene.locks.forEach((lock, i) => this.#lock(lock, names.locks[i], spans, marks, i));
    this.#steps(scene.shelf, names.shelf, 'shelf', spans, marks);
    this.#steps(scene.row, names.row, 'row', spans, marks);
    this.node.replaceChildren(
      svg('defs', {}, svg('clipPath', { id: `${this.#id}-clip` }, clip), hatch(`${this.#id}-hatch`, unit)),
      this.#axis(scene, height), ...this.#messages(scene), spans, ...this.#arrows(scene), marks, cursor, this.#names);
  }

  /** Moves the cursor to a moment. @param {number} at @param {Names} names the names with their state then @returns {number} the cursor's x */
  moveCursor(at, names) {
    const scene = this.#scene;
    if (!scene) return 0;
    const x = Math.min(scene.x(at), scene.width);
    this.#clip?.setAttribute('width', String(Math.max(0, x)));
    this.#cursor?.setAttribute('x1', String(x));
    this.#cursor?.setAttribute('x2', String(x));
    for (const { at: from, node } of this.#marks) node.classList.toggle('later', from > at);
    for (const label of this.#labels) {
      const shown = label.parts.filter((part) => part.at <= at);
      if (shown.length === label.shown) continue;
      label.shown = shown.length;
      label.node.textContent = shown.map((part) => part.text).join(this.#comma);
    }
    names.lanes.forEach((name, i) => this.#setNow(`lane-${i}`, name.now));
    names.locks.forEach((name, i) => this.#setNow(`lock-${i}`, name.now));
    this.#setNow('shelf', names.shelf.now);
    this.#setNow('row', names.row.now);
    return x;
  }

  /** Keeps the names in sight when the picture is scrolled. @param {number} left */
  setScroll(left) {
    this.#names.setAttribute('transform', `translate(${left} 0)`);
    this.#names.classList.toggle('over', left > 0);
  }

  /** @param {number} at */
  xOf(at) {
    return this.#scene ? Math.min(this.#scene.x(at), this.#scene.width) : 0;
  }

  /** The moment at this x. @param {number} x */
  timeAt(x) {
    return this.#scene ? Math.max(0, this.#scene.timeAt(x)) : 0;
  }

  /** @param {string} key @param {string} text */
  #setNow(key, text) {
    const node = this.#nows.get(key);
    if (node && node.textContent !== text) node.textContent = text;
  }

  /** @param {number} at @param {Element} node */
  #mark(at, node) {
    this.#marks.push({ at, node });
    return node;
  }

  /** @param {Name} name @param {string} key @param {number} first @param {number} second the y of its two lines */
  #name(name, key, first, second) {
    const now = svg('text', { class: 'now', x: 0, y: second }, name.now);
    this.#nows.set(key, now);
    this.#names.append(svg('text', { class: 'who', x: 0, y: first, 'data-actor': name.name }, name.name, ' ', svg('tspan', { class: 'of' }, name.detail)), now);
  }

  /** @param {Placed[]} labels @param {(row: number) => number} base the y of a row */
  #words(labels, base) {
    return labels.map((label) => {
      const node = svg('text', { class: `label${label.red ? ' red' : ''}${label.bold ? ' bold' : ''}`, x: label.left, y: base(label.row) });
      this.#labels.push({ parts: label.parts, node, shown: 0 });
      return node;
    });
  }

  /** @param {import('./layout.js').LaneShape} lane @param {Name} name @param {Element} spans @param {Element} marks @param {number} i */
  #lane(lane, name, spans, marks, i) {
    const u = this.#unit;
    const { barHeight: height, line } = /** @type {Scene} */ (this.#scene);
    const middle = lane.bar + height / 2;
    const box = (/** @type {{x: number, width: number}} */ s, /** @type {Record<string, any>} */ with_) => svg('rect', { x: s.x, width: s.width, y: lane.bar, height, 'data-actor': lane.actor, ...with_ });
    const bars = lane.bars.map((bar) => (['waits', 'leaves'].includes(bar.kind)
      ? svg('line', { class: bar.within ? 'waits within' : bar.kind, 'data-kind': bar.kind, x1: bar.x, x2: bar.x + bar.width, y1: middle, y2: middle })
      : box(bar, { class: bar.kind, 'data-kind': bar.kind })));
    const stopped = lane.bars.filter((bar) => bar.kind === 'stopped');
    const others = bars.filter((_, n) => lane.bars[n].kind !== 'stopped' && !lane.bars[n].within);
    const within = bars.filter((_, n) => lane.bars[n].within);
    const red = lane.overlaps.map((span) => box(span, { class: 'overlap', 'data-kind': 'overlap', fill: `url(#${this.#id}-hatch)` }));
    const still = stopped.map((bar) => box(bar, { class: 'stopped', 'data-kind': 'stopped' }));
    spans.append(...others, ...within, ...stopped.map((bar) => box(bar, { class: 'pale' })), ...red, ...still);
    const inside = lane.bars.filter((bar) => bar.text)
      .map((bar) => this.#mark(bar.at, svg('text', { class: 'label', x: bar.x + 12 * u, y: middle + 6 * u }, bar.text)));
    const dots = lane.dots.map((dot) => this.#mark(dot.at, svg('circle', {
      class: `dot-${OPEN_DOTS.includes(dot.event) ? 'open' : 'full'}${dot.red ? ' red' : ''}`, cx: dot.x, cy: middle, r: 6 * u, 'data-event': dot.event, 'data-actor': lane.actor,
    })));
    // A thread leads from a higher label to its mark.
    const threads = lane.labels.filter((label) => label.row > 0)
      .map((label) => this.#mark(label.parts[0].at, svg('line', { class: 'thread', x1: label.x, x2: label.x, y1: lane.bar - line * label.row, y2: lane.bar })));
    const base = (/** @type {number} */ row) => lane.bar - 6 * u - line * row;
    // Beside the bar, away from what is said above the picture; without a row of labels above the bar, in the height of the bar alone.
    const first = lane.bar > lane.top ? base(0) + 3 * u : lane.bar + height - 4 * u;
    marks.append(...inside, ...threads, ...this.#carries(lane), ...dots, ...this.#words(lane.labels, base));
    this.#name(name, `lane-${i}`, first, lane.bar > lane.top ? first + line * 0.95 : lane.bar + height - 4 * u);
  }

  /** @param {import('./layout.js').LockShape} lock @param {Name} name @param {Element} spans @param {Element} marks @param {number} i */
  #lock(lock, name, spans, marks, i) {
    const u = this.#unit;
    for (const wedge of lock.wedges) {
      spans.append(svg('polygon', { class: 'wedge', points: wedge.points, 'data-kind': 'wedge', 'data-actor': wedge.owner }),
        svg('line', { class: 'held', x1: wedge.x, x2: wedge.x + wedge.width, y1: lock.base, y2: lock.base }));
      marks.append(...wedge.texts.map(({ x, at, text }) => this.#mark(at, svg('text', { class: 'label bold owner', x, y: lock.base - 7 * u }, text))));
    }
    for (const place of lock.queue) {
      spans.append(svg('rect', { class: 'place', x: place.x + 1, width: Math.max(0, place.width - 2), y: place.y, height: 20 * u }));
      if (place.width > 20 * u) marks.append(this.#mark(place.at, svg('text', { class: 'label', x: place.x + 6 * u, y: place.y + 17 * u }, place.name)));
    }
    const top = lock.base - lock.height;
    const { line } = /** @type {Scene} */ (this.#scene);
    // Those of several locks have one line.
    const second = lock.height > 19 * u ? lock.base - 2 * u : lock.base;
    marks.append(...this.#words(lock.labels, (row) => top - 6 * u - line * row));
    this.#name(name, `lock-${i}`, second - 21 * u, second);
  }

  /** @param {import('./layout.js').StepShape | null} steps @param {Name} name @param {string} key @param {Element} spans @param {Element} marks */
  #steps(steps, name, key, spans, marks) {
    if (!steps) return;
    const u = this.#unit;
    const { line } = /** @type {Scene} */ (this.#scene);
    spans.append(...steps.lines.map((step) => svg('line', { class: step.red ? 'shelf-line red' : 'shelf-line', x1: step.x, x2: step.x + step.width, y1: steps.base, y2: steps.base })));
    const now = svg('tspan', { class: 'now' }, name.now);
    this.#nows.set(key, now);
    const who = svg('text', { class: 'who', x: 0, y: steps.base - 6 * u }, name.name, ' ', now);
    marks.append(...steps.marks.map((mark) => this.#mark(mark.at, svg('line', { class: mark.red ? 'shelf-line red' : 'shelf-line', x1: mark.x, x2: mark.x, y1: steps.base - 18 * u, y2: steps.base }))),
      ...this.#words(steps.labels, (row) => steps.base - 6 * u - line * row));
    this.#names.append(who);
  }

  /** @param {Scene} scene */
  #messages(scene) {
    return scene.messages.map(({ x, from, to, at, actor, event }) => this.#mark(at, svg('line', { class: 'message', 'data-actor': actor, 'data-kind': 'message', 'data-event': event, x1: x, x2: x, y1: from, y2: to })));
  }

  /** A stale value: from its read to the write that uses it, below the bar. @param {import('./layout.js').LaneShape} lane */
  #carries(lane) {
    const u = this.#unit;
    const base = lane.bar + /** @type {Scene} */ (this.#scene).barHeight;
    return lane.carries.flatMap(({ from, at, to, text }) => [
      this.#mark(at, svg('path', {
        class: 'carry', 'data-kind': 'carry',
        d: `M${from} ${base + 3 * u}V${base + 12 * u}H${to}V${base + 9 * u}m${-5 * u} ${3 * u}l${5 * u} ${-9 * u}l${5 * u} ${9 * u}`,
      })),
      this.#mark(at, svg('text', { class: 'label red stale', x: from + 8 * u, y: base + 17 * u }, text)),
    ]);
  }

  /** @param {Scene} scene */
  #arrows(scene) {
    const u = this.#unit;
    return scene.arrows.map((arrow) => this.#mark(arrow.at, svg('path', {
      class: arrow.red ? 'arrow red' : 'arrow', 'data-kind': 'arrow',
      d: `M${arrow.x} ${arrow.from}V${arrow.to - 10 * u}m${-7 * u} ${-2 * u}l${7 * u} ${12 * u}l${7 * u} ${-12 * u}z`,
    })));
  }

  /** @param {Scene} scene @param {number} height */
  #axis(scene, height) {
    const foot = height - 24 * this.#unit;
    return svg('g', { class: 'axis' }, ...scene.axis.flatMap(({ x, text }) => [
      svg('line', { x1: x, x2: x, y1: 0, y2: foot }),
      svg('text', { x, y: height - 5 * this.#unit, 'text-anchor': x > scene.width - 30 ? 'end' : text.length > 6 ? 'start' : 'middle' }, text),
    ]));
  }
}

/** Red stripes, seen without colour. @param {string} id @param {number} unit */
function hatch(id, unit) {
  const [wide, line] = [10 * unit, 5 * unit];
  return svg('pattern', { id, width: wide, height: wide, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    svg('rect', { class: 'hatch-ground', width: wide, height: wide }), svg('rect', { class: 'hatch-line', width: line, height: wide }));
}
