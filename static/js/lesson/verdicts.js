/** What the last `oversell course` found here; of other lessons, what the full run found that comes with the program. */

import { $, el, markChinese, markCode, setText } from '../shared/dom.js';
import { currentLanguage, t } from '../shared/language.js';
import { nameOf } from './lesson-number.js';

/** @typedef {{id: string, verdict: 'reproduced' | 'not-reproduced' | 'noise' | 'unavailable', seen: import('./course.js').Title}} LessonVerdict */
/** @typedef {{at: string, lessons: LessonVerdict[]}} KeptRun */
/** @typedef {{conditions: {date?: string, version: string, commit: string, cpu: string, cores: number, kernel: string}, lessons: LessonVerdict[]}} StoredRun */
/** @typedef {{kept: KeptRun | null, stored: StoredRun | null}} Verdicts */

/** @param {KeptRun | null} kept @param {StoredRun | null} stored @returns {Verdicts | null} */
export const merged = (kept, stored) => (kept || stored ? { kept, stored } : null);

/** The verdict of a lesson, and of which run it is. @param {Verdicts | null} last @param {string} id */
function verdictOf(last, id) {
  const own = last?.kept?.lessons.find((l) => l.id === id);
  const found = own ?? last?.stored?.lessons.find((l) => l.id === id);
  return { found, when: own && last?.kept ? timeOf(last.kept) : last?.stored ? storedWhen(last.stored) : '' };
}

/** Date, version, commit and machine. @param {StoredRun} run */
const storedWhen = ({ conditions: { date, version, commit, cpu, cores } }) => t('storedRun', date ?? '', version, commit, cpu, cores);

/** What was seen quotes commands, and answers of the service, which are Chinese. @param {string} seen */
function inLanguages(seen) {
  // Of the whole answer the stock is meant; where nobody holds a lock, nobody is counted.
  const text = seen.replaceAll(/\{"mysql":\{[^;]*?"count":(\d+)[^;]*/g, (_, n) => t('stockLeft', n)).replaceAll(/、临界区内最多 0 个|, at most 0 inside at once/g, '');
  return currentLanguage() === 'en' ? markChinese(text) : markCode(text);
}

/** @param {KeptRun} last */
const timeOf = ({ at }) => new Date(at).toLocaleString(currentLanguage() === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** @param {import('./course.js').Lesson} lesson @param {Verdicts | null} last */
export function draw(lesson, last) {
  const lang = currentLanguage();
  const { found, when } = verdictOf(last, lesson.id);
  setText($('found'), found ? `${t('verdictOf', found.verdict)}${t('colon')}` : lesson.whyNot ? t('notRun') : t('notFound'));
  setText($('found-when'), found ? `${when} ·` : '');
  $('found-seen').replaceChildren(...inLanguages(found?.seen[lang] ?? lesson.whyNot?.[lang] ?? ''));
  setText($('place'), lesson.place);
  setText($('timing'), lesson.timing ? ` · ${t('restsOnTiming')}` : '');
}

let lastTable = '';
/** Only lessons with this verdict; empty: all. */
let selectedVerdict = '';

/** A table of all verdicts, by chapter. @param {import('./course.js').Chapter[]} chapters @param {Verdicts | null} last */
export function drawTable(chapters, last) {
  const lang = currentLanguage();
  document.title = `${t('allVerdicts')} · oversell`;
  const now = `${lang} ${last?.kept?.at} ${last?.stored != null} ${selectedVerdict}`;
  if (lastTable === now) return;
  lastTable = now;
  const claims = chapters.map((chapter) => ({ chapter, lessons: chapter.lessons.filter((lesson) => lesson.claim) })).filter(({ lessons }) => lessons.length);
  const found = (/** @type {import('./course.js').Lesson} */ lesson) => verdictOf(last, lesson.id).found;
  const kind = (/** @type {import('./course.js').Lesson} */ lesson) => /** @type {string} */ (found(lesson)?.verdict ?? 'none');
  const all = claims.flatMap(({ lessons }) => lessons);
  const ran = all.filter((lesson) => found(lesson));
  const reproduced = ran.filter((lesson) => kind(lesson) === 'reproduced').length;
  const when = [last?.kept && timeOf(last.kept), last?.stored && storedWhen(last.stored)].filter(Boolean).join(t('comma'));
  setText($('verdicts-say'), last ? t('verdictsCount', reproduced, ran.length, all.length, when) : t('notFound'));
  const kinds = [...new Set(all.map(kind))].sort();
  if (selectedVerdict && !kinds.includes(selectedVerdict)) selectedVerdict = '';
  $('verdicts-which').replaceChildren(el('option', { value: '' }, `${t('verdictAny')} (${all.length})`), ...kinds.map((one) =>
    el('option', { value: one, selected: one === selectedVerdict }, `${t('verdictOf', one)} (${all.filter((lesson) => kind(lesson) === one).length})`)));
  $('verdicts-which').onchange = () => {
    selectedVerdict = $('verdicts-which').value;
    drawTable(chapters, last);
  };
  $('verdicts').replaceChildren(...claims.flatMap(({ chapter, lessons }) => {
    const rows = lessons.filter((lesson) => !selectedVerdict || kind(lesson) === selectedVerdict);
    const head = el('tr', { class: 'chapter' }, el('th', { scope: 'rowgroup', colspan: '3' }, chapter.title ? chapter.title[lang] : t('chapter', chapter.id)));
    return rows.length ? [head, ...rows.map((lesson) => row(lesson, found(lesson), lang))] : [];
  }));
}

/** @param {import('./course.js').Lesson} lesson @param {LessonVerdict | undefined} found @param {'zh' | 'en'} lang */
function row(lesson, found, lang) {
  return el('tr', { class: found?.verdict ?? '' }, el('th', { scope: 'row' }, el('a', { href: `#/${lesson.id}` }, nameOf(lesson, lang))),
    el('td', {}, t('verdictOf', found?.verdict)), el('td', {}, ...inLanguages(found?.seen[lang] ?? lesson.whyNot?.[lang] ?? '')));
}
