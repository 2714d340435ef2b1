/**
 * The scheduler: A, B and C each have a button, and whoever watches decides who goes on. The real requests pause wherever another could
 * come between. Then all schedules are tried: what goes wrong without the cure goes wrong in none with it.
 *
 * What each will send next is known from a replay that is played before; in a transaction the service says it.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { announce } from '../shared/screen-reader.js';
import { $, el, setText, replaceKeepingFocus } from '../shared/dom.js';
import { icons } from '../shared/icon.js';
import { addWords, currentLanguage, errorText, t, translate } from '../shared/language.js';
import * as sentCommands from './sent-commands.js';
import { isActor } from '../timeline/events.js';
import { followReplay } from '../timeline/follow-replay.js';
import { spanOf } from '../timeline/layout.js';
import { losingPair, modelOf } from '../timeline/model.js';
import { Picture } from '../timeline/picture.js';
import { addEvent, emptyRecording } from '../timeline/player.js';
import { fewestPresses } from './fewest-presses.js';
import * as legend from './legend.js';
import * as levels from './levels.js';
import { waitsPicture } from './waits-picture.js';
import * as scheduleWords from '../words/scheduler.js';

addWords(scheduleWords);
translate();

/** @typedef {import('./race.js').Race} Race */
/** @typedef {import('./race.js').ScheduleOptions} ScheduleOptions */
/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('../timeline/events.js').Ending} Ending */
/** Not started, on the way to a pause, paused, or ended. @typedef {'start' | 'way' | 'stands' | 'end'} ActorStage */
/** What is sent before the pause at `point`, or before the end. @typedef {{point: string, sent: string[]}} ProgramStep */
/** Where an actor did something. @typedef {import('./sent-commands.js').Moment} Moment */
/** `from` waits for what `to` has. @typedef {{from: string, to: string}} Wait */

const END_EVENTS = ['sold', 'done', 'failed', 'refused-by-row'];
/** Without news for this long, an actor that may wait is waiting. */
const QUIET_MS = 300;
/** Without news for this long, an actor that has nothing to wait for is lost. */
const LOST_MS = 5000;
const TICK_MS = 20;
/** The service reads the lock more often than this. */
const LOOK_MS = 80;
const PARALLEL_REPLAYS = 3;
/** Below the buttons a projector has less room; its words are 20 pixels high all the same. */
const PROJECTED = { scale: 0.7, dense: true };
/** MySQL's error of a circle of waits. */
const DEADLOCK = '1213';
/** The clock, a death, and the Sentinel that promotes a replica are actors, too. */
const [CLOCK, DEATH, FAILOVER] = ['clock', 'death', 'failover'];
/** Their signs on buttons. @type {Record<string, import('../shared/icon.js').Icon>} */
const SIGNS = { [CLOCK]: 'clock', [DEATH]: 'skull', [FAILOVER]: 'swap' };
const signOf = (/** @type {string} */ actor) => (SIGNS[actor] ? icons(SIGNS[actor]) : actor);
/** The replay before may still be ending and repairing what it broke. */
const START_TIMEOUT_MS = 40_000;

/** Who polls does these again and again. */
const POLLING = ['sent', 'answered', 'refused'];

/** A replay with a schedule of one's own. */
class ScheduledReplay {
  recording = { ...emptyRecording(), stepped: true };
  /** @type {Ending | null} */
  ending = null;
  error = '';
  needsToken = false;
  /** @type {string[]} */
  schedule = [];
  /** Nobody can go on, and the clock does not help. */
  isStuck = false;
  #lastNewsAt = performance.now();
  #id = '';
  #before = 0;
  #close = () => {};
  /** What an actor that was refused asks again, as long as it is not known whether it is refused. @type {Map<string, ReplayEvent[]>} */
  #polls = new Map();

  /** Asked again and refused again: it is no step, and there are many in a second. @param {ReplayEvent} event */
  #isRepeatedPoll(event) {
    const last = this.recording.events.findLast((e) => e.actor === event.actor);
    if (last?.event !== 'refused' || !POLLING.includes(event.event)) return false;
    if (event.event === 'refused') this.#polls.delete(event.actor);
    else this.#polls.set(event.actor, [...this.#polls.get(event.actor) ?? [], event]);
    return true;
  }

  /** @param {Race} race @param {boolean} cured @param {() => void} changed */
  async begin(race, cured, changed) {
    const { id, events } = await api.startReplay(race.lesson, cured, 'scheduler');
    this.#id = id;
    // It was stopped before it had an id.
    if (this.isOver) {
      api.cancelReplay(id).catch(() => {});
      return;
    }
    this.#close = followReplay(events, {
      begin: () => {
        this.recording.events = [];
        this.#before = 0;
      },
      event: (event) => {
        if (this.#isRepeatedPoll(event)) return;
        const asked = this.#polls.get(event.actor) ?? [];
        this.#polls.delete(event.actor);
        for (const each of [...asked, event]) addEvent(this.recording, each, this.#before);
        this.#before = event.t_us;
        // Polling is no news: it sends and is refused again and again.
        if (isActor(event) && !POLLING.includes(event.event)) this.#lastNewsAt = performance.now();
        changed();
      },
      over: (name, ending) => {
        this.recording.live = false;
        this.ending = name === 'done' ? ending : null;
        this.error = name === 'done' ? '' : ending.detail ?? t('vanished');
        changed();
      },
    });
  }

  /** Its presses are repeated from the list of all schedules. */
  isRepeated = false;
  /** After how many presses it had gone wrong. @type {number | null} */
  wrongAfter = null;

  get isOver() { return !this.recording.live; }

  /** What the service says while others come first. @returns {import('../lesson/course.js').Title | null} */
  get placeInQueue() {
    const last = this.recording.events.at(-1);
    return last?.actor === 'step' && !this.schedule.length && !this.isOver ? JSON.parse(last.value ?? 'null') : null;
  }

  /** @param {string} actor */
  async resume(actor) {
    this.schedule.push(actor);
    this.#lastNewsAt = performance.now();
    await api.resumeActor(this.#id, actor);
  }

  /** @param {string} actor @returns {ActorStage} */
  stageOf(actor) {
    const its = this.recording.events.filter((e) => e.actor === actor);
    if (its.some((e) => END_EVENTS.includes(e.event))) return 'end';
    const pressed = this.schedule.filter((name) => name === actor).length;
    if (!pressed) return 'start';
    // A transaction also pauses before its first statement.
    const stood = its.filter((e, i) => e.event === 'stands' && its.slice(0, i).some((before) => before.event !== 'start')).length;
    return stood >= pressed ? 'stands' : 'way';
  }

  /** The point where it pauses. @param {string} actor */
  pointOf(actor) {
    return this.recording.events.findLast((e) => e.actor === actor && e.event === 'stands')?.value ?? '';
  }

  /** @param {string} actor */
  isDead(actor) {
    return this.recording.events.some((e) => e.actor === actor && e.event === 'failed' && e.value === 'dead');
  }

  /** The owner of the lock, from its server's last answer. */
  holder() {
    const last = this.recording.events.findLast((e) => e.actor === 'lock' && ['held', 'free', 'expired'].includes(e.event));
    return last?.event === 'held' ? { owner: last.owner ?? '', leased: (last.pttl ?? -1) >= 0 } : null;
  }

  /** The actors that could go on. @param {ScheduleOptions} scheduled @returns {string[]} */
  runnable(scheduled) {
    if (this.isOver || this.isStuck || !this.#id || this.isFailingOver || this.#isUnderWay(scheduled)) return [];
    const { actors, clock, dies, fails_over } = scheduled;
    // A refused actor asks in vain while another has the lock.
    const asks = (/** @type {string} */ actor) => this.pointOf(actor) !== 'refused' || !this.holder();
    const can = actors.filter((actor) => this.stageOf(actor) === 'start' || (this.stageOf(actor) === 'stands' && asks(actor)));
    return [...can, ...(clock && this.holder()?.leased ? [CLOCK] : []), ...(dies && this.stageOf(dies) === 'stands' ? [DEATH] : []),
      ...(fails_over && !this.schedule.includes(FAILOVER) ? [FAILOVER] : [])];
  }

  /** Is an actor on the way to a pause or to its death? Another that went on now could come first. @param {ScheduleOptions} scheduled */
  #isUnderWay({ actors, dies }) {
    const since = performance.now() - this.#lastNewsAt;
    if (dies && this.schedule.at(-1) === DEATH && !this.isDead(dies) && since < LOST_MS) return true;
    return actors.some((actor) => this.stageOf(actor) === 'way' && since < (this.#mayWait(actor) ? QUIET_MS : LOST_MS));
  }

  /** Waits until every actor is paused, has ended, or waits for another, and until the lock was read. @param {ScheduleOptions} scheduled */
  async settle(scheduled) {
    const { actors, clock, goal } = scheduled;
    while (!this.isOver && this.isFailingOver) await tick();
    while (!this.isOver && this.#isUnderWay(scheduled)) await tick();
    for (const since = performance.now(); (clock || goal === 'overtaken') && performance.now() - since < LOOK_MS;) await tick();
    // The replay may end with the last actor.
    const ended = () => actors.every((actor) => ['start', 'end'].includes(this.stageOf(actor)));
    while (!this.isOver && ended() && performance.now() - this.#lastNewsAt < QUIET_MS) await tick();
    if (goal === 'stuck') await this.#detectStuck(scheduled);
    // It would stay there until its waits time out.
    if (this.isStuck) this.stop();
  }

  /** Finds out whether nobody can go on: an endless wait is for a lock whose server names its owner. @param {ScheduleOptions} scheduled */
  async #detectStuck(scheduled) {
    const nobody = () => !this.isOver && !this.runnable(scheduled).length && scheduled.actors.some((actor) => this.stageOf(actor) === 'way');
    while (nobody() && (this.#isUnderWay(scheduled) || !this.holder())) await tick();
    this.isStuck ||= nobody();
  }

  /** Whom MySQL has ended, and by which error. */
  get victim() {
    const ended = this.recording.events.find((e) => e.event === 'conflict');
    return { actor: ended?.actor ?? '', error: ended?.value ?? '' };
  }

  get isPromoted() { return this.recording.events.some((e) => e.event === 'promoted'); }

  get isFailingOver() { return this.schedule.includes(FAILOVER) && !this.isPromoted; }

  /** The actors in the order in which they got in. */
  get entryOrder() { return [...new Set(this.recording.events.flatMap((e) => (e.event === 'read' ? [e.actor] : [])))]; }

  /** Has it gone wrong as it can without the cure? @param {ScheduleOptions} scheduled */
  hasReachedGoal(scheduled) { return this.guiltyPair(scheduled) != null; }

  /**
   * What went wrong, from the moment when it is certain, whatever comes after it: the two moments that did it, or none that could be named.
   * @param {ScheduleOptions} scheduled @returns {Moment[] | null} null: nothing has
   */
  guiltyPair({ goal, actors }) {
    if (goal === 'stuck') return this.isStuck ? this.#stuckPair() : null;
    if (goal === 'deadlock') return this.#deadlockPair(actors);
    if (goal === 'overtaken') return this.#overtakingPair();
    // The numbers judge once they are there.
    if (this.ending && (this.ending.sold ?? 0) <= (this.ending.gone ?? 0)) return null;
    const pair = losingPair(modelOf(this.recording.events));
    return pair.length || this.ending ? pair : null;
  }

  /** Who has the lock, and the first who was kept out. @returns {Moment[]} */
  #stuckPair() {
    const { events } = this.recording;
    const owner = this.holder()?.owner;
    const acquired = events.findLast((e) => e.actor === owner && ['taken', 'locked'].includes(e.event));
    const shutOut = events.find((e) => isActor(e) && ['waits', 'refused'].includes(e.event) && e.t_us > (acquired?.t_us ?? 0));
    return [acquired, shutOut].flatMap((e) => (e ? [{ actor: e.actor, at: e.t_us }] : []));
  }

  /** The last statement of each before MySQL ended one of them. @param {string[]} actors */
  #deadlockPair(actors) {
    const { events } = this.recording;
    const ended = events.findIndex((e) => e.event === 'conflict');
    return ended < 0 ? null : actors.flatMap((actor) => {
      const last = events.slice(0, ended).findLast((e) => e.actor === actor && e.event === 'statement');
      return last ? [{ actor, at: last.t_us }] : [];
    });
  }

  /** Who asked and was kept out, and a later one who got in before it. */
  #overtakingPair() {
    const { events } = this.recording;
    for (const [i, entry] of events.entries()) {
      if (entry.event !== 'read') continue;
      const came = this.schedule.indexOf(entry.actor);
      const earlier = events.slice(0, i);
      const waiting = earlier.find((e) => isActor(e) && ['waits', 'refused'].includes(e.event) && this.schedule.indexOf(e.actor) < came
        && !earlier.some((other) => other.actor === e.actor && other.event === 'read'));
      if (waiting) return [{ actor: waiting.actor, at: waiting.t_us }, { actor: entry.actor, at: entry.t_us }];
    }
    return null;
  }

  /** Who waits for whom: for the owner of the lock, or else for whoever else has begun and not ended. @param {ScheduleOptions} scheduled @returns {Wait[]} */
  waitsFor({ actors, goal }) {
    const { actor: victim, error } = this.victim;
    // What MySQL has just ended was a circle, or a wait for the other one.
    if (goal === 'deadlock' && victim) return actors.filter((from) => from === victim || error === DEADLOCK).flatMap((from) => actors.filter((to) => to !== from).map((to) => ({ from, to })));
    if (this.isOver && !this.isStuck) return [];
    const owner = this.holder()?.owner ?? '';
    return actors.filter((actor) => this.#isKeptOut(actor)).flatMap((from) => {
      if (actors.includes(owner)) return owner === from && !this.isStuck ? [] : [{ from, to: owner }];
      // A queue of waiters: each waits for who is inside.
      const inside = actors.filter((actor) => actor !== from && this.stageOf(actor) === 'stands' && this.pointOf(actor) !== 'refused');
      const others = inside.length ? inside : actors.filter((actor) => actor !== from && this.stageOf(actor) === 'way');
      return this.pointOf(from) === 'refused' && this.stageOf(from) === 'stands' ? [] : others.map((to) => ({ from, to }));
    });
  }

  /** Does another one's lock keep it from going on? @param {string} actor */
  #isKeptOut(actor) {
    if (this.stageOf(actor) === 'stands') return this.pointOf(actor) === 'refused';
    return this.stageOf(actor) === 'way' && (this.isStuck || this.#mayWait(actor)) && (this.isStuck || performance.now() - this.#lastNewsAt >= QUIET_MS);
  }

  /** May it be waiting for another? Else it is only slow. @param {string} actor */
  #mayWait(actor) {
    const { events } = this.recording;
    const lastPause = events.findLastIndex((e) => e.actor === actor && ['stands', 'start'].includes(e.event));
    const owner = this.holder()?.owner;
    return (owner && owner !== actor) || events.slice(lastPause).some((e) => e.actor === actor && ['waits', 'refused'].includes(e.event));
  }

  stop() {
    this.#close();
    if (!this.isOver && this.#id) api.cancelReplay(this.#id).catch(() => {});
    this.recording.live = false;
  }
}

const tick = () => new Promise((resolve) => { setTimeout(resolve, TICK_MS); });

let isShown = false;
let cured = false;
/** @type {ScheduledReplay | null} */
let shownReplay = null;
/** What an actor does alone, by half. @type {Map<string, ProgramStep[]>} */
const programs = new Map();
/** A schedule that was tried; `presses`: after how many it had gone wrong, or all. @typedef {{schedule: string[], wrong: boolean, presses: number}} TriedSchedule */
/**
 * The search of a half: the schedules tried, whether those are all, and the replay that was on show at its end.
 * @typedef {{done: boolean, list: TriedSchedule[], shown: ScheduledReplay | null}} Search
 */
/** By half. @type {Map<string, Search>} */
const searches = new Map();
/** Changes when a search or replay is no longer wanted. */
let generation = 0;
const picture = new Picture($('schedule-lanes'));
let lastDrawn = '';
let shownRace = () => /** @type {Race | null} */ (null);
/** @type {(lesson: string) => Race | null} */
let raceOf = () => null;
/** The level that was chosen: the scheduler is open there, too. */
let chosenLevel = '';

const keyOf = (/** @type {Race} */ race) => `${race.lesson} ${cured}`;
/** @param {Race} race */
const optionsOf = (race) => (cured ? race.cured_scheduled : race.scheduled);
/** @param {Race} race */
const goalOf = (race) => optionsOf(race)?.goal ?? 'oversold';

export const isOpen = () => isShown;

/** Another lesson, or the race without a schedule. */
export function closePanel() {
  isShown = false;
  generation += 1;
  shownReplay?.stop();
  shownReplay = null;
  lastDrawn = '';
  $('race').classList.remove('scheduling');
  $('schedule').hidden = true;
}

/** @param {Race} race */
export function frame(race) {
  for (const name of ['flaw', 'cure']) if (isShown) $(`race-${name}-part`).hidden = true;
  $('race-lines').hidden = isShown;
  $('race').classList.toggle('scheduling', isShown);
  $('schedule').hidden = !isShown;
  redraw(race);
}

/** Opens the panel, or closes it. */
export function toggle() {
  if (isShown) {
    closePanel();
    return;
  }
  isShown = true;
  cured = false;
  restart();
}

/** Was this lesson chosen as a level? It is then open no more than once. @param {string} lesson */
export function takeChosenLevel(lesson) {
  const isChosen = chosenLevel === lesson;
  chosenLevel = '';
  return isChosen;
}

/** @param {() => Race | null} race the race on show @param {(lesson: string) => Race | null} find */
export function listen(race, find) {
  [shownRace, raceOf] = [race, find];
  $('schedule-again').onclick = restart;
  // Nobody can press a button of a closed page.
  addEventListener('pagehide', closePanel);
  $('schedule-all').onclick = () => ($('schedule-all').dataset.going ? restart() : searchAll());
  $('schedule').onchange = (/** @type {Event} */ event) => {
    cured = /** @type {HTMLInputElement} */ (event.target).value === 'true';
    restart();
  };
}

/** Starts a new replay of this half. */
async function restart() {
  const race = shownRace();
  if (!race) return;
  generation += 1;
  const mine = generation;
  // An unfinished search says nothing about all schedules.
  for (const [name, { done }] of searches) if (!done) searches.delete(name);
  shownReplay?.stop();
  const now = new ScheduledReplay();
  shownReplay = now;
  redraw(race);
  try {
    await learnProgram(race);
    if (mine !== generation) return;
    await beginReplay(now, race);
  } catch (error) {
    now.needsToken = admin.askForToken(error, $('race-admin'), restart);
    if (!now.needsToken) now.error = errorText(/** @type {any} */ (error));
    now.recording.live = false;
  }
  redraw(race);
}

/** @param {ScheduledReplay} replay @param {Race} race */
const beginReplay = (replay, race) => retryWhileBusy(() => replay.begin(race, cured, () => redrawSoon(race)));

/** Tries again while another replay is active. @template T @param {() => Promise<T>} does @returns {Promise<T>} */
async function retryWhileBusy(does) {
  for (const since = performance.now(); ;) {
    try {
      return await does();
    } catch (error) {
      if (/** @type {any} */ (error).status !== 409 || performance.now() - since > START_TIMEOUT_MS) throw error;
      await tick();
    }
  }
}

/** Plays the half at full speed to learn what each actor sends. @param {Race} race */
async function learnProgram(race) {
  if (programs.has(keyOf(race)) || goalOf(race) === 'deadlock') return;
  const name = keyOf(race);
  /** @type {ReplayEvent[]} */
  const events = [];
  const { id, events: path } = await retryWhileBusy(() => api.startReplay(race.lesson, cured, 'fast'));
  await new Promise((resolve) => {
    const close = followReplay(path ?? `replays/${id}/events`, {
      begin: () => { events.length = 0; },
      event: (e) => events.push(e),
      over: () => { close(); resolve(null); },
    });
  });
  programs.set(name, programOf(events, /** @type {ScheduleOptions} */ (optionsOf(race)).stops));
}

/**
 * The program of the actor that nothing interrupted; where none gets through, of the one that gets farthest. Where all are refused, it ends
 * with what is refused first.
 * @param {ReplayEvent[]} events @param {string[]} points where it pauses @returns {ProgramStep[]}
 */
export function programOf(events, points) {
  const all = ['A', 'B', 'C'].map((actor) => events.filter((e) => e.actor === actor)).filter((list) => list.length);
  const refusalIn = (/** @type {ReplayEvent[]} */ list) => list.findIndex((e) => ['conflict', 'refused'].includes(e.event));
  const straightOnes = all.filter((list) => refusalIn(list) < 0);
  const through = straightOnes.filter((list) => list.some((e) => e.event === 'sold')).sort((a, b) => a.length - b.length);
  const farthest = (straightOnes.length ? straightOnes : all.map((list) => list.slice(0, refusalIn(list)))).sort((a, b) => b.length - a.length);
  const [straight] = through.length ? through : farthest;
  /** @type {ProgramStep[]} */
  const parts = [{ point: '', sent: [] }];
  for (const e of straight ?? []) {
    const last = /** @type {ProgramStep} */ (parts.at(-1));
    if (e.event === 'sent' && !e.value?.startsWith('SCRIPT LOAD')) last.sent.push((e.value ?? '').split('\n')[0]);
    else if (points.includes(e.event)) {
      last.point = e.event;
      parts.push({ point: '', sent: [] });
    }
  }
  if (!straightOnes.length) parts[parts.length - 1].point = 'asks';
  return parts;
}

/** What it will send next, in words and as commands. @param {Race} race @param {ScheduledReplay} replay @param {string} actor */
function nextStepOf(race, replay, actor) {
  if (goalOf(race) === 'deadlock') return { what: t('scheduleStatement', replay.stageOf(actor) === 'start'), sent: replay.pointOf(actor) };
  const parts = programs.get(keyOf(race)) ?? [];
  const stage = replay.stageOf(actor);
  const at = stage === 'start' ? -1 : parts.findIndex((part) => part.point === replay.pointOf(actor));
  // After a conflict or refusal it begins again.
  const part = ['conflict', 'refused'].includes(replay.pointOf(actor)) ? parts[0] : parts[at + 1];
  return { what: t('scheduleNext', part?.point ?? '', stage === 'start'), sent: sentCommands.withoutIds((part?.sent ?? []).join('; ')) };
}

// ---- all schedules -----------------------------------------------------------------------------------------------------

/**
 * Tries each schedule of A and B, of all three where one may overtake, of clock and death, and of a fail-over; the latter takes seconds, so
 * A comes first there. The last decision is varied first.
 */
async function searchAll() {
  const race = shownRace();
  const options = race && optionsOf(race);
  if (!race || !options) return;
  generation += 1;
  const mine = generation;
  const name = keyOf(race);
  const players = { ...options, actors: options.actors.slice(0, options.goal === 'overtaken' ? 3 : 2) };
  // An instance plays one pair of transactions at a time, and there is one main Redis.
  const atOnce = options.goal === 'deadlock' || options.fails_over ? 1 : PARALLEL_REPLAYS;
  /** @type {Search} */
  const seen = { done: false, list: [], shown: null };
  searches.set(name, seen);
  /** The prefixes of schedules that are still to be tried. @type {string[][]} */
  const left = [[]];
  let busy = 0;
  shownReplay?.stop();
  const worker = async () => {
    while (mine === generation && (left.length || busy)) {
      const prefix = left.pop();
      if (!prefix) {
        await tick();
        continue;
      }
      busy += 1;
      const replay = new ScheduledReplay();
      shownReplay = replay;
      try {
        await playSchedule(replay, race, players, prefix, left, () => mine === generation);
      } finally {
        busy -= 1;
        if (!replay.isOver) replay.stop();
      }
      if (mine !== generation) return;
      const wrong = replay.hasReachedGoal(options);
      const presses = replay.wrongAfter ?? replay.schedule.length;
      seen.list.push({ schedule: replay.schedule, wrong, presses });
      redraw(race);
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, worker));
    seen.done = mine === generation;
    seen.shown = shownReplay;
  } catch (error) {
    if (shownReplay) shownReplay.error = errorText(/** @type {any} */ (error));
  }
  if (mine !== generation) return;
  generation += 1;
  redraw(race);
  announce($('schedule-say').textContent, true);
}

/** Plays one schedule: its prefix, then always the first actor that can go on. The alternatives are added to `left`. @param {ScheduledReplay} replay @param {Race} race @param {ScheduleOptions} players @param {string[]} prefix @param {string[][]} left @param {() => boolean} goesOn */
async function playSchedule(replay, race, players, prefix, left, goesOn) {
  await beginReplay(replay, race);
  while (!replay.isOver && !replay.isStuck && goesOn()) {
    // Let the clock run once; where it ends a dead actor's lease, only after the death.
    const mayEnd = !replay.schedule.includes(CLOCK) && (!players.dies || replay.schedule.includes(DEATH));
    const able = replay.runnable(players).filter((actor) => (actor !== CLOCK || mayEnd) && (actor !== 'B' || !players.fails_over || replay.schedule.includes('A')));
    if (!able.length) {
      await tick();
      continue;
    }
    const n = replay.schedule.length;
    const chosen = prefix[n] ?? able[0];
    if (n >= prefix.length) for (const other of able.filter((actor) => actor !== chosen)) left.push([...replay.schedule, other]);
    await replay.resume(chosen);
    await replay.settle(players);
    if (replay.hasReachedGoal(players)) replay.wrongAfter ??= replay.schedule.length;
  }
  if (replay.error) throw new Error(replay.error);
}

// ---- drawing -----------------------------------------------------------------------------------------------------------

let isDrawPlanned = false;

/** Several events at once are drawn once. @param {Race} race */
function redrawSoon(race) {
  if (isDrawPlanned) return;
  isDrawPlanned = true;
  requestAnimationFrame(() => {
    isDrawPlanned = false;
    if (shownRace() === race) redraw(race);
  });
}

/** @param {Race} race */
export function redraw(race) {
  if (!isShown || !shownReplay) return;
  const options = optionsOf(race);
  const search = searches.get(keyOf(race));
  if (!options) return;
  const shown = shownReplay;
  const isSearching = search != null && !search.done && !shown.error;
  const able = isSearching ? [] : shown.runnable(options);
  const now = JSON.stringify([currentLanguage(), innerWidth, document.documentElement.hasAttribute('data-projector'), keyOf(race), shown.recording.events.length, shown.schedule, shown.isOver, shown.isStuck, shown.error, able, search?.list.length, search?.done, generation, programs.has(keyOf(race))]);
  if (now === lastDrawn) return;
  lastDrawn = now;
  const guilty = !isSearching && search?.shown !== shown ? shown.guiltyPair(options) : null;
  const hasGoneWrong = guilty != null;
  if (hasGoneWrong) shown.wrongAfter ??= shown.schedule.length;
  for (const radio of document.querySelectorAll('[name="schedule-cured"]')) if (radio instanceof HTMLInputElement) radio.checked = (radio.value === 'true') === cured;
  levels.draw(raceOf, race, (lesson) => { chosenLevel = lesson; });
  setText($('schedule-goal'), t(cured ? 'scheduleGoalCure' : 'scheduleGoalFlaw', options.goal));
  setText($('schedule-presses'), t('schedulePresses', shown.schedule.length, parOf(race)));
  setText($('schedule-all'), t(isSearching ? 'cancel' : 'scheduleAll'));
  $('schedule-all').dataset.going = isSearching ? '1' : '';
  replaceKeepingFocus($('schedule-buttons'), [...options.actors, ...(options.clock ? [CLOCK] : []), ...(options.dies ? [DEATH] : []), ...(options.fails_over ? [FAILOVER] : [])].map((actor) => actorButton(race, shown, actor, able.includes(actor))));
  setText($('schedule-say'), statusText(race, shown, search, isSearching));
  $('schedule-say').classList.toggle('red', hasGoneWrong);
  const waits = isSearching ? [] : shown.waitsFor(options);
  $('schedule-waits').replaceChildren(waitsPicture(options.actors, waits, shown));
  $('schedule-waits').setAttribute('aria-label', waits.map(({ from, to }) => t('scheduleWaitsFor', from, to)).join(t('comma')) || t('scheduleNobodyWaits'));
  const model = modelOf(shown.recording.events, 0, 1, { live: shown.recording.live, actors: options.actors });
  for (const { actor, ticks } of model.lanes) for (const tick of ticks) tick.red ||= guilty?.some((moment) => moment.actor === actor && moment.at === tick.at) ?? false;
  picture.draw(model, model.end, { live: false, moves: true, scaled: false, span: spanOf(Math.max(model.end, 4e6), false), ...(document.documentElement.hasAttribute('data-projector') ? PROJECTED : {}) });
  legend.draw($('schedule-legend'), shown.recording.events.some(isActor) ? [$('schedule-lanes')] : []);
  sentCommands.draw($('schedule-lines'), shown.recording.events, model.end, guilty ?? []);
  drawTried(race, search);
}

/** The fewest presses that make it go wrong: known for the flaw; for the cure, once all schedules were tried. @param {Race} race */
function parOf(race) {
  const search = searches.get(keyOf(race));
  const found = search?.done ? search.list.flatMap(({ wrong, presses }) => (wrong ? [presses] : [])) : [];
  return Math.min((!cured && fewestPresses(race)) || Infinity, ...found);
}

/** How many went wrong. @param {Search} search */
const wrongOf = ({ list }) => list.filter(({ wrong }) => wrong).length;

/** All schedules that were tried, those that went wrong first; each can be replayed. @param {Race} race @param {Search | undefined} search */
function drawTried(race, search) {
  const options = /** @type {ScheduleOptions} */ (optionsOf(race));
  const list = search?.done ? [...search.list].sort((a, b) => Number(b.wrong) - Number(a.wrong) || a.presses - b.presses) : [];
  $('schedule-tried').hidden = !list.length;
  $('schedule-tried').replaceChildren(...list.map((one) => {
    const button = el('button', { type: 'button', class: one.wrong ? 'red' : '' }, ...one.schedule.flatMap((actor) => [signOf(actor), ' ']).slice(0, -1), `${t('colon')}${t('scheduleTriedOne', one.wrong, one.presses, options.goal)}`);
    button.addEventListener('click', () => replaySchedule(one.schedule));
    return el('li', {}, button);
  }));
}

/** Plays a schedule again, press by press. @param {string[]} schedule */
async function replaySchedule(schedule) {
  const race = shownRace();
  const options = race && optionsOf(race);
  if (!race || !options) return;
  await restart();
  const [mine, replay] = [generation, shownReplay];
  if (replay) replay.isRepeated = true;
  for (const actor of schedule) {
    while (replay && mine === generation && !replay.isOver && !replay.runnable(options).includes(actor)) await tick();
    if (!replay || mine !== generation || replay.isOver) return;
    await replay.resume(actor).catch((error) => { replay.error = errorText(error); });
    await replay.settle(options);
    redraw(race);
  }
}

/** @param {Race} race @param {ScheduledReplay} replay @param {string} actor @param {boolean} can */
function actorButton(race, replay, actor, can) {
  const { words, sent } = labelOf(race, replay, actor);
  const all = (programs.get(keyOf(race)) ?? []).flatMap((part) => part.sent).join('\n');
  const element = el('button', { type: 'button', 'data-key': actor, 'data-actor': actor, 'aria-disabled': String(!can) },
    el('b', {}, signOf(actor)), el('span', {}, words), can && sent ? el('code', {}, ...sentCommands.withPaleNoise(sent, all)) : '');
  element.addEventListener('click', async () => {
    if (element.getAttribute('aria-disabled') === 'true') return;
    const pressed = replay.resume(actor).catch((error) => { replay.error = errorText(error); });
    // Draw at once: an actor on its way must not be pressed again.
    redraw(race);
    await pressed;
    const options = /** @type {ScheduleOptions} */ (optionsOf(race));
    await replay.settle(options);
    if (!cured && !replay.isRepeated && replay.hasReachedGoal(options)) levels.recordWin(race, replay.wrongAfter ?? replay.schedule.length);
    lastDrawn = '';
    redraw(race);
  });
  return element;
}

/** A button's text. @param {Race} race @param {ScheduledReplay} replay @param {string} actor */
function labelOf(race, replay, actor) {
  const holder = replay.holder();
  if (actor === CLOCK) return { words: t('scheduleClock', holder?.leased ? holder.owner : ''), sent: '' };
  if (actor === DEATH) return { words: t('scheduleDeath', optionsOf(race)?.dies ?? ''), sent: '' };
  if (actor === FAILOVER) return { words: t('scheduleFailover', replay.isPromoted ? 'done' : replay.isFailingOver ? 'way' : ''), sent: '' };
  const stage = replay.stageOf(actor);
  if (stage === 'end' && replay.victim.error === DEADLOCK && replay.victim.actor === actor) return { words: t('tick', { event: 'failed', value: 'rolled-back' }), sent: '' };
  if (stage === 'end') return { words: t(replay.isDead(actor) ? 'scheduleDead' : 'scheduleEnd'), sent: '' };
  if (stage === 'way') return { words: t('scheduleWaits', holder && holder.owner !== actor ? holder.owner : ''), sent: '' };
  const { what, sent } = nextStepOf(race, replay, actor);
  return { words: what, sent };
}

/** @param {Race} race @param {ScheduledReplay} replay @param {Search | undefined} search @param {boolean} isSearching */
function statusText(race, replay, search, isSearching) {
  const options = /** @type {ScheduleOptions} */ (optionsOf(race));
  if (replay.needsToken) return t('tokenWanted');
  if (replay.error) return t('failed', replay.error);
  const waits = replay.placeInQueue;
  if (waits) return waits[currentLanguage()];
  if (isSearching && search) return t('scheduleTrying', search.list.length, wrongOf(search), options.goal);
  // The list of all schedules says more than the one that was tried last.
  if (search?.done && search.shown === replay) return t('scheduleTried', search.list.length, wrongOf(search), options.goal, wrongOf(search) ? parOf(race) : 0);
  const guilty = replay.guiltyPair(options);
  if (!replay.isStuck && !replay.ending && !guilty) return '';
  const outcome = replay.isStuck || replay.ending ? outcomeText(race, replay, options) : t('scheduleWrong', options.goal, (guilty ?? []).map(({ actor }) => actor), replay.victim);
  const presses = replay.wrongAfter ?? replay.schedule.length;
  const why = guilty && cured ? t('scheduleCureLoses', race.cured_runs, replay.schedule.includes(CLOCK)) : '';
  return `${outcome}${guilty ? t('scheduleWon', presses, parOf(race)) : t('scheduleLost', options.goal)}${why}`;
}

/** The outcome of this schedule. @param {Race} race @param {ScheduledReplay} replay @param {ScheduleOptions} who */
function outcomeText(race, replay, { goal }) {
  if (replay.isStuck) return t('scheduleStuck', replay.holder()?.owner ?? '');
  if (goal === 'overtaken') return t('scheduleGotIn', replay.entryOrder.join(' '));
  if (goal !== 'deadlock') return t('replaySold', replay.ending);
  const known = [race.ends, race.cured_ends].find(({ notes }) => notes === replay.ending?.notes);
  return `${known?.said[currentLanguage()] ?? replay.ending?.notes ?? ''}${t('stop')}${t('space')}`;
}
