/** A lesson's number, title and claim. */

import { nameOf, numberOf } from './lesson-number.js';
import { $, setText, markChinese } from '../shared/dom.js';
import { currentLanguage } from '../shared/language.js';

/** @param {{id: string, title: {zh: string, en: string}}} lesson @param {string} claim */
export function draw({ id, title }, claim) {
  const lang = currentLanguage();
  $('chapter').dataset.lesson = id;
  setText($('chapter'), numberOf(id));
  setText($('title'), title[lang]);
  $('claim').replaceChildren(...(lang === 'zh' ? [claim] : markChinese(claim)));
  document.title = `${nameOf({ id, title }, lang)} · oversell`;
}
