/** The lanes of a run: who of its requests waited, who was inside, and who met whom there; of many requests, a sample. */

import { $, el, put } from '../shared/dom.js';
import { number, t } from '../shared/language.js';
import { Picture } from '../timeline/picture.js';
import { modelOfStays } from '../timeline/run-model.js';

/** @typedef {import('../timeline/run-model.js').Stays} Stays */

/** Who reads under a shared lock may be inside with others. */
const SHARED = ['select-share'];

const picture = new Picture($('run-lanes'));
let shown = '';
/** @type {import('../timeline/model.js').Model | null} */
let model = null;
/** Is what was drawn last a sample? Few requests are shown at once, a sample where it is asked for. @type {boolean | null} */
let sampled = null;

/** @param {import('./runs.js').Run | null} run @param {string} slug @param {boolean} stale it is of other settings */
export function draw(run, slug, stale) {
  /** @type {Stays | undefined} */
  const stays = run?.row?.lanes ?? run?.snapshot.lanes;
  $('run-lanes-part').hidden = !stays;
  $('run-lanes-part').classList.toggle('stale', stale);
  if (!stays) return;
  const isTries = stays.drawn.some((stay) => stay.vain);
  const alone = !isTries && !SHARED.includes(slug);
  const now = JSON.stringify([stays, alone, t('language')]);
  if (now !== shown || !model) {
    shown = now;
    model = modelOfStays(stays, alone);
    put($('run-lanes-note'), note(stays, run?.row?.samples ?? 0, isTries ? 'lanesTries' : alone ? 'lanesRead' : 'lanesShared'));
    $('run-told').replaceChildren(...stays.drawn.map((stay) => el('li', {}, t('stayTold', stay))));
  }
  const sample = stays.of > stays.drawn.length;
  put($('run-lanes-of'), sample ? t('lanesOf', number(stays.of), stays.drawn.length) : '');
  if (sample !== sampled) $('run-lanes-fold').open = !sample;
  sampled = sample;
  paint();
}

function paint() {
  // Folded it has no width that it could be drawn to.
  if (model && $('run-lanes-fold').open) picture.draw(model, model.end + 1, { live: false, moves: false, scaled: true });
}

$('run-lanes-fold').addEventListener('toggle', paint);

/** @param {Stays} stays @param {number} samples @param {'lanesTries' | 'lanesRead' | 'lanesShared'} read how it is to be read */
function note({ of, drawn }, samples, read) {
  const met = drawn.some((one, i) => drawn.slice(i + 1).some((next) => next.entered_us < one.left_us));
  return [
    t(read),
    of > drawn.length ? t(met ? 'lanesCrowd' : 'lanesMiddle', number(of), drawn.length) : '',
    samples > of ? t('lanesOut', number(samples - of)) : '',
  ].filter(Boolean).join(t('space'));
}
