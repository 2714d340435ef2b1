/** What the last `oversell course` has found of a lesson. */

import { $, el, put } from './dom.js';
import { current, t } from './lang.js';

/** @typedef {{id: string, verdict: 'reproduced' | 'not-reproduced' | 'noise' | 'unavailable', seen: import('./course.js').Title}} Found */
/** @typedef {{at: string, lessons: Found[]}} Verdicts */

/** @param {Verdicts} last */
const when = ({ at }) => new Date(at).toLocaleString(current() === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** @param {import('./course.js').Lesson} lesson @param {Verdicts | null} last */
export function draw(lesson, last) {
  const lang = current();
  const found = last?.lessons.find((l) => l.id === lesson.id);
  put($('found'), found ? t('found', found.verdict, last && when(last)) : lesson.whyNot ? t('notRun') : t('notFound'));
  put($('found-seen'), found?.seen[lang] ?? lesson.whyNot?.[lang] ?? '');
  put($('place'), lesson.place);
  put($('timing'), lesson.timing ? ` · ${t('restsOnTiming')}` : '');
}

let listed = '';

/** All of them, chapter by chapter. @param {import('./course.js').Chapter[]} chapters @param {Verdicts | null} last */
export function list(chapters, last) {
  const lang = current();
  document.title = `${t('seen')} · oversell`;
  const now = `${lang} ${last?.at}`;
  if (listed === now) return;
  listed = now;
  const lessons = chapters.flatMap((chapter) => chapter.lessons).filter((lesson) => lesson.claim);
  const reproduced = last?.lessons.filter((found) => found.verdict === 'reproduced').length ?? 0;
  put($('verdicts-say'), last ? t('verdictsCount', reproduced, last.lessons.length, lessons.length, when(last)) : t('notFound'));
  $('verdicts').replaceChildren(...lessons.map((lesson) => {
    const found = last?.lessons.find((l) => l.id === lesson.id);
    return el('tr', { class: found?.verdict ?? '' }, el('th', { scope: 'row' }, el('a', { href: `#/${lesson.id}` }, `${lesson.id} ${lesson.title[lang]}`)),
      el('td', {}, t('verdictOf', found?.verdict)), el('td', {}, found?.seen[lang] ?? lesson.whyNot?.[lang] ?? ''));
  }));
}
