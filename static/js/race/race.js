/**
 * The race of a lesson: one press plays it on the real servers, the flaw above its cure on one scale; then both move together, caption by
 * caption.
 *
 * Both are played at once; where something is stopped or broken, one after the other. Recordings last as long as the tab, reloads included.
 * The way of an event: timeline/follow-replay.js reads it, timeline/player.js keeps the time, timeline/model.js makes lanes of events,
 * timeline/picture.js draws them. Read on in sent-commands.js, and in scheduler.js, where whoever watches decides the schedule: it comes
 * when it is first opened.
 */

import * as admin from '../shared/admin-token.js';
import { announce } from '../shared/screen-reader.js';
import * as api from '../shared/api.js';
import { $, el, setText } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import * as outcomeGuess from './outcome-guess.js';
import { sessionStore } from '../shared/storage.js';
import { currentLanguage, errorText, t } from '../shared/language.js';
import * as sentCommands from './sent-commands.js';
import * as ninetyMinutes from '../lesson/ninety-minutes.js';
import { numberOf } from '../lesson/lesson-number.js';
import * as ownTimes from './own-times.js';
import { losingPair, modelOf, withoutQueue } from '../timeline/model.js';
import { heightOf } from '../timeline/layout.js';
import { Picture, sentences } from '../timeline/picture.js';
import { ACTOR_NAME, TRANSPORT, withoutVainWaits } from '../timeline/events.js';
import { followReplay } from '../timeline/follow-replay.js';
import { Player, addEvent, emptyRecording } from '../timeline/player.js';
import { isOversold, isWrong, sellsStock } from './flaw.js';
import * as legend from './legend.js';
import * as wokenWaiters from './woken-waiters.js';
import * as classGuesses from './class-guesses.js';

/** @typedef {{zh: string, en: string}} Title */
/** What goes wrong without the cure. @typedef {'oversold' | 'stuck' | 'overtaken' | 'deadlock'} Goal */
/** @typedef {{goal: Goal, actors: string[], clock: boolean, dies: string | null, fails_over: boolean, stops: string[]}} ScheduleOptions */
/** How it must end, and what else is observed then. @typedef {import('../timeline/events.js').Ending & {said: Title}} ExpectedEnding */
/**
 * A race of `GET /replays`. `alone`: not beside its cure; `scheduled`: the options of a schedule of one's own; `timed`: it can be played at
 * times of one's own; `lasts_ms`: about how long it takes.
 * @typedef {{lesson: string, title: Title, breaks: Title, cure: Title, runs: string, cured_runs: string, anomalies: string[], places_orders: boolean, ends: ExpectedEnding, cured_ends: ExpectedEnding,
 *   cannot: Title | null, alone: boolean, actors: string[], cured_actors: string[], lasts_ms: number, cured_lasts_ms: number,
 *   shows: ServerLanes, cured_shows: ServerLanes, scheduled: ScheduleOptions | null, cured_scheduled: ScheduleOptions | null, timed: boolean}} Race
 */
/** @typedef {import('../timeline/layout.js').ServerLanes} ServerLanes */
/** A replay as the service reports it; `shared`: all visitors may watch it. @typedef {{id: string, lesson: string, cured: boolean, pace: string, state: string, events: string, own: boolean, shared: boolean}} ActiveReplay */
/** @typedef {import('../timeline/player.js').Recording} Recording */
/** @typedef {import('../timeline/model.js').Model} Model */
/** The flaw or the cure. @typedef {{name: 'flaw' | 'cure', cured: boolean, picture: Picture, model: Model, modelled: string}} Half */

const SLOWDOWNS = [1, 2, 10];
const DOUBLE_MS = 500;
/** From the end to the verdict, and from the verdict to the explanation: one thing after the other is read. */
const CLIMAX_MS = 800;
/** The flaw's end stands this long before something is stopped again for the cure. */
const BEFORE_CURE_MS = 3500;
/** The smallest scale of the two pictures; on a projector words of 20 pixels and more at 1280 x 720. */
const [MIN_SCALE, MIN_SCALE_PROJECTED] = [0.75, 0.667];
/**
 * Heights in sixteenths of the root's font size, usually, projected, and on a phone, where a caption and its verdict have three lines: a half's caption, a
 * line of explanation, all margins.
 */
const [CAPTION_HEIGHTS, EXPLANATION_HEIGHTS, MARGINS] = [[32, 19, 70], [27, 18, 22], [29, 8, 29]];
/** Above a caption, in the same measure: usually, projected, and on a phone. */
const CAPTION_EDGES = [5, 1, 5];
/**
 * So much closer everything in the pictures may stand, usually and projected, so that they fit on a small screen; on a large one they grow
 * by this at most, with the commands below them.
 */
const [MIN_GROWTH, MIN_GROWTH_PROJECTED, MAX_GROWTH] = [0.9, 0.87, 1.25];
/**
 * A picture shows a little more time than a race usually takes, in microseconds per millisecond; a longer one adds this share at a time,
 * so that the axis seldom moves. Once it has ended the axis begins and ends with it.
 */
const [SPAN_US_PER_MS, SPAN_STEP, SPAN_EDGE] = [1100, 0.15, 0.02];
/** The width of a number of the stock beside its mark, in sixteenths of the root's font size. */
const STOCK_LABEL = 72;
/** @type {Race[]} */
let races = [];
/** The name of the text that says why no race can be played here; empty: races can be played. */
let disabledReason = '';
/** @type {Race | null} */
let shownRace = null;
/** Active replays of one lesson, by lesson and cured. @type {Map<string, {id: string, lesson: string, cured: boolean, own: boolean, close: () => void}>} */
const activeReplays = new Map();
/** A race of another visitor stops something. */
let isBrokenByOthers = false;
/** Replays of others that all may watch. @type {ActiveReplay[]} */
let sharedReplays = [];
/** Comes when it is first opened. @type {typeof import('./scheduler.js') | null} */
let scheduler = null;
const isScheduling = () => scheduler?.isOpen() ?? false;
/** Why the race was not begun. */
let refusal = '';
/** By lesson and cured. @type {Map<string, Recording>} */
const recordings = new Map();
/** The cure starts when the flaw is over. */
let isCureNext = false;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let cureTimer;
/** When verdicts and explanation may be shown, by the local clock. */
const revealedAt = { flaw: 0, cure: 0, why: 0 };
/** Whoever looks at this page has pressed the button. */
let isPlayedHere = false;
let wasStage = false;
/** The next drawing shows the end of both pictures. */
let isJustOver = false;
let startedAt = 0;
let onFinished = () => {};
let lastFrame = '';
/**
 * The top of the pictures on the page; 0: unknown. It is not measured again while they play: a notice above (a server that is down) moves
 * them and does not shrink them.
 */
let picturesTop = 0;

const player = new Player(draw);
/** @type {Half[]} */
const halves = [false, true].map((cured) => {
  const name = cured ? 'cure' : 'flaw';
  return { name, cured, picture: new Picture($(`race-${name}`)), model: modelOf([]), modelled: '' };
});
const keyOf = (/** @type {string} */ lesson, /** @type {boolean} */ cured) => `${lesson} ${cured}`;
const recordingOf = (/** @type {boolean} */ cured) => (shownRace ? recordings.get(keyOf(shownRace.lesson, cured)) : undefined);
const isPlayingShown = () => [...activeReplays.values()].some((one) => one.lesson === shownRace?.lesson);

const isOwn = (/** @type {ActiveReplay} */ replay) => replay.own;

export async function loadRaces() {
  try {
    const list = await api.replays();
    disabledReason = list.enabled ? '' : 'replayOff';
    races = list.replays;
    list.playing.filter(isOwn).forEach(join);
  } catch {
    disabledReason = 'replayOff';
  }
}

/** Joins this visitor's active replays: after a reload, or in a second window. */
export async function joinRunning() {
  if (!races.length) await loadRaces();
  isBrokenByOthers = false;
  if (activeReplays.size || disabledReason || !isShown()) return;
  const { playing, breaking } = await api.replays();
  isBrokenByOthers = breaking != null;
  playing.filter(isOwn).forEach(join);
  sharedReplays = playing.filter((/** @type {ActiveReplay} */ replay) => replay.shared && !replay.own);
  draw();
}

/** Does a race stop or break something now? */
export const isBreaking = () => isBrokenByOthers || (isScheduling() && shownRace?.scheduled?.fails_over === true) || [...activeReplays.values()].some(({ lesson }) => raceOf(lesson)?.alone);

/** Watches what the class watches. */
function watchShared() {
  sharedReplays.forEach(join);
  draw();
}

/**
 * Shows a race of somebody else, which the teacher lets everybody watch, in the place of what was recorded here. Who plays this lesson goes on with that.
 * @param {string} lesson @param {import('../class/presence.js').WatchedReplay[]} replays
 */
export function watch(lesson, replays) {
  const isBusy = [...activeReplays.values()].some((one) => one.lesson === lesson) || (shownRace?.lesson === lesson && isScheduling());
  if (!replays.length || isBusy) return;
  scheduler?.closePanel();
  ownTimes.closePanel();
  for (const cured of [false, true]) recordings.delete(keyOf(lesson, cured));
  for (const { id, cured, pace } of replays) followEvents({ id, lesson, cured, pace, events: `replays/${id}/events`, own: false, state: '', shared: true }, newRecording(lesson, cured));
  if (shownRace?.lesson === lesson) loadPlayer();
}

/** Joins one, unless scheduler.js plays it. @param {ActiveReplay} playing */
function join(playing) {
  if (activeReplays.has(keyOf(playing.lesson, playing.cured)) || ['fast', 'scheduler'].includes(playing.pace)) return;
  const recording = newRecording(playing.lesson, playing.cured);
  followEvents(playing, recording);
  if (shownRace?.lesson === playing.lesson) loadPlayer();
}

/** The race of this lesson; null if it has none. @param {string} id */
export const raceOf = (id) => races.find((r) => r.lesson === id) ?? null;

/** The race whose flaw is this strategy. @param {string} slug */
export const raceOfStrategy = (slug) => races.find((r) => r.runs === slug && r.anomalies.includes('lost-update')) ?? null;

/** Links to what the printed text has wrong here. @param {import('../lesson/course.js').Lesson[]} errata */
export function drawErrata(errata) {
  $('race-errata').replaceChildren(...(errata.length ? [t('raceErrata'), ...errata.flatMap((one) => [' ', el('a', { href: `#/${one.id}` }, one.title[currentLanguage()])])] : []));
}

/**
 * Shows the race of this lesson, or hides it.
 * @param {string} id @param {boolean} isScheduledOnly it has only a schedule: deadlock.js shows the statements
 * @returns {boolean} whether there is one to play
 */
export function show(id, isScheduledOnly) {
  const found = raceOf(id);
  $('race').hidden = !found;
  $('race').classList.toggle('scheduled-only', isScheduledOnly);
  if (found !== shownRace) {
    [lastFrame, picturesTop, refusal] = ['', 0, ''];
    $('race-admin').replaceChildren();
    for (const half of halves) half.modelled = '';
    if (shownRace) outcomeGuess.clearGuess();
    shownRace = found;
    for (const cured of shownRace ? [false, true] : []) {
      const stored = recordingOf(cured) ? null : sessionStore.get(`race ${keyOf(id, cured)}`);
      if (stored) recordings.set(keyOf(id, cured), stored);
    }
    scheduler?.closePanel();
    ownTimes.closePanel();
    isJustOver = true;
    loadPlayer();
    if (shownRace && scheduler?.takeChosenLevel(shownRace.lesson)) scheduler.toggle();
    if (classGuesses.isAnyAsked() && shownRace && outcomeGuess.questionOf(shownRace)) askClass();
  }
  draw();
  return isShown();
}

/** Where replays are allowed, races can be played and commands run. */
export const canPlay = () => !disabledReason;

export const isShown = () => shownRace != null && !$('race').hidden && !$('race').classList.contains('scheduled-only');

/** Follows an active replay, or shows the end of a recording. */
function loadPlayer() {
  player.load(combinedRecording());
}

/** Both as one recording: a finished half stands beside the active one. @returns {Recording} */
function combinedRecording() {
  const both = halves.flatMap(({ cured }) => recordingOf(cured) ?? []);
  const isPlaying = both.filter((one) => one.live);
  const shown = isPlaying.length ? isPlaying : both;
  return { ...emptyRecording(), events: shown.flatMap((one) => one.events), live: isPlaying.length > 0, stepped: false };
}

// ---- playing ---------------------------------------------------------------------------------------------------------

/** Opens the scheduler, or closes it. */
async function toggleScheduler() {
  if ($('race-schedule').getAttribute('aria-disabled') === 'true') return;
  const race = shownRace;
  try {
    if (!scheduler) {
      scheduler = await import('./scheduler.js');
      scheduler.listen(() => shownRace, raceOf);
    }
  } catch { /* the service is not reached */ }
  if (race !== shownRace) return;
  if (scheduler) scheduler.toggle();
  else refusal = t('unreached');
  ownTimes.closePanel();
  redraw();
  // What stood above the game is hidden now.
  if (isScheduling()) scrollTo({ top: 0, behavior: 'instant' });
}

/** A double click does not cancel. */
function pressRun() {
  if (!activeReplays.size) run();
  else if (isPlayingShown() && performance.now() - startedAt > DOUBLE_MS) cancel();
}

/** Plays the flaw and the cure. @param {ownTimes.Timing} [times] times of one's own */
export async function run(times) {
  if (activeReplays.size || !shownRace || disabledReason || shownRace.cannot) return;
  scheduler?.closePanel();
  if (!times) ownTimes.closePanel();
  startedAt = performance.now();
  // The guess gives its place to the pictures.
  [refusal, isPlayedHere, picturesTop] = ['', true, 0];
  for (const cured of [false, true]) recordings.delete(keyOf(shownRace.lesson, cured));
  isCureNext = shownRace.alone;
  const started = (shownRace.alone ? [false] : [false, true]).map((cured) => start(/** @type {Race} */ (shownRace).lesson, cured, times));
  // With the pictures the page is long enough.
  if (isPhone()) $('race-run').parentElement.scrollIntoView({ block: 'start', behavior: 'instant' });
  else if (isProjected()) scrollTo({ top: 0, behavior: 'instant' });
  await Promise.all(started);
}

/** @param {string} lesson @param {boolean} cured @param {ownTimes.Timing} [times] */
async function start(lesson, cured, times) {
  const recording = newRecording(lesson, cured);
  recording.timed = times != null;
  const at = keyOf(lesson, cured);
  activeReplays.set(at, { id: '', lesson, cured, own: true, close: () => {} });
  loadPlayer();
  try {
    // What the class has guessed, it watches.
    const shared = classGuesses.isAsked(lesson) ? { shared: 'true' } : {};
    followEvents(await api.startReplay(lesson, cured, times ? 'timed' : 'slow', { ...times, ...shared }), recording);
    draw();
  } catch (error) {
    // A race that was not begun is not drawn as one that failed.
    isCureNext = false;
    activeReplays.delete(at);
    recordings.delete(at);
    refusal = admin.refusalText(error, $('race-admin'), () => run(times));
    loadPlayer();
    // Another replay is active: show that.
    if (/** @type {any} */ (error).status === 409) await joinRunning().catch(() => {});
  }
}

/** @param {string} lesson @param {boolean} cured */
function newRecording(lesson, cured) {
  const recording = emptyRecording();
  recordings.set(keyOf(lesson, cured), recording);
  return recording;
}

/** @param {ActiveReplay} playing @param {Recording} recording */
function followEvents({ id, lesson, cured, pace, events, own }, recording) {
  const at = keyOf(lesson, cured);
  recording.stepped = pace === 'step';
  recording.timed = pace === 'timed';
  let before = 0;
  const close = followReplay(events ?? `replays/${id}/events`, {
    begin: () => {
      recording.events = [];
      before = 0;
    },
    event: (event) => {
      // A barrier has no owner: its nodes are the waiters, which have lanes.
      if (event.actor === 'lock' && /barrier/.test(event.key ?? '')) return;
      update(addEvent(recording, event, before));
      before = event.t_us;
    },
    over: (name, ending) => finish(at, recording, name === 'done' ? ending : null, ending.detail ?? t('vanished')),
  });
  activeReplays.set(at, { id, lesson, cured, own, close });
}

/** @param {string} at @param {Recording} recording @param {import('../timeline/events.js').Ending | null} ending @param {string} why */
function finish(at, recording, ending, why) {
  const { lesson = '', cured = false } = activeReplays.get(at) ?? {};
  // At times of one's own no ending is expected.
  if (ending && recording.timed) delete ending.as_meant;
  Object.assign(recording, { events: withoutQueue(recording.events), live: false, ending, failed: ending ? '' : why });
  if (ending) sessionStore.set(`race ${at}`, recording);
  activeReplays.delete(at);
  if (ending) revealInSteps(cured ? 'cure' : 'flaw');
  if (isCureNext && !cured && ending) {
    isCureNext = false;
    activeReplays.set(keyOf(lesson, true), { id: '', lesson, cured: true, own: true, close: () => {} });
    cureTimer = setTimeout(() => start(lesson, true), BEFORE_CURE_MS);
    if (shownRace?.lesson === lesson) update();
    return;
  }
  isCureNext = false;
  isJustOver = activeReplays.size === 0;
  const isMeant = [false, true].every((each) => recordings.get(keyOf(lesson, each))?.ending?.as_meant);
  if (isMeant && !activeReplays.size && !ninetyMinutes.isFinished(lesson)) {
    ninetyMinutes.markFinished(lesson);
    if (ninetyMinutes.isFinished(lesson)) onFinished();
  }
  if (shownRace?.lesson === lesson) {
    if (activeReplays.size) update();
    else loadPlayer();
    announce($(`race-${cured ? 'cure' : 'flaw'}-end`).textContent, true);
  } else draw();
}

/** The verdict comes after the last event, the explanation after the verdict. @param {'flaw' | 'cure'} name */
function revealInSteps(name) {
  revealedAt[name] = performance.now() + CLIMAX_MS;
  revealedAt.why = performance.now() + 2 * CLIMAX_MS;
  for (const n of [1, 2]) setTimeout(draw, n * CLIMAX_MS + 1);
}

/** @param {import('../timeline/events.js').ReplayEvent} [event] */
function update(event) {
  player.recording = combinedRecording();
  player.update(event);
}

export function cancel() {
  isCureNext = false;
  clearTimeout(cureTimer);
  for (const [at, { id, cured, own, close }] of activeReplays) {
    if (!id && cured && shownRace?.alone) activeReplays.delete(at);
    // Another's goes on without this one.
    if (!own) {
      close();
      activeReplays.delete(at);
      recordings.delete(at);
    }
  }
  redrawAll();
  for (const { id } of activeReplays.values()) if (id) api.cancelReplay(id).catch((error) => admin.askForToken(error, $('race-admin'), cancel));
}

/** Moves by caption of either half; `isFine`: by event. @param {1 | -1} by @param {boolean} isFine */
function step(by, isFine) {
  const at = halves.flatMap(({ model }) => (isFine ? model.moments : [...model.captions.map((c) => c.at), model.end]));
  player.step(by, [...new Set(at)].sort((a, b) => a - b));
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** Draws each frame; the rest only when it changes. */
function draw() {
  if (!shownRace || $('race').hidden) {
    document.documentElement.removeAttribute('data-stage');
    return;
  }
  setStage(halves.some(({ cured }) => recordingOf(cured)) && !isScheduling() && !ownTimes.isOpen());
  const isCounted = wokenWaiters.isIn(shownRace);
  $('race').classList.toggle('counted', isCounted);
  const models = halves.map((half) => modelFor(half, /** @type {Race} */ (shownRace)));
  const { lasts_ms: flaw, cured_lasts_ms: cure } = shownRace;
  const timed = recordingOf(false)?.timed;
  const { begin, span } = timeShown(models, timed ? ownTimes.SPAN_US : SPAN_US_PER_MS * Math.max(flaw, cure), timed === true);
  frame(shownRace);
  const isPlaying = isPlayingShown();
  const { scale, heights } = heightsOf(shownRace);
  $('times').style.setProperty('--scale', String(scale));
  // The flaw's end stays while its cure is played after it.
  const cursors = halves.map(({ cured, model }) => (isPlaying && player.isFollowing && !recordingOf(cured)?.live ? Math.max(player.cursor, model.end) : player.cursor));
  halves.forEach(({ name, cured, model }, i) => {
    const recording = recordingOf(cured);
    const part = $(`race-${name}-part`);
    part.hidden = !recording;
    part.style.height = isCounted ? '' : `${heights[i]}px`;
    if (!recording) return;
    const caption = recording.timed ? lastEventAt(recording.events, cursors[i]) : model.captions.findLast((c) => c.at <= cursors[i])?.[currentLanguage()] ?? '';
    const say = $(`race-${name}-say`);
    if (say.textContent !== caption) say.replaceChildren(...caption.split(ACTOR_NAME).map((/** @type {string} */ word, /** @type {number} */ n) => (n % 2 ? el('b', { 'data-actor': word }, word) : word)));
    const over = recording.ending && cursors[i] >= model.end && performance.now() >= revealedAt[name];
    $(`race-${name}-end`).classList.toggle('later', !over && !recording.failed);
  });
  const rooms = halves.map(({ picture }) => picture.room());
  halves.forEach(({ name, cured, model, picture }, i) => {
    const recording = recordingOf(cured);
    if (recording && !isCounted) {
      picture.draw(model, cursors[i], {
        live: recording.live, moves: player.isPlaying || player.isFollowing || isJustOver, scaled: !recording.stepped, begin, span, stepped: isPhone() && !isPlaying && !recording.live, scale, dense: isProjected(),
        height: rooms[i].height || undefined, comes: recording.live ? showsOf(/** @type {Race} */ (shownRace), cured) : undefined,
      }, rooms[i]);
    }
    const pair = losingPair(model);
    sentCommands.draw($(`race-${name}-lines`), recording?.events ?? [], player.cursor, pair.every(({ at }) => at <= player.cursor) ? pair : []);
  });
  setText($('race-at'), t('at', (player.cursor / 1e6).toFixed(2)));
  const sign = player.isPlaying ? 'pause' : 'play';
  if ($('race-play').dataset.sign !== sign) $('race-play').replaceChildren(icons(sign));
  $('race-play').dataset.sign = sign;
  $('race-play').setAttribute('aria-label', t(sign));
  isJustOver &&= document.body.dataset.first != null;
  const isOver = (/** @type {Half} */ { cured, model }) => recordingOf(cured)?.ending != null && (player.cursor >= model.end || (isPlaying && player.isFollowing));
  const isTold = performance.now() >= revealedAt.why;
  $('race-why').classList.toggle('later', !isTold || !(shownRace.alone ? isOver(halves[0]) : halves.every(isOver)));
  const isEnded = isTold && !isPlaying && halves.every(isOver);
  if (isEnded && !$('race').classList.contains('ended')) {
    if (isPlayedHere && classGuesses.isAsked(shownRace.lesson)) classGuesses.end();
    showEnd();
  }
  $('race').classList.toggle('ended', isEnded);
  legend.draw($('race-legend'), isEnded && !isCounted ? halves.map(({ name }) => $(`race-${name}`)) : []);
}

/** At times of one's own no captions come: the last event is told. @param {import('../timeline/events.js').ReplayEvent[]} events @param {number} cursor */
function lastEventAt(events, cursor) {
  const last = withoutVainWaits(events).findLast((e) => e.t_us <= cursor && e.actor !== 'stock' && !TRANSPORT.includes(e.event));
  return last ? t('told', last) : '';
}

/** With `data-stage` a projector shows little beside the pictures. @param {boolean} isOn */
function setStage(isOn) {
  if (document.documentElement.toggleAttribute('data-stage', isOn) !== wasStage) [wasStage, lastFrame, picturesTop] = [isOn, '', 0];
}

/** The page is scrolled once so that the explanation is in sight. */
function showEnd() {
  if ($('race-why').getBoundingClientRect().bottom > innerHeight && isPlayedHere) $('race-why').scrollIntoView({ block: 'end', behavior: 'instant' });
  isPlayedHere = false;
}

/** @param {Half} half @param {Race} its */
function modelFor(half, its) {
  const recording = recordingOf(half.cured);
  const events = recording?.events ?? [];
  const now = JSON.stringify([its.lesson, events.length, recording?.live && player.end]);
  if (now !== half.modelled) {
    half.modelled = now;
    const actors = recording ? actorsOf(its, half.cured) : [];
    half.model = modelOf(events, recording?.live ? player.end : 0, roomIn(events, its), { live: recording?.live, actors });
  }
  return half.model;
}

/** How many may be inside: where nothing is sold, as many as the cure lets in. @param {import('../timeline/events.js').ReplayEvent[]} events @param {Race} its */
function roomIn(events, its) {
  const sells = events.some((e) => e.actor === 'stock' || e.event === 'sold');
  return sells ? 1 : Math.max(1, its.cured_ends.inside ?? 1);
}

const sum = (/** @type {number[]} */ all) => all.reduce((a, b) => a + b, 0);

/** A sixteenth of the root's font size, in pixels. */
const rootUnit = () => parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;

/** @param {Race} its @param {boolean} cured */
const showsOf = (its, cured) => (cured ? its.cured_shows : its.shows);

/** The actors that have a lane in any case. @param {Race} its @param {boolean} cured */
const actorsOf = (its, cured) => (recordingOf(cured)?.timed ? ['A', 'B'] : cured ? its.cured_actors : its.actors);

/**
 * The scale of both pictures, and the height of each half in pixels. While a race plays they follow from what is known of it beforehand, and
 * not from what happens: nothing on the page moves. They fit on the screen as far as their text stays readable.
 * @param {Race} its
 */
function heightsOf(its) {
  const dense = isProjected();
  const unit = rootUnit();
  const over = halves.every(({ cured, picture }) => recordingOf(cured)?.ending && picture.needed);
  const needs = halves.map(({ cured, picture }) => (over ? picture.needed : heightOf(actorsOf(its, cured).length, showsOf(its, cured), dense)));
  const isFlawAlone = its.alone && !recordingOf(true);
  const shown = isFlawAlone ? 1 : 2;
  const high = sum(needs.slice(0, shown));
  const [caption, edge, line, margins] = [CAPTION_HEIGHTS, CAPTION_EDGES, EXPLANATION_HEIGHTS, MARGINS].map((sizes) => sizes[dense ? 1 : isPhone() ? 2 : 0]);
  // Where the cure comes later, the explanation is read while it plays.
  const isExplained = over || (its.alone && !isFlawAlone);
  const explanation = isExplained ? Math.max(line, $('race-why').offsetHeight / unit) : line * (isFlawAlone ? 3 : 1);
  // A long verdict has its lines above the picture.
  const captions = halves.map(({ name }) => (over ? Math.max(caption, $(`race-${name}-part`).firstElementChild.offsetHeight / unit + edge) : caption));
  const free = (innerHeight - picturesTop) / unit - sum(captions.slice(0, shown)) - explanation - margins;
  const scale = Math.max(dense ? MIN_SCALE_PROJECTED : MIN_SCALE, Math.min(1, free / high));
  const growth = Math.max(dense ? MIN_GROWTH_PROJECTED : MIN_GROWTH, Math.min(dense ? Infinity : MAX_GROWTH, free / (high * scale)));
  return { scale, heights: needs.map((need, i) => Math.floor((captions[i] + need * scale * growth) * unit)) };
}

/** The time that both show: once they have ended, theirs; before, the usual span, or in steps more. @param {Model[]} models @param {number} usual @param {boolean} timed */
function timeShown(models, usual, timed) {
  const end = Math.max(...models.map((model) => model.end));
  if (!timed && halves.every(({ cured }) => recordingOf(cured) && !recordingOf(cured)?.live)) {
    const first = Math.min(...models.filter((model) => model.moments.length).map((model) => model.begin));
    // The stock before the first sale has room for its number.
    const sale = Math.min(...models.flatMap(({ shelf }) => shelf[1]?.at ?? []));
    const share = STOCK_LABEL / Math.max(STOCK_LABEL * 2, halves[0].picture.timeWidth() / rootUnit());
    const begin = Math.min(first - (end - first) * SPAN_EDGE, sale - ((end - sale) * share) / (1 - share));
    return { begin, span: Math.max((end - begin) * (1 + SPAN_EDGE), 1000) };
  }
  return { begin: 0, span: usual * (1 + SPAN_STEP * Math.max(0, Math.ceil((end * (1 + SPAN_EDGE) / usual - 1) / SPAN_STEP))) };
}

/** As in style.css. */
const isPhone = () => matchMedia('(max-width: 52rem)').matches;

const isProjected = () => document.documentElement.hasAttribute('data-projector');

/** Draws title, buttons and verdicts. @param {Race} its */
function frame(its) {
  const both = halves.map(({ cured }) => recordingOf(cured));
  const now = JSON.stringify([currentLanguage(), its.lesson, disabledReason, refusal, isScheduling(), ownTimes.isOpen(), outcomeGuess.currentGuess(), classGuesses.isAsked(its.lesson), [...activeReplays.values()].map(({ id, lesson }) => [id, lesson]), sharedReplays.map(({ id }) => id), both.map((one) => one && [one.live, one.ending, one.failed, one.events.length]), player.slowdown]);
  if (now === lastFrame) return;
  lastFrame = now;
  const lang = currentLanguage();
  const isPlaying = isPlayingShown();
  setText($('race-run'), t(isPlaying ? 'cancel' : both.some(Boolean) ? 'raceAgain' : 'race'));
  $('race-run').classList.toggle('cancel', isPlaying);
  const cannot = Boolean(disabledReason) || its.cannot != null || (activeReplays.size > 0 && !isPlaying);
  $('race-run').setAttribute('aria-disabled', String(cannot));
  $('race-idle').replaceChildren(...idleNote(its, both));
  $('race-player').hidden = !both.some(Boolean);
  $('race-slower').replaceChildren(...SLOWDOWNS.map((n) => el('option', { value: String(n), selected: n === player.slowdown }, t('slower', n))));
  halves.forEach(({ name, cured }, i) => {
    setText($(`race-${name}-what`), t(cured ? 'cured' : 'flaw'));
    $(`race-${name}-what`).title = (cured ? its.cure : its.breaks)[lang];
    const recording = both[i];
    setText($(`race-${name}-end`), recording?.failed ? t('failed', recording.failed) : recording?.ending ? endingText(recording.ending, its, cured) : '');
    $(`race-${name}-end`).classList.toggle('red', isWrong(recording?.ending, its, cured));
  });
  $('race-why').replaceChildren(...explanation(its, both[0]));
  outcomeGuess.draw(its, isPlaying, both.every((one) => one?.ending?.as_meant), classGuesses.isAsked(its.lesson) ? classGuesses.countOf : null);
  $('race-class').hidden = Boolean(disabledReason) || !outcomeGuess.questionOf(its) || both.some(Boolean);
  setText($('race-class'), classGuesses.isAsked(its.lesson) ? t('votesAsked', classGuesses.total()) : t('votesAsk'));
  const events = both.flatMap((one) => (one && !one.live ? [one.events] : []));
  $('race-told-part').hidden = !events.length;
  $('race-told').replaceChildren(...events.flatMap((list, i) => [el('h3', {}, t(i ? 'cured' : 'flaw')), el('ol', { class: 'told' }, ...sentences(withoutVainWaits(list).filter((e) => e.event !== 'stands')))]));
  $('race').classList.toggle('playing', activeReplays.size > 0);
  $('race-schedule').hidden = !its.scheduled;
  $('race-schedule').setAttribute('aria-disabled', String((activeReplays.size > 0 || cannot) && !isScheduling()));
  $('race-schedule').setAttribute('aria-expanded', String(isScheduling()));
  setText($('race-schedule'), t(isScheduling() ? 'scheduleClose' : 'scheduleOpen'));
  scheduler?.frame(its);
  ownTimes.frame(its, activeReplays.size > 0, Boolean(disabledReason) || its.cannot != null);
  if (!isPlaying || !picturesTop) picturesTop = isPhone() ? $('race-run').parentElement.offsetHeight : Math.max(...['claim', 'race-run'].map((id) => $(id).parentElement.getBoundingClientRect().bottom)) + scrollY;
  wokenWaiters.draw(both.map((one) => one?.events ?? []));
}

/** @param {Race} its @param {(Recording | undefined)[]} both */
function idleNote(its, both) {
  if (disabledReason) return [t(disabledReason)];
  if (refusal) return [refusal];
  if (its.cannot) return [t('replayCannot', its.cannot[currentLanguage()])];
  const [other] = activeReplays.values();
  if (other && !isPlayingShown()) return [t('replayOther', numberOf(other.lesson), t(other.cured ? 'cured' : 'flaw')), ' ', el('a', { href: `#/${other.lesson}` }, t('watch'))];
  const [shared] = sharedReplays;
  if (shared && !other) {
    const link = el('a', { href: `#/${shared.lesson}` }, t('watch'));
    link.addEventListener('click', watchShared);
    return [t('sharedReplay', numberOf(shared.lesson)), ' ', link];
  }
  if (classGuesses.isAsked(its.lesson) && !both.some(Boolean)) return [el('a', { href: `class.html#/${its.lesson}` }, t('votesJoin'))];
  const lasts = its.alone ? its.lasts_ms + its.cured_lasts_ms : Math.max(its.lasts_ms, its.cured_lasts_ms);
  return both.some(Boolean) || !lasts ? [] : [t('raceIdle', Math.ceil(lasts / 1000))];
}

/** How it ended: what was sold, how many were inside, what was observed. @param {import('../timeline/events.js').Ending} ending @param {Race} its @param {boolean} cured @returns {string} */
function endingText(ending, its, cured) {
  const { inside = 0 } = ending;
  const meant = ending.as_meant && (cured ? its.cured_ends : its.ends);
  const saw = meant ? meant.said[currentLanguage()] : ending.notes;
  const alone = inside === 1 && !isWrong(ending, its, cured);
  const parts = [sellsStock(its) ? t(its.places_orders ? 'raceOrdered' : 'replaySold', ending) : '', inside > 1 || alone ? t('replayInside', inside) : '',
    saw ? `${saw[0].toUpperCase()}${saw.slice(1)}${t('stop')}` : '', ending.as_meant === false ? t('replayApart') : ''];
  return parts.join('').trim();
}

/** One sentence with the name of the anomaly. @param {Race} its @param {Recording | undefined} flaw */
function explanation(its, flaw) {
  if (!flaw?.ending) return [];
  if (flaw.timed && !isOversold(flaw.ending, its)) return [t('timingKept')];
  return [el('b', {}, t('why')), `${its.breaks[currentLanguage()]}${t('stop')}${t('space')}`, ...its.anomalies.map((name) => el('strong', { 'data-anomaly': name }, t('anomaly', name))),
    ` ${t('cureIs')}${its.cure[currentLanguage()]}${t('stop')}`];
}

function redrawAll() {
  lastFrame = '';
  draw();
}

/** Asks the class's phones for the guess. */
function askClass() {
  if (shownRace) classGuesses.askClass(shownRace.lesson, redrawAll).catch((error) => setText($('race-idle'), t('failed', errorText(error))));
  redrawAll();
}

// ---- buttons and keys ------------------------------------------------------------------------------------------------

/** @param {() => void} onFinish called when a lesson is finished */
export function listen(onFinish) {
  onFinished = onFinish;
  $('race-run').onclick = pressRun;
  $('race-back').append(icons('back'));
  $('race-step').append(icons('forward'));
  $('race-play').onclick = () => player.toggle();
  $('race-back').onclick = (/** @type {MouseEvent} */ event) => step(-1, event.shiftKey);
  $('race-step').onclick = (/** @type {MouseEvent} */ event) => step(1, event.shiftKey);
  $('race-slower').onchange = () => player.setSlowdown(Number($('race-slower').value));
  $('race-schedule').onclick = toggleScheduler;
  ownTimes.listen(() => {
    if (ownTimes.isOpen()) scheduler?.closePanel();
    redrawAll();
  }, run, () => {
    if (activeReplays.size) cancel();
  });
  $('race-class').onclick = askClass;
  outcomeGuess.listen(redrawAll);
  for (const { name, picture } of halves) {
    $(`race-${name}`).onpointerdown = (/** @type {PointerEvent} */ event) => {
      if (event.pointerType === 'mouse') player.seek(picture.timeAt(event.clientX));
    };
  }
  addEventListener('resize', () => {
    [picturesTop, lastFrame] = [0, ''];
    redraw();
  });
}

/** Space plays and pauses, ← and → move by caption, with Shift by event; R plays it on the servers. @param {string} name @param {Element} at @param {boolean} isFine @returns {(() => void) | null} */
export function keyAction(name, at, isFine) {
  if (!isShown() || at.matches('input, select, summary, pre') || (name === ' ' && at.matches('button, a'))) return null;
  if (name === 'r' || name === 'R') return pressRun;
  if (!halves.some(({ cured }) => recordingOf(cured))) return null;
  switch (name) {
    case ' ': return () => player.toggle();
    case 'ArrowLeft': return () => step(-1, isFine);
    case 'ArrowRight': return () => step(1, isFine);
    default: return null;
  }
}

/** Draws what changes seldom, such as the language. */
export function redraw() {
  draw();
  if (shownRace) scheduler?.redraw(shownRace);
}
