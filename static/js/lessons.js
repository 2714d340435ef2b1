/** The sidebar: every lesson by chapter, by number and title. Links, so that a lesson can be opened in another tab. */

import { $, el, put } from './dom.js';
import { current, t } from './lang.js';
import { mark } from './marks.js';
import { format } from './state.js';

/** @typedef {import('./course.js').Lesson} Lesson */
/** @typedef {import('./course.js').Chapter} Chapter */

let shown = '';

/**
 * @param {Chapter[]} chapters @param {Lesson | null} lesson the one on show, if any @param {import('./state.js').Settings} settings
 * @param {string[]} waiting slugs of strategies whose server is down
 */
export function draw(chapters, lesson, settings, waiting) {
  const lang = current();
  const entry = (/** @type {Lesson} */ l) => el('li', {}, el('a', {
    href: format(l.id, settings),
    'aria-current': l === lesson && 'page',
    'data-id': l.id,
    class: l.strategies.length > 0 && l.strategies.every((s) => waiting.includes(s.slug)) && 'waiting',
  }, el('span', { class: 'chapter' }, short(l)), el('span', { class: 'title' }, ...humps(l.title[lang])), l.strategies[0] ? mark(l.strategies[0].promise) : ''));

  const at = /** @type {HTMLElement | null} */ (document.activeElement?.closest('#chapters a'))?.dataset.id;
  $('chapters').replaceChildren(...chapters.flatMap((chapter) => [
    el('h2', {}, chapter.title ? `${/^\d/.test(chapter.id) ? `${chapter.id} ` : ''}${chapter.title[lang]}` : t('chapter', chapter.id)),
    el('ul', {}, ...chapter.lessons.map(entry)),
  ]));
  // The links are new ones. Who stood in the list stays there, and goes along to a lesson that was chosen.
  const id = lesson?.id ?? '';
  if (at) /** @type {HTMLElement | undefined} */ ([...$('chapters').querySelectorAll('a')].find((a) => a.dataset.id === (id === shown ? at : id)))?.focus({ preventScroll: true });
  if (id !== shown) inSight($('lessons'), $('chapters').querySelector('[aria-current]'));
  shown = id;
  $('readme').href = lang === 'zh' ? 'README.zh-CN.md' : 'README.md';
  put($('fold'), `${lesson ? `${short(lesson)} ${lesson.title[lang]}` : t('lessons')} ▾`);
}

/** A name of many words without a space may be broken between them. @param {string} title */
const humps = (title) => title.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part) => [el('wbr'), part]).slice(1);

/** Scrolls the list, and not the page. @param {HTMLElement} list @param {HTMLElement | null} entry */
function inSight(list, entry) {
  if (!entry) return;
  const [box, at] = [list.getBoundingClientRect(), entry.getBoundingClientRect()];
  if (at.top < box.top || at.bottom > box.bottom) list.scrollTop += at.top - box.top - box.height / 2;
}

/** The number of its section: there is no room for more. @param {Lesson} lesson */
const short = (lesson) => /^\d+(\.\d+)*/.exec(lesson.id)?.[0] ?? '+';

/** On a phone the chapters fold away. @param {boolean} open */
export function unfold(open) {
  $('lessons').classList.toggle('open', open);
  $('fold').setAttribute('aria-expanded', open);
}
