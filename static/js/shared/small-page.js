/** What the small pages share: the words, a title, and the two language buttons. */

import { $ } from './dom.js';
import { addWords, currentLanguage, setLanguage, t, translate } from './language.js';
import { languages } from '../words/all.js';

const LANGUAGES = /** @type {const} */ (['zh', 'en']);

addWords(languages);

/** Draws the page, and again after a change of language. @param {string} title the name of its text @param {() => void} draw */
export function startPage(title, draw) {
  const show = () => {
    translate();
    document.title = `oversell · ${t(title)}`;
    for (const each of LANGUAGES) $(each).setAttribute('aria-pressed', String(currentLanguage() === each));
    draw();
  };
  for (const each of LANGUAGES) {
    $(each).addEventListener('click', () => {
      setLanguage(each);
      show();
    });
  }
  show();
}
