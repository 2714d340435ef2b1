/** On a phone: a guess how the race on the desk's screen will end, under the name that was typed. */

import * as api from '../shared/api.js';
import { $, el, setText } from '../shared/dom.js';
import { answerOf, questionOf } from '../race/outcome-guess.js';
import { errorText, t } from '../shared/language.js';

/** @type {{id: string, race: import('../race/race.js').Race | null}} */
let shown = { id: '', race: null };
/** @type {number | null} */
let guessed = null;
/** The race has ended on the desk's screen. */
let isEnded = false;
/** When the class was last asked or told, by the instances' clock. */
let heardAt = 0;

/**
 * The class is asked about this lesson, perhaps again, or its race has ended. A connection begins with all earlier events. Whether what was
 * said to a guess is over: asked anew, who has not guessed is told nothing new.
 * @param {import('./visits.js').ClassEvent} event
 */
export function hear({ event, key, t_us }) {
  if (key !== shown.id || t_us <= heardAt) return false;
  heardAt = t_us;
  isEnded = event === 'ended';
  const isOver = isEnded || guessed != null;
  if (!isEnded) guessed = null;
  return isOver;
}

/** @param {string} id @param {() => string} who empty until a name is typed @param {(text: string) => void} say */
export async function draw(id, who, say) {
  if (shown.id !== id) {
    shown = { id, race: null };
    [guessed, isEnded] = [null, false];
    const race = await api.raceOfLesson(id).catch(() => null);
    if (shown.id !== id) return;
    shown = { id, race };
  }
  const question = shown.race && questionOf(shown.race);
  const answer = question && isEnded ? answerOf(question) : '';
  setText($('guess-ask'), question ? `${question.ask} ${answer && t(guessed === question.is ? 'guessRight' : 'guessAnswer', answer)}` : t('classNoGuess'));
  $('guess-choices').replaceChildren(...(isEnded ? [] : question?.choices ?? []).map(({ key, text }) => {
    const button = el('button', { class: 'big', 'data-guess': String(key), 'aria-pressed': String(key === guessed) }, text);
    button.addEventListener('click', async () => {
      if (!who()) {
        $('who').focus();
        say(t('classNameWanted'));
        return;
      }
      try {
        await api.sendGuess({ lesson: id, who: who(), guess: key });
        guessed = key;
        say(t('classGuessed'));
      } catch (error) {
        say(errorText(/** @type {any} */ (error)));
      }
      draw(id, who, say);
    });
    return button;
  }));
}
