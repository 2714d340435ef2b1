/** Draws a model on the page, as wide as there is room, with the state at the cursor. */

import { el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { Drawing } from './drawing.js';
import { sceneOf, spanOf } from './layout.js';
import { stateAt } from './state-at-moment.js';

/** @typedef {import('./model.js').Model} Model */

/** A narrower timeline cannot be read: it is scrolled. */
const MIN_WIDTH = 860;
/** The same on a phone, and on a projector, where nobody scrolls. */
const PHONE_WIDTH = 640;
/** Room for the words beside the cursor, in sixteenths of the root's font size. */
const WORDS_AHEAD = 120;
/** Half the width of a mark, in pixels. */
const MARK_RADIUS = 8;
/** A shorter picture has its times in ms. */
const SHOW_MS_BELOW_US = 400_000;
const pen = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));

export class Picture {
  #drawing = new Drawing();
  #shown = '';
  #lastWords = { left: 0, right: 0 };
  #gutter = 0;
  /** @type {Model | undefined} */
  #model;
  /** The height that it needs at full scale, in sixteenths of the root's font size. */
  needed = 0;

  /** @param {HTMLElement} host a box of its own, which may scroll */
  constructor(host) {
    this.host = host;
    host.replaceChildren(this.#drawing.node);
    host.addEventListener('scroll', () => this.#drawing.setScroll(host.scrollLeft));
  }

  /** The room for it on the page. Reading this of all pictures before drawing one lays out the page once. */
  room() {
    const { clientWidth: shown, clientHeight: height } = this.host;
    return { shown, height, family: getComputedStyle(this.host).fontFamily };
  }

  /** The width that time has, in pixels. */
  timeWidth() {
    return this.host.clientWidth - this.#gutter;
  }

  /**
   * `live`: more may come; `moves`: keep the moving cursor in sight; `scaled`: its times are real; `span`: the time shown, where another
   * picture has the same; `begin`: its first moment; `stepped`: all of it in the width that there is, a column for each labelled moment; `scale`: smaller than 1 so that two pictures fit; `dense`, `height`, `comes`: see
   * layout.js.
   * @param {Model} model @param {number} cursor in microseconds
   * @param {{live: boolean, moves: boolean, scaled: boolean, span?: number, begin?: number, stepped?: boolean, scale?: number, dense?: boolean, height?: number, comes?: import('./layout.js').ServerLanes}} how
   * @param {{shown: number, family: string}} [room]
   */
  draw(model, cursor, { live, moves, scaled, span = spanOf(model.end, live), begin = 0, stepped = false, scale = 1, dense = false, height, comes }, { shown, family } = this.room()) {
    const root = parseFloat(getComputedStyle(document.documentElement).fontSize) * scale;
    this.host.style.setProperty('--scale', String(scale));
    const unit = root / 16;
    const width = stepped ? shown : Math.max(shown, (dense || shown < PHONE_WIDTH * unit ? PHONE_WIDTH : MIN_WIDTH) * unit);
    const names = this.#names(model, cursor, shown < MIN_WIDTH / 2);
    const now = JSON.stringify([scaled, stepped, width, unit, begin, span, dense, height, comes, t('language'), names.lanes.map((lane) => lane.detail)]);
    const isNew = model !== this.#model || now !== this.#shown;
    if (isNew) {
      const measure = (/** @type {string} */ text, /** @type {boolean} */ bold) => {
        pen.font = `${bold ? 700 : 400} ${1.25 * root}px ${family}`;
        return pen.measureText(text).width;
      };
      const words = { tick: (/** @type {any} */ e) => t('tick', e), arrow: (/** @type {any} */ a) => t('arrow', a), seconds: (/** @type {number} */ s) => (scaled && !stepped ? (span < SHOW_MS_BELOW_US ? `${Math.round(s * 1e5) / 100} ms` : `${s} s`) : s === 0 ? t('unscaled') : ''), stopped: t('laneNow', 'stopped'), comma: t('comma') };
      const scene = sceneOf({ width, shown, unit, begin, span, stepped, dense, height, comes, measure, model, words });
      this.needed = scene.needed;
      [this.#lastWords, this.#gutter] = [lastWordsOf(scene), scene.gutter];
      this.#drawing.drawScene(scene, names, unit, t('comma'));
      [this.#model, this.#shown] = [model, now];
    }
    // At the end everything is shown, and no cursor covers the last words.
    const isStill = !live && cursor >= model.end;
    this.host.classList.toggle('still', isStill);
    this.#drawing.moveCursor(cursor, names);
    // A picture that has ended before the other one shows its own end. At the end it may get another scale.
    if ((moves || (isNew && isStill)) && width > shown) {
      const x = this.#drawing.xOf(Math.min(cursor, model.end));
      this.#follow(x, unit);
      if (isStill) this.#showLastWords(x);
    }
  }

  /**
   * Scrolls no farther than the rightmost words need. The last mark stays in sight, and so does the beginning of its words, if there is
   * room for both.
   * @param {number} end
   */
  #showLastWords(end) {
    const { clientWidth, scrollLeft } = this.host;
    const [left, right] = [Math.min(this.#lastWords.left, end) - this.#gutter, Math.max(this.#lastWords.right, end)];
    this.host.scrollLeft = Math.min(end - this.#gutter - MARK_RADIUS, Math.max(right - clientWidth, Math.min(left, scrollLeft)));
  }

  /** Keeps the cursor in sight, and the words beside it. @param {number} x @param {number} unit */
  #follow(x, unit) {
    const { clientWidth, scrollLeft } = this.host;
    const ahead = WORDS_AHEAD * unit;
    if (x < scrollLeft + ahead || x + ahead > scrollLeft + clientWidth) this.host.scrollLeft = x + ahead - clientWidth;
  }

  /** The moment below a point of the screen. @param {number} clientX */
  timeAt(clientX) {
    return this.#drawing.timeAt(clientX - this.#drawing.node.getBoundingClientRect().left);
  }

  /** `narrow`: there is no room to repeat what the picture shows. @param {Model} model @param {number} cursor @param {boolean} narrow @returns {import('./drawing.js').Names} */
  #names(model, cursor, narrow) {
    const moment = stateAt(model, cursor);
    const several = model.locks.length > 1;
    return {
      lanes: model.lanes.map((lane, i) => ({ name: lane.actor, detail: lane.token && !narrow ? `${lane.instance} #${lane.token}` : lane.instance, now: t('laneNow', moment.lanes[i]) })),
      locks: model.locks.map((lock, i) => ({
        name: several ? shortKey(lock.key) : t('lockLane'), detail: '', now: several ? '' : t('lockNow', moment.locks[i]),
      })),
      shelf: { name: t('shelf'), detail: '', now: narrow ? '' : moment.shelf },
      row: { name: t('rowLane'), detail: '', now: '' },
    };
  }
}

/** Where the last mark's label begins, and where the rightmost label ends; without one, neither is beyond any mark. @param {import('./layout.js').Scene} scene */
function lastWordsOf(scene) {
  const labels = [...scene.lanes, ...scene.locks, scene.shelf, scene.row].flatMap((part) => part?.labels ?? []);
  const last = labels.reduce((a, b) => (a && a.x > b.x ? a : b), labels[0]);
  return { left: last?.left ?? Infinity, right: Math.max(0, ...labels.map(({ left, width }) => left + width)) };
}

/** The name of a Redis node where there is one; else the key without the product's number. @param {string} key */
const shortKey = (key) => /^(redis(?:-\d+)?) /.exec(key)?.[1] ?? key.replace(/[:-]\d{9,}$/, '');

/** The events as sentences, for whoever does not see the picture. @param {import('./events.js').ReplayEvent[]} events @returns {HTMLElement[]} */
export const sentences = (events) => events.map((e) => el('li', {}, el('span', { class: 'dim' }, `${(e.t_us / 1e6).toFixed(2)} s`), ' ', t('told', e)));
