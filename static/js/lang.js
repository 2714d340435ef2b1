/** Which language the page speaks. Chinese first; the choice is remembered. */

import { always } from './kept.js';
import { languages } from './words.js';

/** @type {'zh' | 'en'} */
let lang = always.get('lang') === 'en' ? 'en' : 'zh';

/** @returns {'zh' | 'en'} the language in force */
export const current = () => lang;

/** @param {'zh' | 'en'} to */
export function speak(to) {
  lang = to;
  always.set('lang', to);
}

/** The text of this name. @param {string} name @param {...any} about @returns {any} a text; of some names, several */
export function t(name, ...about) {
  const text = /** @type {Record<string, any>} */ (languages[lang])[name];
  return typeof text === 'function' ? text(...about) : text;
}

/** Why the service refused: it words its title in Chinese and its detail in English (RFC 9457). @param {any} error */
export function reason({ name, message, problem }) {
  // The browser's own word for a connection that failed is its own language.
  if (name === 'TypeError' && !problem) return t('unreached');
  if (lang === 'en' || !problem?.title) return message;
  return problem.field ? `${problem.title}（${problem.detail}）` : problem.title;
}

/** 5000 → 5,000: the same in both languages. @param {number} n */
export const number = (n) => Math.round(n).toLocaleString('en-US');

/** Puts the words into everything that asks for some by `data-t`. */
export function translate() {
  document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en';
  const asking = (/** @type {string} */ what) => /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(what));
  for (const e of asking('[data-t]')) e.textContent = t(e.dataset.t ?? '');
  for (const e of asking('[data-t-label]')) e.setAttribute('aria-label', t(e.dataset.tLabel ?? ''));
  for (const e of asking('[data-t-title]')) e.title = t(e.dataset.tTitle ?? '');
  for (const e of asking('[data-t-hint]')) e.placeholder = t(e.dataset.tHint ?? '');
}
