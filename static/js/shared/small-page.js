/** What the pages beside the lessons share: the words, a title, and the two buttons that change the language. */

import { $ } from './dom.js';
import { addWords, currentLanguage, setLanguage, t, translate } from './language.js';
import { languages } from '../words/all.js';

const LANGUAGES = /** @type {const} */ (['zh', 'en']);

addWords(languages);

/** Draws the page, and again in each language that is chosen. @param {string} title the name of its words @param {() => void} draw */
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
