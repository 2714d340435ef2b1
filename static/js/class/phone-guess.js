/** On a phone: how the race that the desk shows will end is guessed, by the name of whoever holds it. */

import * as api from '../shared/api.js';
import { $, el, put } from '../shared/dom.js';
import { question } from '../race/outcome-guess.js';
import { number, reason, t } from '../shared/language.js';

/** The lesson on show, and its race. @type {{id: string, race: import('../race/race.js').Race | null}} */
let own = { id: '', race: null };
/** @type {number | null} */
let guessed = null;

/** @param {string} id @param {() => string} who nothing: no name is typed yet @param {(text: string) => void} say */
export async function draw(id, who, say) {
  if (own.id !== id) {
    own = { id, race: null };
    guessed = null;
    const race = await api.raceOf(id).catch(() => null);
    if (own.id !== id) return;
    own = { id, race };
  }
  const asked = own.race && question(own.race);
  put($('guess-ask'), asked ? asked.ask : t('classNoGuess'));
  $('guess-choices').replaceChildren(...(asked?.choices ?? []).map((n) => {
    const button = el('button', { class: 'big', 'data-guess': String(n), 'aria-pressed': String(n === guessed) }, number(n));
    button.addEventListener('click', async () => {
      if (!who()) {
        $('who').focus();
        say(t('classNameWanted'));
        return;
      }
      try {
        await api.guess({ lesson: id, who: who(), guess: n });
        guessed = n;
        say(t('classGuessed'));
      } catch (error) {
        say(reason(/** @type {any} */ (error)));
      }
      draw(id, who, say);
    });
    return button;
  }));
}
