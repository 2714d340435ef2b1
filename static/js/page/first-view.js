/**
 * The first view: the lesson of the address, what it claims, the guess and the button of its race, as soon as a few small modules and
 * this one lesson have come. Then comes the rest (page.js), and draws over it; a press in between is kept until it can play.
 */

import * as requests from './first-requests.js';
import { $, setText } from '../shared/dom.js';
import * as outcomeGuess from '../race/outcome-guess.js';
import * as headline from '../lesson/headline.js';
import * as lang from '../shared/language.js';

let isPressed = false;

/** @param {import('../race/race.js').Race} race @param {boolean} enabled */
function showRaceButton(race, enabled) {
  $('race').hidden = false;
  const draw = () => outcomeGuess.draw(race, null);
  outcomeGuess.listen(draw);
  draw();
  setText($('race-run'), lang.t('race'));
  $('race-run').setAttribute('aria-disabled', String(!enabled || race.cannot != null));
  $('race-run').onclick = () => {
    if (!enabled || race.cannot) return;
    isPressed = true;
    setText($('race-idle'), lang.t('raceComing'));
  };
}

lang.translate();
setText($('fold'), lang.t('lessons'));
const [lesson, races] = await Promise.all([requests.lesson, requests.races]);
if (lesson) {
  // One without a claim says what its strategy says, which comes with the rest.
  headline.draw(lesson, lesson.claim?.[lang.currentLanguage()] ?? '');
  const [race] = lesson.deadlocks.length ? [] : races?.replays ?? [];
  if (race) showRaceButton(race, races.enabled);
}
// All at once: one that imports the next would be a round trip each.
for (const link of /** @type {NodeListOf<HTMLLinkElement>} */ (document.querySelectorAll('link[rel="later"]'))) link.rel = 'modulepreload';
const { begin } = await import('./page.js');
begin(() => isPressed);
