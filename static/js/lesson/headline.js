/** A lesson's number, title and claim. */

import { $, setText, markChinese } from '../shared/dom.js';
import { currentLanguage } from '../shared/language.js';

/** @param {{id: string, title: {zh: string, en: string}}} lesson @param {string} claim */
export function draw({ id, title }, claim) {
  const lang = currentLanguage();
  setText($('chapter'), id);
  setText($('title'), title[lang]);
  $('claim').replaceChildren(...(lang === 'zh' ? [claim] : markChinese(claim)));
  document.title = `${id} ${title[lang]} · oversell`;
}
