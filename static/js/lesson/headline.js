/** The first lines of a lesson: its number, its title, and what it claims. */

import { $, put, quoting } from '../shared/dom.js';
import { current } from '../shared/language.js';

/** @param {{id: string, title: {zh: string, en: string}}} lesson @param {string} claim */
export function draw({ id, title }, claim) {
  const lang = current();
  put($('chapter'), id);
  put($('title'), title[lang]);
  $('claim').replaceChildren(...(lang === 'zh' ? [claim] : quoting(claim)));
  document.title = `${id} ${title[lang]} · oversell`;
}
