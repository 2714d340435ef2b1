/** What the last `oversell course` has found of a lesson. */

import { $, put } from './dom.js';
import { current, t } from './lang.js';

/** @typedef {{id: string, verdict: 'reproduced' | 'not-reproduced' | 'unavailable', seen: import('./course.js').Title}} Found */
/** @typedef {{at: string, lessons: Found[]}} Verdicts */

/** @param {import('./course.js').Lesson} lesson @param {Verdicts | null} last */
export function draw(lesson, last) {
  const lang = current();
  const found = last?.lessons.find((l) => l.id === lesson.id);
  const when = last ? new Date(last.at).toLocaleString(lang === 'zh' ? 'zh-CN' : 'en-GB', { dateStyle: 'medium', timeStyle: 'short' }) : '';
  put($('found'), found ? t('found', found.verdict, when) : lesson.whyNot ? t('notRun') : t('notFound'));
  put($('found-seen'), found?.seen[lang] ?? lesson.whyNot?.[lang] ?? '');
  put($('place'), lesson.timing ? `${lesson.place} · ${t('restsOnTiming')}` : lesson.place);
}
