/** The lanes of a run: which requests waited, were inside, and met there; a sample of many. */

import { $, el, setText } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';
import { Picture } from '../timeline/picture.js';
import { modelOfStays } from '../timeline/run-model.js';

/** @typedef {import('../timeline/run-model.js').Stays} Stays */

/** A shared lock lets several in. */
const SHARED_LOCKS = ['select-share'];

const picture = new Picture($('run-lanes'));
let lastDrawn = '';
/** @type {import('../timeline/model.js').Model | null} */
let model = null;
/** Was the last picture a sample? A sample is folded at first. @type {boolean | null} */
let wasSample = null;

/** @param {import('./runs.js').Run | null} run @param {string} slug @param {boolean} stale it has other settings */
export function draw(run, slug, stale) {
  /** @type {Stays | undefined} */
  const stays = run?.row?.lanes ?? run?.snapshot.lanes;
  $('run-lanes-part').hidden = !stays;
  $('run-lanes-part').classList.toggle('stale', stale);
  if (!stays) return;
  const isTries = stays.drawn.some((stay) => stay.vain);
  const isExclusive = !isTries && !SHARED_LOCKS.includes(slug);
  const now = JSON.stringify([stays, isExclusive, t('language')]);
  if (now !== lastDrawn || !model) {
    lastDrawn = now;
    model = modelOfStays(stays, isExclusive);
    setText($('run-lanes-note'), noteText(stays, run?.row?.samples ?? 0, isTries ? 'lanesTries' : isExclusive ? 'lanesRead' : 'lanesShared'));
    $('run-told').replaceChildren(...stays.drawn.map((stay) => el('li', {}, t('stayTold', stay))));
  }
  const sample = stays.of > stays.drawn.length;
  setText($('run-lanes-of'), sample ? t('lanesOf', formatNumber(stays.of), stays.drawn.length) : '');
  if (sample !== wasSample) $('run-lanes-fold').open = !sample;
  wasSample = sample;
  paint();
}

function paint() {
  // A closed fold has no width to draw in.
  if (model && $('run-lanes-fold').open) picture.draw(model, model.end + 1, { live: false, moves: false, scaled: true });
}

$('run-lanes-fold').addEventListener('toggle', paint);

/** @param {Stays} stays @param {number} samples @param {'lanesTries' | 'lanesRead' | 'lanesShared'} read the text that explains it */
function noteText({ of, drawn }, samples, read) {
  const met = drawn.some((one, i) => drawn.slice(i + 1).some((next) => next.entered_us < one.left_us));
  return [
    t(read),
    of > drawn.length ? t(met ? 'lanesCrowd' : 'lanesMiddle', formatNumber(of), drawn.length) : '',
    samples > of ? t('lanesOut', formatNumber(samples - of)) : '',
  ].filter(Boolean).join(t('space'));
}
