/** The errata: what the course's texts and printed code have wrong, each a lesson that shows it, and the definitions of the glossary. */

import * as api from '../shared/api.js';
import { $, el, markChinese } from '../shared/dom.js';
import { currentLanguage, errorText, t } from '../shared/language.js';
import { numberOf } from '../lesson/lesson-number.js';
import { startPage } from '../shared/small-page.js';
import { TERMS } from '../glossary/terms.js';

/** @typedef {import('../lesson/course.js').Title} Title */
/** What is wrong, where it is shown, and what the full run that comes with the program says of it. @typedef {{id: string, title: Title, claim: Title, place: string, verdict: string | undefined}} Erratum */

/** @type {Erratum[]} */
let errata = [];
let failure = '';

/** @param {string} text */
const inLanguages = (text) => (currentLanguage() === 'zh' ? [text] : markChinese(text));

function draw() {
  const lang = currentLanguage();
  const lessons = errata.map(({ id, title, claim, place, verdict }) => el('li', {},
    el('h2', {}, ...inLanguages(title[lang])),
    el('p', {}, ...inLanguages(claim[lang]), /[.。]$/.test(claim[lang]) ? '' : t('stop'), ' ', el('a', { href: `./#/${id}` }, t('glossaryLesson', numberOf(id)))),
    el('p', { class: 'dim' }, el('span', { lang: 'zh-CN' }, place), verdict ? ` · ${t('verdictOf', verdict)}` : '')));
  const terms = TERMS.flatMap(({ term, lesson, errs }) => (errs ? [el('li', {},
    el('h2', {}, term[lang]),
    el('p', {}, errs[lang], ' ', el('a', { href: `./#/${lesson}` }, t('glossaryLesson', numberOf(lesson)))),
    el('p', { class: 'dim' }, el('span', { lang: 'zh-CN' }, t('errataTerms'))))] : []));
  $('errata').replaceChildren(...(failure ? [el('li', {}, t('failed', failure))] : [...lessons, ...terms]));
}

async function load() {
  try {
    const [{ chapters }, run] = await Promise.all([api.course(), api.storedRun().catch(() => null)]);
    const verdictOf = (/** @type {string} */ id) => run?.lessons.find((/** @type {{id: string}} */ one) => one.id === id)?.verdict;
    errata = chapters.find((/** @type {{id: string}} */ { id }) => id === 'errata').lessons.map((/** @type {Erratum} */ lesson) => ({ ...lesson, verdict: verdictOf(lesson.id) }));
  } catch (error) {
    failure = errorText(error);
  }
  draw();
}

startPage(draw);
load();
