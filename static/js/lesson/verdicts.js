/** What the last `oversell course` has found of a lesson. */

import { $, el, put } from '../shared/dom.js';
import { current, t } from '../shared/language.js';

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
/** Only those with this verdict; an empty text: all. */
let which = '';

/** All of them, or those of one kind, chapter by chapter. @param {import('./course.js').Chapter[]} chapters @param {Verdicts | null} last */
export function list(chapters, last) {
  const lang = current();
  document.title = `${t('seen')} · oversell`;
  const now = `${lang} ${last?.at} ${which}`;
  if (listed === now) return;
  listed = now;
  const claims = chapters.map((chapter) => ({ chapter, lessons: chapter.lessons.filter((lesson) => lesson.claim) })).filter(({ lessons }) => lessons.length);
  const found = (/** @type {import('./course.js').Lesson} */ lesson) => last?.lessons.find((l) => l.id === lesson.id);
  const kind = (/** @type {import('./course.js').Lesson} */ lesson) => /** @type {string} */ (found(lesson)?.verdict ?? 'none');
  const all = claims.flatMap(({ lessons }) => lessons);
  const reproduced = last?.lessons.filter(({ verdict }) => verdict === 'reproduced').length ?? 0;
  put($('verdicts-say'), last ? t('verdictsCount', reproduced, last.lessons.length, all.length, when(last)) : t('notFound'));
  const kinds = [...new Set(all.map(kind))].toSorted();
  if (which && !kinds.includes(which)) which = '';
  $('verdicts-which').replaceChildren(el('option', { value: '' }, `${t('verdictAny')} (${all.length})`), ...kinds.map((one) =>
    el('option', { value: one, selected: one === which }, `${t('verdictOf', one)} (${all.filter((lesson) => kind(lesson) === one).length})`)));
  $('verdicts-which').onchange = () => {
    which = $('verdicts-which').value;
    list(chapters, last);
  };
  $('verdicts').replaceChildren(...claims.flatMap(({ chapter, lessons }) => {
    const rows = lessons.filter((lesson) => !which || kind(lesson) === which);
    const head = el('tr', { class: 'chapter' }, el('th', { scope: 'rowgroup', colspan: '3' }, chapter.title ? chapter.title[lang] : t('chapter', chapter.id)));
    return rows.length ? [head, ...rows.map((lesson) => row(lesson, found(lesson), lang))] : [];
  }));
}

/** @param {import('./course.js').Lesson} lesson @param {Found | undefined} found @param {'zh' | 'en'} lang */
function row(lesson, found, lang) {
  return el('tr', { class: found?.verdict ?? '' }, el('th', { scope: 'row' }, el('a', { href: `#/${lesson.id}` }, `${lesson.id} ${lesson.title[lang]}`)),
    el('td', {}, t('verdictOf', found?.verdict)), el('td', {}, found?.seen[lang] ?? lesson.whyNot?.[lang] ?? ''));
}
