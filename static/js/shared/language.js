/** The page's language: the browser's at first, then the one that was chosen. Modules add their words to those of the first view. */

import { localStore } from './storage.js';
import * as firstViewWords from '../words/first-view.js';

/** @typedef {import('../words/all.js').Words} Words */

/** @type {Record<'zh' | 'en', Words>} */
const languages = { zh: { ...firstViewWords.zh }, en: { ...firstViewWords.en } };

/** @type {'zh' | 'en'} */
let lang = localStore.get('lang') ?? (navigator.languages.find((name) => /^(zh|en)\b/.test(name))?.startsWith('zh') ? 'zh' : 'en');

/** @returns {'zh' | 'en'} the current language */
export const currentLanguage = () => lang;

/** @param {'zh' | 'en'} to */
export function setLanguage(to) {
  lang = to;
  localStore.set('lang', to);
}

/** @param {Record<'zh' | 'en', Words>} words */
export function addWords(words) {
  for (const name of /** @type {const} */ (['zh', 'en'])) Object.assign(languages[name], words[name]);
}

/** The text of this name. @param {string} name @param {...any} about @returns {any} a text, or a list of texts */
export function t(name, ...about) {
  const text = /** @type {Record<string, any>} */ (languages[lang])[name];
  return typeof text === 'function' ? text(...about) : text;
}

/** The reason of a refusal: its title is Chinese and its detail English (RFC 9457). @param {any} error */
export function errorText({ name, message, status, problem }) {
  // The browser words a failed connection in its own language, and nginx has an HTML page for an instance that does not answer.
  if (['TypeError', 'TimeoutError'].includes(name) && !problem) return t('unreached');
  if ([502, 504].includes(status) && !problem?.title) return t('noInstance', status);
  if (lang === 'en' || !problem?.title) return message;
  return problem.field ? `${problem.title}（${t('reason', problem.detail) ?? problem.detail}）` : problem.title;
}

/** 5000 → 5,000 in both languages. @param {number} n */
export const formatNumber = (n) => Math.round(n).toLocaleString('en-US');

/** Fills in every element that names its text by `data-t`. */
export function translate() {
  document.documentElement.lang = lang === 'zh' ? 'zh-CN' : 'en';
  const elements = (/** @type {string} */ what) => /** @type {NodeListOf<HTMLInputElement>} */ (document.querySelectorAll(what));
  // Words that were not added yet stay empty.
  for (const e of elements('[data-t]')) e.textContent = t(e.dataset.t ?? '') ?? '';
  for (const e of elements('[data-t-label]')) e.setAttribute('aria-label', t(e.dataset.tLabel ?? '') ?? '');
  for (const e of elements('[data-t-title]')) e.title = t(e.dataset.tTitle ?? '') ?? '';
  for (const e of elements('[data-t-hint]')) e.placeholder = t(e.dataset.tHint ?? '') ?? '';
}
