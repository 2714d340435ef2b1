/**
 * The first view: the lesson, its claim, and the guess and button of its race, once a few small modules have come. Then page.js takes over;
 * a press in between is kept until the race can be played.
 */

import * as requests from './first-requests.js';
import { $, setText } from '../shared/dom.js';
import * as outcomeGuess from '../race/outcome-guess.js';
import * as headline from '../lesson/headline.js';
import * as lang from '../shared/language.js';

/** The last button that was pressed before its function came. @type {HTMLElement | null} */
let pressed = null;
document.addEventListener('click', ({ target }) => {
  const button = /** @type {Element} */ (target).closest('button');
  // A guess has its function from the first.
  if (!button || button.onclick || button.closest('#race-guess')) return;
  pressed = button;
  if (button.id === 'race-run' && button.ariaDisabled === 'false') setText($('race-idle'), lang.t('raceComing'));
});

/** @param {import('../race/race.js').Race} race @param {boolean} enabled */
function showRaceButton(race, enabled) {
  $('race').hidden = false;
  const draw = () => outcomeGuess.draw(race, false, false);
  outcomeGuess.listen(draw);
  draw();
  setText($('race-run'), lang.t('race'));
  if (race.cannot) setText($('race-idle'), lang.t('replayCannot', race.cannot[lang.currentLanguage()]));
  $('race-run').setAttribute('aria-disabled', String(!enabled || race.cannot != null));
}

lang.translate();
setText($('fold'), lang.t('lessons'));
const [lesson, races] = await Promise.all([requests.lesson, requests.races]);
if (lesson) {
  $('opening').hidden = lesson.id !== '1.1';
  // A strategy's title may be the claim; it comes with the rest.
  headline.draw(lesson, lesson.claim?.[lang.currentLanguage()] ?? '');
  const [race] = lesson.deadlocks.length ? [] : races?.replays ?? [];
  if (race) showRaceButton(race, races.enabled);
}
const { begin } = await import('./page.js');
begin(() => pressed);
