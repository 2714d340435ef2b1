/** Flaw and cure of a replay, one above the other at one scale of time: what the cure changes can be seen. */

import { $, put } from './dom.js';
import { spanOf } from './timeline/layout.js';
import { modelOf } from './timeline/model.js';
import { Picture } from './timeline/picture.js';

/** @typedef {import('./timeline/player.js').Recording} Recording */
/** What each came to, in words, and whether it sold more than is gone. @typedef {{text: string, red: boolean}} Said */

const NAMES = ['flaw', 'cure'];
const pictures = NAMES.map((name) => new Picture($(`both-${name}`)));
/** @type {Recording[]} */
let shown = [];
/** @type {import('./timeline/model.js').Model[]} */
let models = [];

/**
 * @param {Recording[]} recordings the flaw and the cure, both at their end
 * @param {number} cursor @param {boolean} moves it goes on by itself
 * @param {(events: import('./timeline/events.js').ReplayEvent[]) => number} room so many may be inside
 * @param {(recording: Recording, cured: boolean) => Said} say
 */
export function draw(recordings, cursor, moves, room, say) {
  models = recordings.map((recording, i) => (recording === shown[i] ? models[i] : modelOf(recording.events, 0, room(recording.events))));
  shown = recordings;
  const span = Math.max(...models.map((model) => spanOf(model.end, false)));
  NAMES.forEach((name, i) => {
    const { text, red } = say(recordings[i], i === 1);
    put($(`both-${name}-say`), text);
    $(`both-${name}-say`).classList.toggle('red', red);
    pictures[i].draw(models[i], cursor, { live: false, moves, scaled: !recordings[i].stepped, span });
  });
}

/** When something happens in either. */
export const moments = () => [...new Set(models.flatMap((model) => model.moments))].toSorted((a, b) => a - b);

/** @param {(at: number) => void} seek */
export function listen(seek) {
  NAMES.forEach((name, i) => {
    $(`both-${name}`).onpointerdown = (/** @type {PointerEvent} */ event) => {
      if (event.pointerType === 'mouse') seek(pictures[i].at(event.clientX));
    };
  });
}
