/**
 * The race of a lesson, on the lesson itself: one press plays it on the real servers, as the flaw and on its cure, one above the other
 * at one scale; then both move together, caption by caption.
 *
 * Both are played at once; where something is stopped or broken, one after the other. What was played stays as long as the tab, reloads
 * included.
 * Read on in: timeline/model.js; sent-commands.js, what was sent; scheduler.js, where whoever watches decides the order.
 */

import * as admin from '../shared/admin-token.js';
import { announce } from '../shared/screen-reader.js';
import * as api from '../shared/api.js';
import { $, el, put } from '../shared/dom.js';
import * as guess from './outcome-guess.js';
import { tab } from '../shared/storage.js';
import { current, reason, t } from '../shared/language.js';
import * as lines from './sent-commands.js';
import * as order from './scheduler.js';
import { follow } from './replay-stream.js';
import * as spine from '../lesson/ninety-minutes.js';
import * as timing from './own-times.js';
import { spanOf } from '../timeline/layout.js';
import { modelOf } from '../timeline/model.js';
import { Picture, sentences } from '../timeline/picture.js';
import { Player, add, empty } from '../timeline/player.js';
import * as woken from './woken-waiters.js';
import * as votes from './class-guesses.js';

/** @typedef {{zh: string, en: string}} Title */
/** What goes wrong without the cure. @typedef {'oversold' | 'stuck' | 'overtaken' | 'deadlock'} Goal */
/** @typedef {{goal: Goal, actors: string[], clock: boolean, dies: string | null, fails_over: boolean, stops: string[]}} Scheduled */
/** How it must end, and what was seen then besides. @typedef {import('../timeline/events.js').Ending & {said: Title}} Meant */
/**
 * A race of `GET /replays`. `alone`: it is not played beside its cure; `scheduled`: who can be let go on, where whoever watches
 * decides; `timed`: it can be played at times of one's own; `lasts_ms`: about how long each takes.
 * @typedef {{lesson: string, title: Title, breaks: Title, cure: Title, runs: string, cured_runs: string, ends: Meant, cured_ends: Meant,
 *   cannot: Title | null, alone: boolean, actors: string[], cured_actors: string[], lasts_ms: number, cured_lasts_ms: number,
 *   scheduled: Scheduled | null, cured_scheduled: Scheduled | null, timed: boolean}} Race
 */
/** What the service says of one. @typedef {{id: string, lesson: string, cured: boolean, pace: string, state: string, events: string}} Playing */
/** @typedef {import('../timeline/player.js').Recording} Recording */
/** @typedef {import('../timeline/model.js').Model} Model */
/** The flaw, or the cure. @typedef {{name: 'flaw' | 'cure', cured: boolean, picture: Picture, model: Model, modelled: string}} Half */

const SLOWER = [1, 2, 10];
const DOUBLE_MS = 500;
/** The two pictures are never smaller than so; for the last row, whose letters are larger. */
const [LEAST, LEAST_PROJECTED] = [0.65, 0.55];
/** What stands between and below them: two captions, and why, in one line; a line of that; in sixteenths of the root's font size. */
const [BETWEEN, WHY] = [134, 27];
/** A picture has room for a quarter more than a race should take, in microseconds for each millisecond of that; what takes longer has so much more
 * room at a time, so that the axis seldom moves. */
const [USUAL, MORE] = [1250, 0.25];
/** About how high each part of a picture is where it is not made smaller, in pixels. */
const [LANE, CARRY, LOCK, STEPS, AXIS] = [52, 20, 52, 32, 22];

/** @type {Race[]} */
let all = [];
/** What keeps all races from being played here, if anything. */
let off = '';
/** The race of the lesson on show. @type {Race | null} */
let race = null;
/** What goes on, by lesson and cured; those of one lesson. @type {Map<string, {id: string, lesson: string, cured: boolean, close: () => void}>} */
const live = new Map();
/** By lesson and cured. @type {Map<string, Recording>} */
const recordings = new Map();
/** The cure is played once the flaw is over. */
let then = false;
let startedAt = 0;
let wasSeen = () => {};
let drawn = '';
/** Where the pictures begin, from the top of the page; while they play, where they began: what comes above them then (a server that has stopped
 * answering) moves them, and does not make them smaller. 0: not known. */
let below = 0;

const player = new Player(draw);
/** @type {Half[]} */
const halves = [false, true].map((cured) => {
  const name = cured ? 'cure' : 'flaw';
  return { name, cured, picture: new Picture($(`race-${name}`)), model: modelOf([]), modelled: '' };
});
const key = (/** @type {string} */ lesson, /** @type {boolean} */ cured) => `${lesson} ${cured}`;
const recorded = (/** @type {boolean} */ cured) => (race ? recordings.get(key(race.lesson, cured)) : undefined);
const playsThis = () => [...live.values()].some((one) => one.lesson === race?.lesson);

/** Asks which races can be played here. */
export async function load() {
  try {
    const list = await api.replays();
    off = list.enabled ? '' : 'replayOff';
    all = list.replays;
    list.playing.forEach(join);
  } catch {
    off = 'replayOff';
  }
}

/** Joins those that are under way, whoever has started them: after a reload, and beside the window that plays them. */
export async function look() {
  if (!all.length) await load();
  if (live.size || off || !isShown()) return;
  const { playing } = await api.replays();
  playing.forEach(join);
}

/** Joins this one, unless it is played for an order of one's own: there scheduler.js shows it, or learns from it. @param {Playing} playing */
function join(playing) {
  if (live.has(key(playing.lesson, playing.cured)) || ['fast', 'scheduler'].includes(playing.pace)) return;
  const recording = begun(playing.lesson, playing.cured);
  listenTo(playing, recording);
  if (race?.lesson === playing.lesson) follows();
}

/** The race of this lesson; null where it has none. @param {string} id */
export const of = (id) => all.find((r) => r.lesson === id) ?? null;

/**
 * Shows the race of this lesson, and hides all of it where there is none.
 * @param {string} id @param {boolean} ordered only its order can be decided: two transactions are shown statement by statement elsewhere
 * @returns {boolean} whether there is one to play
 */
export function show(id, ordered) {
  const found = of(id);
  $('race').hidden = !found;
  $('race').classList.toggle('ordered', ordered);
  if (found !== race) {
    [drawn, below] = ['', 0];
    $('race-admin').replaceChildren();
    for (const half of halves) half.modelled = '';
    if (race) guess.forget();
    race = found;
    for (const cured of race ? [false, true] : []) {
      const kept = recorded(cured) ? null : tab.get(`race ${key(id, cured)}`);
      if (kept) recordings.set(key(id, cured), kept);
    }
    order.leave();
    timing.leave();
    follows();
    if (votes.isOpen() && race && guess.question(race)) askClass();
  }
  draw();
  return isShown();
}

/** Races are played here, and lines typed. */
export const canPlay = () => !off;

export const isShown = () => race != null && !$('race').hidden && !$('race').classList.contains('ordered');

/** Along with what goes on, or at the end of what was played. */
function follows() {
  player.load(shared());
}

/** Both as one, for the player: what is over stands beside what still goes on. @returns {Recording} */
function shared() {
  const both = halves.flatMap(({ cured }) => recorded(cured) ?? []);
  const going = both.filter((one) => one.live);
  const shown = going.length ? going : both;
  return { ...empty(), events: shown.flatMap((one) => one.events), live: going.length > 0, stepped: false };
}

// ---- playing ---------------------------------------------------------------------------------------------------------

/** The button. A double click is no wish to end it. */
function pressed() {
  if (!live.size) run();
  else if (playsThis() && performance.now() - startedAt > DOUBLE_MS) cancel();
}

/** Plays the flaw and the cure. @param {timing.Timing} [times] times of one's own */
export async function run(times) {
  if (live.size || !race || off || race.cannot) return;
  order.leave();
  if (!times) timing.leave();
  startedAt = performance.now();
  for (const cured of [false, true]) recordings.delete(key(race.lesson, cured));
  then = race.alone;
  await Promise.all((race.alone ? [false] : [false, true]).map((cured) => start(/** @type {Race} */ (race).lesson, cured, times)));
}

/** @param {string} lesson @param {boolean} cured @param {timing.Timing} [times] */
async function start(lesson, cured, times) {
  const recording = begun(lesson, cured);
  recording.timed = times != null;
  const at = key(lesson, cured);
  live.set(at, { id: '', lesson, cured, close: () => {} });
  follows();
  try {
    listenTo(await api.startReplay(lesson, cured, times ? 'timed' : 'slow', times), recording);
    draw();
  } catch (error) {
    then = false;
    const isRefused = admin.isWanted(error, $('race-admin'), run);
    end(at, recording, null, isRefused ? t('tokenWanted') : reason(/** @type {any} */ (error)));
    // Another one plays: that is what there is to see.
    if (/** @type {any} */ (error).status === 409) await look().catch(() => {});
  }
}

/** @param {string} lesson @param {boolean} cured */
function begun(lesson, cured) {
  const recording = empty();
  recordings.set(key(lesson, cured), recording);
  return recording;
}

/** @param {Playing} playing @param {Recording} recording */
function listenTo({ id, lesson, cured, pace, events }, recording) {
  const at = key(lesson, cured);
  recording.stepped = pace === 'step';
  recording.timed = pace === 'timed';
  let before = 0;
  const close = follow(events ?? `replays/${id}/events`, {
    begin: () => {
      recording.events = [];
      before = 0;
    },
    event: (event) => {
      // Nobody holds a barrier: its nodes are those who wait, and their lanes tell of them.
      if (event.actor === 'lock' && /barrier/.test(event.key ?? '')) return;
      told(add(recording, event, before));
      before = event.t_us;
    },
    over: (name, ending) => end(at, recording, name === 'done' ? ending : null, ending.detail ?? t('vanished')),
  });
  live.set(at, { id, lesson, cured, close });
}

/** @param {string} at @param {Recording} recording @param {import('../timeline/events.js').Ending | null} ending @param {string} why */
function end(at, recording, ending, why) {
  const { lesson = '', cured = false } = live.get(at) ?? {};
  // At times of one's own nothing is meant.
  if (ending && recording.timed) delete ending.as_meant;
  Object.assign(recording, { live: false, ending, failed: ending ? '' : why });
  if (ending) tab.set(`race ${at}`, recording);
  live.delete(at);
  if (then && !cured && ending) {
    start(lesson, true);
    return;
  }
  then = false;
  if (ending && !spine.isSeen(lesson)) {
    spine.saw(lesson);
    if (spine.isSeen(lesson)) wasSeen();
  }
  if (race?.lesson === lesson) {
    if (live.size) told();
    else follows();
    announce($(`race-${cured ? 'cure' : 'flaw'}-end`).textContent, true);
  } else draw();
}

/** @param {import('../timeline/events.js').ReplayEvent} [event] */
function told(event) {
  player.recording = shared();
  player.told(event);
}

export function cancel() {
  then = false;
  for (const { id } of live.values()) if (id) api.cancelReplay(id).catch((error) => admin.isWanted(error, $('race-admin'), cancel));
}

/** The next caption of either, or, finer, the next moment. @param {1 | -1} by @param {boolean} fine */
function step(by, fine) {
  const at = halves.flatMap(({ model }) => (fine ? model.moments : [...model.captions.map((c) => c.at), model.end]));
  player.step(by, [...new Set(at)].toSorted((a, b) => a - b));
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** Draws what changes with each frame; the rest only where it did change. */
function draw() {
  if (!race || $('race').hidden) return;
  const models = halves.map((half) => modelled(half, /** @type {Race} */ (race)));
  const { lasts_ms: flaw, cured_lasts_ms: cure } = race;
  const timed = recorded(false)?.timed;
  const span = spanFor(models, timed ? timing.SPAN_US : USUAL * Math.max(flaw, cure));
  frame(race);
  const scale = scaleOf(models);
  const going = playsThis();
  $('times').style.setProperty('--scale', String(scale));
  for (const half of halves) {
    const recording = recorded(half.cured);
    $(`race-${half.name}-part`).hidden = !recording;
    lines.draw($(`race-${half.name}-lines`), recording?.events ?? [], player.cursor);
    if (!recording) continue;
    half.picture.draw(half.model, player.cursor, { live: recording.live, moves: player.playing || player.follows, scaled: !recording.stepped, span, scale });
    // What comes below does not move while lanes are added.
    $(`race-${half.name}`).style.minHeight = going ? `${Math.max(half.picture.host.offsetHeight, heightOf(half.model) * scale * root())}px` : '';
    const caption = half.model.captions.findLast((c) => c.at <= player.cursor)?.[current()] ?? '';
    put($(`race-${half.name}-say`), caption);
    const over = recording.ending && player.cursor >= half.model.end;
    $(`race-${half.name}-end`).classList.toggle('later', !over && !recording.failed);
  }
  put($('race-at'), t('at', (player.cursor / 1e6).toFixed(2)));
  put($('race-play'), player.playing ? '❚❚' : '▶');
  $('race-play').setAttribute('aria-label', t(player.playing ? 'pause' : 'play'));
  const done = halves.every(({ cured, model }) => recorded(cured)?.ending && player.cursor >= model.end);
  $('race-why').classList.toggle('later', !done);
}

/** @param {Half} half @param {Race} its */
function modelled(half, its) {
  const recording = recorded(half.cured);
  const events = recording?.events ?? [];
  const now = JSON.stringify([its.lesson, events.length, recording?.live && player.end]);
  if (now !== half.modelled) {
    half.modelled = now;
    const actors = recording?.timed ? ['A', 'B'] : recording ? (half.cured ? its.cured_actors : its.actors) : [];
    half.model = modelOf(events, recording?.live ? player.end : 0, roomIn(events, its), { live: recording?.live, actors });
  }
  return half.model;
}

/** How many may be inside: of what is not sold, as many as the cure lets in. @param {import('../timeline/events.js').ReplayEvent[]} events @param {Race} its */
function roomIn(events, its) {
  const sells = events.some((e) => e.actor === 'stock' || e.event === 'sold');
  return sells ? 1 : Math.max(1, its.cured_ends.inside ?? 1);
}

/** About how high a picture will be, whatever of it is there yet: a lock, a shelf and a stale value are to be expected. @param {Model} model */
const heightOf = ({ lanes, locks, row }) => AXIS + lanes.length * LANE + CARRY + LOCK * Math.max(1, (locks.length + 1) / 2) + STEPS * (row.length ? 2 : 1);

/** A sixteenth of the root's font size, in pixels. */
const root = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

/** Both pictures are to be seen at once, as far as their words can still be read. @param {Model[]} models */
function scaleOf(models) {
  const over = halves.every(({ cured }) => recorded(cured)?.ending);
  const high = halves.reduce((sum, { picture }, i) => sum + (over && picture.natural ? picture.natural : heightOf(models[i])), 0);
  const least = document.documentElement.hasAttribute('data-projector') ? LEAST_PROJECTED : LEAST;
  const between = BETWEEN + (over ? Math.max(0, $('race-why').offsetHeight / root() - WHY) : 0);
  return Math.max(least, Math.min(1, ((innerHeight - below) / root() - between) / high));
}

/** How much time both show: what they usually take, or as much more as they take. @param {Model[]} models @param {number} usual */
function spanFor(models, usual) {
  const end = Math.max(...models.map((model) => spanOf(model.end, false)));
  return usual * (1 + MORE * Math.max(0, Math.ceil((end / usual - 1) / MORE)));
}

/** Title, buttons and verdicts. @param {Race} its */
function frame(its) {
  const both = halves.map(({ cured }) => recorded(cured));
  const now = JSON.stringify([current(), its.lesson, off, order.isOpen(), timing.isOpen(), guess.made(), votes.isAsked(its.lesson), [...live.values()].map(({ id, lesson }) => [id, lesson]), both.map((one) => one && [one.live, one.ending, one.failed, one.events.length]), player.slower]);
  if (now === drawn) return;
  drawn = now;
  const lang = current();
  const going = playsThis();
  put($('race-run'), t(going ? 'cancel' : both.some(Boolean) ? 'raceAgain' : 'race'));
  $('race-run').classList.toggle('cancel', going);
  const cannot = Boolean(off) || its.cannot != null || (live.size > 0 && !going);
  $('race-run').setAttribute('aria-disabled', String(cannot));
  $('race-idle').replaceChildren(...idle(its, both));
  $('race-player').hidden = !both.some(Boolean);
  $('race-slower').replaceChildren(...SLOWER.map((n) => el('option', { value: String(n), selected: n === player.slower }, t('slower', n))));
  halves.forEach(({ name, cured }, i) => {
    put($(`race-${name}-what`), t(cured ? 'cured' : 'flaw'));
    $(`race-${name}-what`).title = (cured ? its.cure : its.breaks)[lang];
    const recording = both[i];
    put($(`race-${name}-end`), recording?.failed ? t('failed', recording.failed) : recording?.ending ? ended(recording.ending, its, cured) : '');
    $(`race-${name}-end`).classList.toggle('red', oversold(recording?.ending, its));
  });
  $('race-why').replaceChildren(...why(its, both[0]));
  guess.draw(its, both[0]?.ending ?? null, votes.isAsked(its.lesson) ? votes.count : null);
  $('race-class').hidden = Boolean(off) || !guess.question(its) || both.some(Boolean);
  put($('race-class'), votes.isAsked(its.lesson) ? t('votesAsked', votes.all()) : t('votesAsk'));
  const events = both.flatMap((one) => (one && !one.live ? [one.events] : []));
  $('race-told-part').hidden = !events.length;
  $('race-told').replaceChildren(...events.flatMap((list, i) => [el('h3', {}, t(i ? 'cured' : 'flaw')), el('ol', { class: 'told' }, ...sentences(list.filter((e) => e.event !== 'stands')))]));
  $('race').classList.toggle('playing', live.size > 0);
  order.frame(its, live.size > 0 || cannot);
  timing.frame(its, live.size > 0, Boolean(off) || its.cannot != null);
  if (!going || !below) below = $('race-run').parentElement.getBoundingClientRect().bottom + scrollY;
  woken.draw(both.map((one) => one?.events ?? []));
}

/** @param {Race} its @param {(Recording | undefined)[]} both */
function idle(its, both) {
  if (off) return [t(off)];
  if (its.cannot) return [t('replayCannot', its.cannot[current()])];
  const [other] = live.values();
  if (other && !playsThis()) return [t('replayOther', other.lesson, t(other.cured ? 'cured' : 'flaw')), ' ', el('a', { href: `#/${other.lesson}` }, t('watch'))];
  const lasts = its.alone ? its.lasts_ms + its.cured_lasts_ms : Math.max(its.lasts_ms, its.cured_lasts_ms);
  return both.some(Boolean) || !lasts ? [] : [t('raceIdle', Math.ceil(lasts / 1000))];
}

/** More was sold than there is, or one user has two orders of what each may order once. @param {import('../timeline/events.js').Ending | null | undefined} ending @param {Race} its */
const oversold = (ending, its) => (isOrder(its) ? (ending?.sold ?? 0) > 1 : (ending?.sold ?? 0) > (ending?.gone ?? 0) && sells(its));
/** @param {Race} its */
const sells = ({ ends }) => (ends.sold ?? 0) > 0 || (ends.gone ?? 0) > 0;

/** What it came to: of a race that sells nothing, what was seen. @param {import('../timeline/events.js').Ending} ending @param {Race} its @param {boolean} cured @returns {string} */
function ended(ending, its, cured) {
  const { sold = 0, gone = 0, inside = 0 } = ending;
  const meant = ending.as_meant && (cured ? its.cured_ends : its.ends);
  const saw = meant ? meant.said[current()] : ending.saw;
  // One that commits after its unlock was followed by another before: then to say that there was one alone explains nothing.
  const alone = inside === 1 && sold === gone;
  const parts = [sells(its) ? t(isOrder(its) ? 'raceOrdered' : 'replaySold', ending) : '', inside > 1 || alone ? t('replayInside', inside) : '',
    saw ? `${saw}${t('stop')}` : '', ending.as_meant === false ? t('replayApart') : ''];
  return parts.join('').trim();
}

/** Orders of one user for one voucher: [002]. @param {Race} its */
const isOrder = ({ lesson }) => lesson.startsWith('002.') && ['002.new-mutex', '002.cluster', '002.late-unlock'].includes(lesson);

/** In one sentence, the anomaly by its name. @param {Race} its @param {Recording | undefined} flaw */
function why(its, flaw) {
  if (!flaw?.ending) return [];
  if (flaw.timed && !oversold(flaw.ending, its)) return [t('timingKept')];
  const names = anomalies(its, halves[0].model);
  return [el('b', {}, t('why')), `${its.breaks[current()]}${t('stop')}${t('space')}`, ...names.map((name) => el('strong', { 'data-anomaly': name }, t('anomaly', name))),
    ` ${t('cureIs')}${its.cure[current()]}${t('stop')}`];
}

/** What is seen in the flaw has a name in the field. @param {Race} its @param {Model} model @returns {string[]} */
function anomalies(its, model) {
  const names = [];
  if (model.arrows.some((arrow) => arrow.to === 'lock')) names.push('late-release');
  if (model.lanes.some((lane) => lane.carries.length)) names.push('lost-update');
  if (isOrder(its)) names.push('check-then-act');
  if (!names.length && !sells(its) && (its.ends.inside ?? 0) > 1 && its.cured_ends.inside === 1) names.push('two-holders');
  return names;
}

/** Everything anew. */
function redrawn() {
  drawn = '';
  draw();
}

/** The class's phones are asked for the guess. */
function askClass() {
  if (race) votes.ask(race.lesson, redrawn).catch((error) => put($('race-idle'), t('failed', reason(error))));
  redrawn();
}

// ---- buttons and keys ------------------------------------------------------------------------------------------------

/** @param {() => void} seen one was played to its end for the first time */
export function listen(seen) {
  wasSeen = seen;
  $('race-run').onclick = pressed;
  $('race-play').onclick = () => player.toggle();
  $('race-back').onclick = (/** @type {MouseEvent} */ event) => step(-1, event.shiftKey);
  $('race-step').onclick = (/** @type {MouseEvent} */ event) => step(1, event.shiftKey);
  $('race-slower').onchange = () => player.slow(Number($('race-slower').value));
  order.listen(() => race, () => {
    timing.leave();
    redraw();
  });
  timing.listen(() => {
    if (timing.isOpen()) order.leave();
    redrawn();
  }, run, () => {
    if (live.size) cancel();
  });
  $('race-class').onclick = askClass;
  guess.listen(redrawn);
  for (const { name, picture } of halves) {
    $(`race-${name}`).onpointerdown = (/** @type {PointerEvent} */ event) => {
      if (event.pointerType === 'mouse') player.seek(picture.at(event.clientX));
    };
  }
  addEventListener('resize', () => {
    below = 0;
    redrawn();
  });
}

/** Space plays and pauses, ← and → go from caption to caption, with Shift from moment to moment; R plays it on the servers. @param {string} name @param {Element} at @param {boolean} fine @returns {(() => void) | null} */
export function keyed(name, at, fine) {
  if (!isShown() || at.matches('input, select, summary, pre') || (name === ' ' && at.matches('button, a'))) return null;
  if (name === 'r' || name === 'R') return pressed;
  if (!halves.some(({ cured }) => recorded(cured))) return null;
  switch (name) {
    case ' ': return () => player.toggle();
    case 'ArrowLeft': return () => step(-1, fine);
    case 'ArrowRight': return () => step(1, fine);
    default: return null;
  }
}

/** The language has changed, or something else that is drawn seldom. */
export function redraw() {
  draw();
  if (race) order.redraw(race);
}
