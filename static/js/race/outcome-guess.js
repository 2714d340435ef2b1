/** A guess before a race is played, shown beside the answer: the lesson's question, if it has one. */

import { $, el, svg } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import { currentLanguage, t } from '../shared/language.js';
import { QUESTIONS } from './questions.js';

/** @typedef {import('./race.js').Race} Race */

/** @type {number | null} */
let guessed = null;
let onGuess = () => {};

export const currentGuess = () => guessed;

/** For another race. */
export function clearGuess() {
  guessed = null;
}

/** A choice: what is sent as the guess, and its words. @typedef {{key: number, text: string}} Choice */

/** The question, its choices and the key of the right one; null if the lesson asks nothing. @param {Race} race @returns {{ask: string, choices: Choice[], is: number} | null} */
export function questionOf({ lesson }) {
  const own = QUESTIONS[lesson];
  if (!own) return null;
  const [ask, ...answers] = own[currentLanguage()];
  return { ask, choices: answers.map((text, key) => ({ key, text })), is: own.is };
}

/**
 * From the race's start on, only the guess and then the answer are shown: the pictures need the height.
 * @param {Race} race @param {boolean} isPlaying @param {boolean} isAnswered both halves have ended as they were meant to
 * @param {((key: number) => number) | null} [votes] how many of the class chose it
 */
export function draw(race, isPlaying, isAnswered, votes = null) {
  const question = questionOf(race);
  const isClosed = isPlaying || isAnswered;
  $('race-guess').hidden = !question || (isClosed && guessed == null && !votes);
  if (!question) return;
  const { ask, choices, is } = question;
  $('race-guess').setAttribute('aria-label', ask);
  $('race-guess').replaceChildren(el('span', { class: isAnswered && 'dim' }, ask), ...choices.filter(({ key }) => !isClosed || key === guessed || votes).map(({ key, text }) => {
    const button = el('button', { type: 'button', 'data-key': String(key), 'aria-pressed': String(key === guessed), class: isAnswered && key !== is && 'wrong' }, ...(votes && isAnswered && key === is ? [icons('tick'), ' '] : []), text, ...(votes ? [' ', el('span', { class: 'votes' }, t('votes', votes(key))), share(votes(key), choices.reduce((sum, one) => sum + votes(one.key), 0), isAnswered && key === is)] : []));
    button.addEventListener('click', () => {
      guessed = key;
      onGuess();
      $('race-guess').querySelector('[aria-pressed="true"]')?.focus();
    });
    return button;
  }), isAnswered ? el('b', {}, t(guessed === is ? 'guessRight' : 'guessAnswer', answerOf(question))) : '');
}

/** The words of the right answer. @param {{choices: Choice[], is: number}} question */
export const answerOf = ({ choices, is }) => choices.find(({ key }) => key === is)?.text ?? '';

/** A bar as long as the share of the class; that of the answer is full ink. @param {number} n @param {number} all @param {boolean} isAnswer */
const share = (n, all, isAnswer) => svg('svg', { class: isAnswer ? 'share answer' : 'share', 'aria-hidden': 'true' }, svg('rect', { height: '100%', width: `${all ? (100 * n) / all : 0}%` }));

/** @param {() => void} then called on each guess */
export function listen(then) {
  onGuess = then;
}
