/**
 * The sidebar: the lessons of ninety minutes, then all lessons by chapter, and a search. Entries are links, so that a lesson opens in
 * another tab.
 */

import { $, el } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import { currentLanguage, t } from '../shared/language.js';
import { promiseMark } from './promise-mark.js';
import { isOneBuyer } from '../page/address.js';
import { isNumber, nameOf, numberOf } from './lesson-number.js';
import * as ninetyMinutes from './ninety-minutes.js';

/** @typedef {import('./course.js').Lesson} Lesson */
/** @typedef {import('./course.js').Chapter} Chapter */

let shownId = '';
/** @type {Set<string>} */
const openChapters = new Set();
let redraw = () => {};

/**
 *
 * @param {Chapter[]} chapters @param {Lesson | null} lesson the one on show
 * @param {string[]} waiting slugs of strategies whose server is down
 */
export function draw(chapters, lesson, waiting) {
  redraw = () => draw(chapters, lesson, waiting);
  const lang = currentLanguage();
  const all = chapters.flatMap((chapter) => chapter.lessons);
  /** @type {string[]} */
  const words = $('search').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const entry = (/** @type {Lesson} */ l, /** @type {string} */ number, /** @type {Node | string} */ beside, current_ = l === lesson) => el('li', {}, el('a', {
    href: `#/${encodeURIComponent(l.id)}`,
    'aria-current': current_ && 'page',
    'data-id': l.id,
    class: l.strategies.length > 0 && l.strategies.every((s) => waiting.includes(s.slug)) && 'waiting',
  }, el('span', { class: 'chapter' }, number), el('span', { class: 'title' }, ...breakable(l.title[lang])), beside));
  const marked = (/** @type {Lesson} */ l) => entry(l, isNumber(l.id) ? l.id : '', l.strategies[0] && !isOneBuyer(l.id) ? promiseMark(l.strategies[0].promise) : '');

  const at = /** @type {HTMLElement | null} */ (document.activeElement?.closest('#chapters a'))?.dataset.id;
  const found = words.length ? all.filter((l) => words.every((word) => searchTextOf(l).includes(word))) : null;
  $('chapters').replaceChildren(...(found ? results(found) : [...ninety(), ...chapters.map(folded)]));
  // The links are new elements: the focus stays on its entry, or moves to the lesson just chosen.
  const id = lesson?.id ?? '';
  if (at) /** @type {HTMLElement | undefined} */ ([...$('chapters').querySelectorAll('a')].findLast((a) => a.dataset.id === (id === shownId ? at : id)))?.focus({ preventScroll: true });
  if (id !== shownId) scrollListTo($('lessons'), $('chapters').querySelector('[aria-current]'));
  shownId = id;
  for (const [id, file] of [['readme', 'README'], ['frameworks', 'frameworks']]) $(id).href = lang === 'zh' ? `${file}.zh-CN.md` : `${file}.md`;
  $('fold').replaceChildren(`${lesson ? nameOf(lesson, lang) : t('lessons')} `, icons('unfold'));

  function ninety() {
    const { seen, all: of, minutes } = ninetyMinutes.progress();
    const own = ninetyMinutes.NINETY_MINUTES.flatMap(([name]) => all.find((l) => l.id === name) ?? []);
    return [el('section', { 'aria-label': t('ninety'), class: 'spine' }, el('h2', {}, t('ninety'), ' ', el('span', { class: 'done' }, t('ninetyDone', seen, of, minutes))),
      el('ol', {}, ...own.map((l, i) => entry(l, `${i + 1}`, ninetyMinutes.isFinished(l.id) ? el('span', { class: 'dim' }, t('ninetySeen')) : ''))))];
  }

  /** @param {Chapter} chapter */
  function folded(chapter) {
    const own = lesson != null && chapter.lessons.includes(lesson);
    const fold = el('details', { open: own || openChapters.has(chapter.id) },
      el('summary', {}, el('h2', {}, chapter.title ? `${/^\d/.test(chapter.id) ? `${chapter.id} ` : ''}${chapter.title[lang]}` : t('chapter', chapter.id), ' ', el('span', { class: 'done' }, String(chapter.lessons.length)))),
      el('ul', {}, ...chapter.lessons.map(marked)));
    fold.addEventListener('toggle', () => openChapters[/** @type {HTMLDetailsElement} */ (fold).open ? 'add' : 'delete'](chapter.id));
    return fold;
  }

  /** @param {Lesson[]} lessons */
  function results(lessons) {
    return [el('p', { class: 'dim', role: 'status' }, t('searchFound', lessons.length)), el('ul', { class: 'search-results' }, ...lessons.map((l) => entry(l, numberOf(l.id), '')))];
  }
}

/** The text that a search looks through. @param {Lesson} lesson */
const searchTextOf = ({ id, title, claim, strategies, place }) => [id, title.zh, title.en, claim?.zh, claim?.en, place, ...strategies.map((s) => s.slug)].join(' ').toLowerCase();

export function listen() {
  $('search').oninput = () => redraw();
  $('search').onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter') /** @type {HTMLElement | null} */ ($('chapters').querySelector('a'))?.click();
    if (event.key === 'Escape') {
      $('search').value = '';
      redraw();
    }
  };
}

export const openSearch = () => {
  setOpen(true);
  $('search').focus();
};

/** Allows a line break between the words of a name like `BoundedLock`. @param {string} title */
const breakable = (title) => title.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part) => [el('wbr'), part]).slice(1);

/** Scrolls the list and not the page. @param {HTMLElement} list @param {Element | null | undefined} entry */
function scrollListTo(list, entry) {
  if (!entry) return;
  const [box, at] = [list.getBoundingClientRect(), entry.getBoundingClientRect()];
  if (at.top < box.top || at.bottom > box.bottom) list.scrollTop += at.top - box.top - box.height / 2;
}

/** On a phone the chapters fold. @param {boolean} open */
export function setOpen(open) {
  $('lessons').classList.toggle('open', open);
  $('fold').setAttribute('aria-expanded', open);
}
