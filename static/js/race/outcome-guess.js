/** A guess at the end of a race before it is played, shown beside the real end. */

import { $, el, svg } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';

/** @typedef {import('./race.js').Race} Race */

const INITIAL_STOCK = 5000;

/** @type {number | null} */
let guessed = null;
let onGuess = () => {};

export const currentGuess = () => guessed;

/** For another race. */
export function clearGuess() {
  guessed = null;
}

/** The question, its choices and the right one; null if the race has no number to guess. @param {Race} race */
export function questionOf({ ends, cured_ends }) {
  const { sold = 0, gone = 0, inside = 0 } = ends;
  if (sold > 0 && (sold !== gone || gone !== (cured_ends.gone ?? 0))) {
    const least = Math.min(INITIAL_STOCK - sold, INITIAL_STOCK - gone);
    return { ask: t('guessLeft', sold), choices: [least, least + 1, least + 2], is: INITIAL_STOCK - gone };
  }
  if (inside > 0 && inside !== (cured_ends.inside ?? 0)) return { ask: t('guessInside'), choices: [1, 2, 3], is: inside };
  return null;
}

/**
 *
 * @param {Race} race @param {import('../timeline/events.js').Ending | null} ending of the flaw
 * @param {((n: number) => number) | null} [votes] how many of the class chose a number
 */
export function draw(race, ending, votes = null) {
  const question = questionOf(race);
  const answer = question && ending?.as_meant ? question.is : null;
  // Afterwards only the guess and the real number are shown.
  $('race-guess').hidden = !question || (answer != null && guessed == null && !votes);
  if (!question) return;
  const { ask, choices } = question;
  $('race-guess').setAttribute('aria-label', ask);
  $('race-guess').replaceChildren(answer == null ? el('span', {}, ask) : el('span', { class: 'dim' }, ask), ...choices.filter((n) => answer == null || n === guessed || votes).map((n) => {
    const button = el('button', { type: 'button', 'data-key': String(n), 'aria-pressed': String(n === guessed), class: answer != null && n !== answer ? 'wrong' : '' }, formatNumber(n), ...(votes ? [el('span', { class: 'votes' }, t('votes', votes(n))), share(votes(n), choices.reduce((sum, one) => sum + votes(one), 0), n === answer)] : []));
    button.addEventListener('click', () => {
      guessed = n;
      onGuess();
      $('race-guess').querySelector('[aria-pressed="true"]')?.focus();
    });
    return button;
  }), answer == null ? '' : guessed != null ? el('b', {}, t(answer === guessed ? 'guessRight' : 'guessWrong', formatNumber(answer))) : el('b', {}, t('guessWrong', formatNumber(answer))));
}

/** A bar as long as the share of the class; that of the answer is full ink. @param {number} n @param {number} all @param {boolean} isAnswer */
const share = (n, all, isAnswer) => svg('svg', { class: isAnswer ? 'share answer' : 'share', 'aria-hidden': 'true' }, svg('rect', { height: '100%', width: `${all ? (100 * n) / all : 0}%` }));

/** @param {() => void} then called on each guess */
export function listen(then) {
  onGuess = then;
}
