/** The sidebar: every lesson by chapter. Links, so that a lesson can be opened in another tab. */

import { $, el, put } from './dom.js';
import { t } from './lang.js';
import { mark } from './marks.js';
import { format, nameOf } from './state.js';

/** @typedef {import('./api.js').Lesson} Lesson */

/**
 * The lessons by chapter, in the course's order. A companion text ([002]) stands where the course would have it:
 * with the lesson before it.
 * @param {Lesson[]} all @returns {{chapter: string, lessons: Lesson[]}[]}
 */
export function byChapter(all) {
  /** @type {{chapter: string, lessons: Lesson[]}[]} */
  const groups = [];
  for (const lesson of all) {
    const chapter = /^\d+/.exec(lesson.chapter)?.[0];
    const last = groups.at(-1);
    if (last && (!chapter || last.chapter === chapter)) last.lessons.push(lesson);
    else groups.push({ chapter: chapter ?? lesson.chapter, lessons: [lesson] });
  }
  return groups;
}

let shown = '';

/** @param {Lesson[]} all @param {Lesson} lesson the one on show @param {import('./api.js').Settings} settings @param {string[]} waiting slugs */
export function draw(all, lesson, settings, waiting) {
  const entry = (/** @type {Lesson} */ l) => el('li', {}, el('a', {
    href: format(nameOf(all, l), settings),
    'aria-current': l.slug === lesson.slug && 'page',
    'data-slug': l.slug,
    class: waiting.includes(l.slug) && 'waiting',
  }, el('span', { class: 'chapter' }, l.chapter), el('span', { class: 'slug', title: l.beyond && t('beyond') }, `${l.beyond ? '+ ' : ''}${l.slug}`), mark(l.promise)));

  const at = document.activeElement?.closest('#chapters a')?.getAttribute('data-slug');
  $('chapters').replaceChildren(...byChapter(all).flatMap((group) => [
    el('h2', {}, t('chapter', group.chapter)),
    el('ul', {}, ...group.lessons.map(entry)),
  ]));
  // The links are new ones. Who stood in the list stays there, and goes along to a lesson that was chosen.
  if (at) $('chapters').querySelector(`[data-slug="${lesson.slug === shown ? at : lesson.slug}"]`).focus();
  shown = lesson.slug;
  put($('fold'), `${lesson.chapter} ${lesson.slug} ▾`);
}

/** On a phone the chapters fold away. @param {boolean} open */
export function unfold(open) {
  $('lessons').classList.toggle('open', open);
  $('fold').setAttribute('aria-expanded', open);
}
