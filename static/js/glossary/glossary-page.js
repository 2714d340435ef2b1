/** The glossary: the kinds of locks of chapter 5, each with a sentence and its lesson. */

import { $, el } from '../shared/dom.js';
import { currentLanguage, t } from '../shared/language.js';
import { numberOf } from '../lesson/lesson-number.js';
import { startPage } from '../shared/small-page.js';
import { TERMS } from './terms.js';

startPage(() => {
  const lang = currentLanguage();
  $('terms').replaceChildren(...TERMS.map(({ term, is, lesson, errs }) => el('li', {},
    el('h2', {}, term[lang]),
    el('p', {}, is[lang], ' ', el('a', { href: `./#/${lesson}` }, t('glossaryLesson', numberOf(lesson)))),
    ...(errs ? [el('p', { class: 'dim' }, errs[lang])] : []))));
});
