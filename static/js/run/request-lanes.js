/** The lanes of a run: who of its requests waited, who was inside, and who met whom there; of many requests, a sample. */

import { $, el, setText } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';
import { Picture } from '../timeline/picture.js';
import { modelOfStays } from '../timeline/run-model.js';

/** @typedef {import('../timeline/run-model.js').Stays} Stays */

/** Who reads under a shared lock may be inside with others. */
const SHARED_LOCKS = ['select-share'];

const picture = new Picture($('run-lanes'));
let lastDrawn = '';
/** @type {import('../timeline/model.js').Model | null} */
let model = null;
/** Is what was drawn last a sample? Few requests are shown at once, a sample where it is asked for. @type {boolean | null} */
let wasSample = null;

/** @param {import('./runs.js').Run | null} run @param {string} slug @param {boolean} stale it is of other settings */
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
  // Folded it has no width that it could be drawn to.
  if (model && $('run-lanes-fold').open) picture.draw(model, model.end + 1, { live: false, moves: false, scaled: true });
}

$('run-lanes-fold').addEventListener('toggle', paint);

/** @param {Stays} stays @param {number} samples @param {'lanesTries' | 'lanesRead' | 'lanesShared'} read how it is to be read */
function noteText({ of, drawn }, samples, read) {
  const met = drawn.some((one, i) => drawn.slice(i + 1).some((next) => next.entered_us < one.left_us));
  return [
    t(read),
    of > drawn.length ? t(met ? 'lanesCrowd' : 'lanesMiddle', formatNumber(of), drawn.length) : '',
    samples > of ? t('lanesOut', formatNumber(samples - of)) : '',
  ].filter(Boolean).join(t('space'));
}
