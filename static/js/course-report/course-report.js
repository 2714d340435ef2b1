/**
 * Draws the races in the report of `oversell course`, a file without a service: the page's own timeline, from events in the file.
 *
 * The events are spread evenly, so that one can see what happens within a millisecond beside a lease of seconds.
 */

import { $ } from '../shared/dom.js';
import { addWords, setLanguage } from '../shared/language.js';
import { parseEvent } from '../timeline/events.js';
import { spanOf } from '../timeline/layout.js';
import { modelOf } from '../timeline/model.js';
import { Picture, sentences } from '../timeline/picture.js';
import { addEvent, emptyRecording } from '../timeline/player.js';
import { languages } from '../words/all.js';
import { chinese } from '../words/chinese-reasons.js';
import { setChineseReasons } from '../words/reasons.js';

addWords(languages);
setChineseReasons(chinese);

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** A flaw or its cure; both of a lesson have one scale. @typedef {{lesson: string, cured: boolean, inside: number, events: any[]}} Race */

/** @type {Race[]} */
const races = JSON.parse($('races').textContent);
const drawn = races.map(({ lesson, events }, i) => {
  const recording = { ...emptyRecording(), live: false, stepped: true };
  const ordered = events.map(parseEvent).sort((a, b) => a.t_us - b.t_us);
  ordered.forEach((event, n) => addEvent(recording, event, ordered[n - 1]?.t_us ?? 0));
  const model = modelOf(recording.events, 0, room(lesson, recording.events));
  return { lesson, told: ordered, model, picture: new Picture($(`race-${i}`)) };
});

/** How many may be inside: where nothing is sold, as many as the cure lets in. @param {string} lesson @param {ReplayEvent[]} events */
function room(lesson, events) {
  const sells = events.some((e) => e.actor === 'stock' || e.event === 'sold');
  return sells ? 1 : Math.max(1, races.find((race) => race.lesson === lesson && race.cured)?.inside ?? 1);
}

function draw() {
  setLanguage($('en').checked ? 'en' : 'zh');
  drawn.forEach(({ lesson, told: ordered, model, picture }, i) => {
    const span = Math.max(...drawn.filter((race) => race.lesson === lesson).map((race) => spanOf(race.model.end, false)));
    picture.draw(model, model.end + 1, { live: false, moves: false, scaled: false, span });
    $(`told-${i}`).replaceChildren(...sentences(ordered));
  });
}

for (const id of ['zh', 'en']) $(id).addEventListener('change', draw);
addEventListener('resize', draw);
draw();
