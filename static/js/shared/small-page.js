/** What the small pages share: the head with the page's name, languages, projector and theme; the words, and a title. */

import { $, el } from './dom.js';
import { addWords, currentLanguage, setLanguage, t, translate } from './language.js';
import * as projector from '../page/projector.js';
import * as theme from './theme.js';
import { languages } from '../words/all.js';

const LANGUAGES = /** @type {const} */ ({ zh: ['zh-CN', '中文'], en: ['en', 'EN'] });

addWords(languages);

/** Puts the way home and the language buttons around what the page's head has of its own. @param {(to: 'zh' | 'en') => void} choose */
function fillHead(choose) {
  const head = /** @type {Element} */ (document.querySelector('header.top'));
  head.prepend(el('a', { class: 'name', href: './' }, 'oversell'));
  const buttons = /** @type {const} */ (['zh', 'en']).map((id) => {
    const [lang, name] = LANGUAGES[id];
    const button = el('button', { id, lang }, name);
    button.addEventListener('click', () => choose(id));
    return button;
  });
  head.append(el('div', { class: 'prefs apart' }, ...head.querySelectorAll('button.tool'), el('span', { class: 'choice', role: 'group', 'data-t-label': 'language' }, ...buttons),
    el('button', { id: 'projector', 'data-t': 'projector' }), el('button', { id: 'theme', class: 'icon', 'data-t-label': 'themeNext' }, '◐')));
  $('projector').onclick = projector.press;
  $('theme').onclick = theme.next;
  projector.show();
}

/** Draws the page, and again after a change of language. @param {() => void} draw */
export function startPage(draw) {
  const show = () => {
    translate();
    document.title = `oversell · ${t(document.querySelector('h1')?.dataset.t ?? '')}`;
    for (const id of Object.keys(LANGUAGES)) $(id).setAttribute('aria-pressed', String(currentLanguage() === id));
    draw();
  };
  fillHead((to) => {
    setLanguage(to);
    show();
  });
  show();
}
