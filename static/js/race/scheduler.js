/**
 * Whoever watches decides the order: A, B and C each have a button. The real requests stand still wherever another could come between,
 * until it is pressed. Then all orders are tried, one after the other: what goes wrong without the cure does so in none with it.
 *
 * What each would do next is known from a race that is played at once, before; of a transaction the service says it.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { announce } from '../shared/screen-reader.js';
import { $, el, put, refill } from '../shared/dom.js';
import { current, reason, t } from '../shared/language.js';
import * as lines from './sent-commands.js';
import { follow } from './replay-stream.js';
import { isActor } from '../timeline/events.js';
import { spanOf } from '../timeline/layout.js';
import { modelOf } from '../timeline/model.js';
import { Picture } from '../timeline/picture.js';
import { add, empty } from '../timeline/player.js';

/** @typedef {import('./race.js').Race} Race */
/** @typedef {import('./race.js').Scheduled} Scheduled */
/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('../timeline/events.js').Ending} Ending */
/** Where one who plays is. @typedef {'start' | 'way' | 'stands' | 'end'} Stage */
/** What is sent before it stands still at `point`, or comes to its end. @typedef {{point: string, sent: string[]}} Part */

const ENDS = ['sold', 'done', 'failed', 'refused-by-row'];
/** Nothing new for so long: who is on its way waits for another. */
const QUIET_MS = 300;
/** Nothing new for so long from one whom nothing keeps: it is lost. */
const LONG_MS = 5000;
const TICK_MS = 20;
/** The service looks at the lock more often than so. */
const LOOK_MS = 80;
/** So many orders are tried at the same time. */
const AT_ONCE = 3;
/** The clock is a player, too, and so are death and the Sentinel that promotes a replica. */
const [CLOCK, DEATH, FAILOVER] = ['clock', 'death', 'failover'];
/** What is drawn on the buttons of those who are no letter. */
const SIGNS = { [CLOCK]: '⏱', [DEATH]: '☠', [FAILOVER]: '⇄' };
/** The one before may be ending still, and mending what it has broken. */
const BUSY_MS = 40_000;

/** One that is played in an order of one's own. */
class Play {
  recording = { ...empty(), stepped: true };
  /** @type {Ending | null} */
  ending = null;
  failed = '';
  /** @type {string[]} */
  presses = [];
  /** Nobody can go on, and the clock cannot help. */
  stuck = false;
  heard = performance.now();
  #id = '';
  #before = 0;
  #close = () => {};

  /** @param {Race} race @param {boolean} cured @param {() => void} changed */
  async begin(race, cured, changed) {
    const { id, events } = await api.startReplay(race.lesson, cured, 'scheduler');
    this.#id = id;
    this.#close = follow(events, {
      begin: () => {
        this.recording.events = [];
        this.#before = 0;
      },
      event: (event) => {
        add(this.recording, event, this.#before);
        this.#before = event.t_us;
        // Who polls sends again and again, and is refused; with it the lock may come and go on some nodes.
        if (isActor(event) && !['sent', 'refused'].includes(event.event)) this.heard = performance.now();
        changed();
      },
      over: (name, ending) => {
        this.recording.live = false;
        this.ending = name === 'done' ? ending : null;
        this.failed = name === 'done' ? '' : ending.detail ?? t('vanished');
        changed();
      },
    });
  }

  get isOver() { return !this.recording.live; }

  /** @param {string} actor */
  async press(actor) {
    this.presses.push(actor);
    this.heard = performance.now();
    await api.nextOf(this.#id, actor);
  }

  /** Where this one is. @param {string} actor @returns {Stage} */
  stage(actor) {
    const its = this.recording.events.filter((e) => e.actor === actor);
    if (its.some((e) => ENDS.includes(e.event))) return 'end';
    const pressed = this.presses.filter((one) => one === actor).length;
    if (!pressed) return 'start';
    // A transaction stands before its first statement, too.
    const stood = its.filter((e, i) => e.event === 'stands' && its.slice(0, i).some((before) => before.event !== 'start')).length;
    return stood >= pressed ? 'stands' : 'way';
  }

  /** At which point it stands. @param {string} actor */
  at(actor) {
    return this.recording.events.findLast((e) => e.actor === actor && e.event === 'stands')?.value ?? '';
  }

  /** @param {string} actor */
  isDead(actor) {
    return this.recording.events.some((e) => e.actor === actor && e.event === 'failed' && e.value === 'dead');
  }

  /** Who has the lock, by what its server said last. */
  holder() {
    const last = this.recording.events.findLast((e) => e.actor === 'lock' && ['held', 'free', 'expired'].includes(e.event));
    return last?.event === 'held' ? { owner: last.owner ?? '', leased: (last.pttl ?? -1) >= 0 } : null;
  }

  /** Who could be let go on. @param {Scheduled} scheduled @returns {string[]} */
  able(scheduled) {
    if (this.isOver || this.stuck || !this.#id || this.failsOver || this.#isUnderWay(scheduled)) return [];
    const { actors, clock, dies, fails_over } = scheduled;
    // Who was refused asks in vain while another has the lock.
    const asks = (/** @type {string} */ actor) => this.at(actor) !== 'refused' || !this.holder();
    const can = actors.filter((actor) => this.stage(actor) === 'start' || (this.stage(actor) === 'stands' && asks(actor)));
    return [...can, ...(clock && this.holder()?.leased ? [CLOCK] : []), ...(dies && this.stage(dies) === 'stands' ? [DEATH] : []),
      ...(fails_over && !this.presses.includes(FAILOVER) ? [FAILOVER] : [])];
  }

  /** Whether anybody is on the way to where it stands, or to its death: who goes on meanwhile may come first. @param {Scheduled} scheduled */
  #isUnderWay({ actors, dies }) {
    const since = performance.now() - this.heard;
    if (dies && this.presses.at(-1) === DEATH && !this.isDead(dies) && since < LONG_MS) return true;
    return actors.some((actor) => this.stage(actor) === 'way' && since < (this.#mayWait(actor) ? QUIET_MS : LONG_MS));
  }

  /** Waits until all who are on their way stand, have ended, or wait for another; and, where it says who can go on, until the lock was looked at. @param {Scheduled} scheduled */
  async settled(scheduled) {
    const { actors, clock, goal } = scheduled;
    while (!this.isOver && this.failsOver) await tick();
    while (!this.isOver && this.#isUnderWay(scheduled)) await tick();
    for (const since = performance.now(); (clock || goal === 'overtaken') && performance.now() - since < LOOK_MS;) await tick();
    // Who has ended may be the last one.
    const ended = () => actors.every((actor) => ['start', 'end'].includes(this.stage(actor)));
    while (!this.isOver && ended() && performance.now() - this.heard < QUIET_MS) await tick();
    if (goal === 'stuck') await this.#gotStuck(scheduled);
    // It would stand there until its waits are over.
    if (this.stuck) this.end();
  }

  /** Finds out whether nobody can go on. Who waits for ever waits for a lock, and its server says whose it is. @param {Scheduled} scheduled */
  async #gotStuck(scheduled) {
    const nobody = () => !this.isOver && !this.able(scheduled).length && scheduled.actors.some((actor) => this.stage(actor) === 'way');
    while (nobody() && (this.#isUnderWay(scheduled) || !this.holder())) await tick();
    this.stuck ||= nobody();
  }

  get isPromoted() { return this.recording.events.some((e) => e.event === 'promoted'); }

  get failsOver() { return this.presses.includes(FAILOVER) && !this.isPromoted; }

  /** Who got in, one after the other. */
  get gotIn() { return [...new Set(this.recording.events.flatMap((e) => (e.event === 'read' ? [e.actor] : [])))]; }

  /** Whether what goes wrong without the cure has. @param {Scheduled} scheduled */
  hasReached({ goal }) {
    if (goal === 'stuck') return this.stuck;
    if (!this.ending) return false;
    if (goal === 'oversold') return (this.ending.sold ?? 0) > (this.ending.gone ?? 0);
    if (goal === 'deadlock') return this.recording.events.some((e) => e.event === 'conflict');
    const came = [...new Set(this.presses)].filter((actor) => this.gotIn.includes(actor));
    return came.join() !== this.gotIn.join();
  }

  /** Is another in its way, by what was told? Else it is only slow. @param {string} actor */
  #mayWait(actor) {
    const { events } = this.recording;
    const told = events.findLastIndex((e) => e.actor === actor && ['stands', 'start'].includes(e.event));
    const owner = this.holder()?.owner;
    return (owner && owner !== actor) || events.slice(told).some((e) => e.actor === actor && ['waits', 'refused'].includes(e.event));
  }

  end() {
    this.#close();
    if (!this.isOver && this.#id) api.cancelReplay(this.#id).catch(() => {});
    this.recording.live = false;
  }
}

const tick = () => new Promise((resolve) => { setTimeout(resolve, TICK_MS); });

let open = false;
let cured = false;
/** @type {Play | null} */
let play = null;
/** What each half does, one alone. @type {Map<string, Part[]>} */
const programs = new Map();
/** All orders of a half: how many were tried, in how many it went wrong, whether all were. @type {Map<string, {tried: number, wrong: number, done: boolean}>} */
const tries = new Map();
/** All orders are being tried; it ends where this is another. */
let trying = 0;
/** The fewest presses until it went wrong, by half. @type {Map<string, number>} */
const best = new Map();
const picture = new Picture($('order-lanes'));
let drawn = '';
let its = () => /** @type {Race | null} */ (null);
let changed = () => {};

const key = (/** @type {Race} */ race) => `${race.lesson} ${cured}`;
/** @param {Race} race */
const scheduled = (race) => (cured ? race.cured_scheduled : race.scheduled);
/** @param {Race} race */
const goalOf = (race) => scheduled(race)?.goal ?? 'oversold';

export const isOpen = () => open;

/** Another lesson, or the race as it is. */
export function leave() {
  open = false;
  trying += 1;
  play?.end();
  play = null;
  drawn = '';
  $('order').hidden = true;
}

/** The button that opens it. @param {Race} race @param {boolean} busy */
export function frame(race, busy) {
  $('race-order').hidden = !race.scheduled;
  $('race-order').setAttribute('aria-disabled', String(busy && !open));
  $('race-order').setAttribute('aria-expanded', String(open));
  put($('race-order'), t(open ? 'orderClose' : 'orderOpen'));
  for (const name of ['flaw', 'cure']) if (open) $(`race-${name}-part`).hidden = true;
  $('race-lines').hidden = open;
  $('order').hidden = !open;
  redraw(race);
}

/** @param {() => Race | null} race the one on show @param {() => void} draw */
export function listen(race, draw) {
  its = race;
  changed = draw;
  $('race-order').onclick = () => {
    if ($('race-order').getAttribute('aria-disabled') === 'true') return;
    if (open) leave();
    else {
      open = true;
      cured = false;
      again();
    }
    changed();
  };
  $('order-again').onclick = again;
  // Nobody would press on in a page that is closed.
  addEventListener('pagehide', leave);
  $('order-all').onclick = () => ($('order-all').dataset.going ? again() : tryAll());
  $('order').addEventListener('change', (/** @type {Event} */ event) => {
    cured = /** @type {HTMLInputElement} */ (event.target).value === 'true';
    again();
  });
}

/** A new one of this half, from its beginning. */
async function again() {
  const race = its();
  if (!race) return;
  trying += 1;
  const mine = trying;
  // What was tried so far is not all.
  for (const [name, { done }] of tries) if (!done) tries.delete(name);
  play?.end();
  const now = new Play();
  play = now;
  redraw(race);
  try {
    await learn(race);
    if (mine !== trying) return;
    await begin(now, race);
  } catch (error) {
    now.failed = admin.isWanted(error, $('race-admin'), again) ? t('tokenWanted') : reason(/** @type {any} */ (error));
    now.recording.live = false;
  }
  redraw(race);
}

/** @param {Play} one @param {Race} race */
const begin = (one, race) => onceFree(() => one.begin(race, cured, () => (its() === race ? redraw(race) : undefined)));

/** Does it once nothing else is played. @template T @param {() => Promise<T>} does @returns {Promise<T>} */
async function onceFree(does) {
  for (const since = performance.now(); ;) {
    try {
      return await does();
    } catch (error) {
      if (/** @type {any} */ (error).status !== 409 || performance.now() - since > BUSY_MS) throw error;
      await tick();
    }
  }
}

/** Plays the half once, at once, to learn what each does next. @param {Race} race */
async function learn(race) {
  if (programs.has(key(race)) || goalOf(race) === 'deadlock') return;
  const name = key(race);
  /** @type {ReplayEvent[]} */
  const events = [];
  const { id, events: path } = await onceFree(() => api.startReplay(race.lesson, cured, 'fast'));
  await new Promise((resolve) => {
    const close = follow(path ?? `replays/${id}/events`, {
      begin: () => { events.length = 0; },
      event: (e) => events.push(e),
      over: () => { close(); resolve(null); },
    });
  });
  programs.set(name, programOf(events, /** @type {Scheduled} */ (scheduled(race)).stops));
}

/** Of who had least to do: nobody came in its way. @param {ReplayEvent[]} events @param {string[]} points where it stands still @returns {Part[]} */
function programOf(events, points) {
  const of = (/** @type {string} */ actor) => events.filter((e) => e.actor === actor);
  const [straight] = ['A', 'B', 'C'].map(of).filter((list) => list.some((e) => e.event === 'sold') && !list.some((e) => ['conflict', 'refused'].includes(e.event)))
    .toSorted((a, b) => a.length - b.length);
  /** @type {Part[]} */
  const parts = [{ point: '', sent: [] }];
  for (const e of straight ?? []) {
    const last = /** @type {Part} */ (parts.at(-1));
    if (e.event === 'sent') last.sent.push(e.value ?? '');
    else if (points.includes(e.event)) {
      last.point = e.event;
      parts.push({ point: '', sent: [] });
    }
  }
  return parts;
}

/** What it would send next, in words and as it is sent. @param {Race} race @param {Play} one @param {string} actor */
function nextOf(race, one, actor) {
  if (goalOf(race) === 'deadlock') return { what: '', sent: one.at(actor) };
  const parts = programs.get(key(race)) ?? [];
  const stage = one.stage(actor);
  const at = stage === 'start' ? -1 : parts.findIndex((part) => part.point === one.at(actor));
  // Who was beaten or refused begins again.
  const part = ['conflict', 'refused'].includes(one.at(actor)) ? parts[0] : parts[at + 1];
  return { what: t('orderNext', part?.point ?? '', stage === 'start'), sent: lines.plain((part?.sent ?? []).join('; ')) };
}

// ---- all orders --------------------------------------------------------------------------------------------------------

/** Tries each order of A and B, of all three where one may overtake, of clock and death, and of a fail-over, which takes seconds: there A is the one
 * who comes first. What was chosen first is changed last. */
async function tryAll() {
  const race = its();
  const who = race && scheduled(race);
  if (!race || !who) return;
  trying += 1;
  const mine = trying;
  const name = key(race);
  const players = { ...who, actors: who.actors.slice(0, who.goal === 'overtaken' ? 3 : 2) };
  // An instance plays one pair of transactions at a time, and there is one main Redis.
  const atOnce = who.goal === 'deadlock' || who.fails_over ? 1 : AT_ONCE;
  const seen = { tried: 0, wrong: 0, done: false };
  tries.set(name, seen);
  /** What is still to be tried: how each begins. @type {string[][]} */
  const left = [[]];
  let busy = 0;
  play?.end();
  const worker = async () => {
    while (mine === trying && (left.length || busy)) {
      const prefix = left.pop();
      if (!prefix) {
        await tick();
        continue;
      }
      busy += 1;
      const one = new Play();
      play = one;
      try {
        await playOut(one, race, players, prefix, left, () => mine === trying);
      } finally {
        busy -= 1;
        if (!one.isOver) one.end();
      }
      if (mine !== trying) return;
      seen.tried += 1;
      if (one.hasReached(who)) seen.wrong += 1;
      redraw(race);
    }
  };
  try {
    await Promise.all(Array.from({ length: atOnce }, worker));
    seen.done = mine === trying;
  } catch (error) {
    if (play) play.failed = reason(/** @type {any} */ (error));
  }
  if (mine !== trying) return;
  trying += 1;
  redraw(race);
  announce($('order-say').textContent, true);
}

/**
 * Plays one order: as it begins, then always the first who can go on; what else could have been is still to be tried.
 * @param {Play} one @param {Race} race @param {Scheduled} players @param {string[]} prefix @param {string[][]} left @param {() => boolean} goesOn
 */
async function playOut(one, race, players, prefix, left, goesOn) {
  await begin(one, race);
  while (!one.isOver && !one.stuck && goesOn()) {
    // Once is enough; and where it ends the lease of who is dead, after the death.
    const mayEnd = !one.presses.includes(CLOCK) && (!players.dies || one.presses.includes(DEATH));
    const able = one.able(players).filter((actor) => (actor !== CLOCK || mayEnd) && (actor !== 'B' || !players.fails_over || one.presses.includes('A')));
    if (!able.length) {
      await tick();
      continue;
    }
    const n = one.presses.length;
    const chosen = prefix[n] ?? able[0];
    if (n >= prefix.length) for (const other of able.filter((actor) => actor !== chosen)) left.push([...one.presses, other]);
    await one.press(chosen);
    await one.settled(players);
  }
  if (one.failed) throw new Error(one.failed);
}

// ---- drawing -----------------------------------------------------------------------------------------------------------

/** @param {Race} race */
export function redraw(race) {
  if (!open || !play) return;
  const who = scheduled(race);
  const going = tries.get(key(race));
  if (!who) return;
  const shown = play;
  const auto = going != null && !going.done && !shown.failed;
  const able = auto ? [] : shown.able(who);
  const now = JSON.stringify([current(), key(race), shown.recording.events.length, shown.presses, shown.isOver, shown.stuck, shown.failed, able, going, trying, programs.has(key(race))]);
  if (now === drawn) return;
  drawn = now;
  const wrong = !auto && shown.hasReached(who);
  if (wrong) best.set(key(race), Math.min(best.get(key(race)) ?? Infinity, shown.presses.length));
  for (const radio of document.querySelectorAll('[name="order-cured"]')) if (radio instanceof HTMLInputElement) radio.checked = (radio.value === 'true') === cured;
  put($('order-goal'), t(cured ? 'orderGoalCure' : 'orderGoalFlaw', who.goal));
  put($('order-presses'), t('orderPresses', shown.presses.length, best.get(key(race)) ?? 0, who.goal));
  put($('order-all'), t(auto ? 'cancel' : 'orderAll'));
  $('order-all').dataset.going = auto ? '1' : '';
  refill($('order-buttons'), [...who.actors, ...(who.clock ? [CLOCK] : []), ...(who.dies ? [DEATH] : []), ...(who.fails_over ? [FAILOVER] : [])].map((actor) => button(race, shown, actor, able.includes(actor))));
  put($('order-say'), said(race, shown, going, auto));
  $('order-say').classList.toggle('red', wrong);
  const model = modelOf(shown.recording.events, 0, 1, { live: shown.recording.live, actors: who.actors });
  picture.draw(model, model.end, { live: false, moves: true, scaled: false, span: spanOf(Math.max(model.end, 4e6), false) });
  lines.draw($('order-lines'), shown.recording.events, model.end);
}

/** @param {Race} race @param {Play} one @param {string} actor @param {boolean} can */
function button(race, one, actor, can) {
  const { words, sent } = wordsOf(race, one, actor);
  const made = el('button', { type: 'button', 'data-key': actor, 'data-actor': actor, 'aria-disabled': String(!can) },
    el('b', {}, SIGNS[actor] ?? actor), el('span', {}, words), can && sent ? el('code', {}, sent) : '');
  made.addEventListener('click', async () => {
    if (made.getAttribute('aria-disabled') === 'true') return;
    const pressed = one.press(actor).catch((error) => { one.failed = reason(error); });
    // At once, for who is on its way cannot be let go a second time.
    redraw(race);
    await pressed;
    await one.settled(/** @type {Scheduled} */ (scheduled(race)));
    redraw(race);
  });
  return made;
}

/** What stands on a button. @param {Race} race @param {Play} one @param {string} actor */
function wordsOf(race, one, actor) {
  const holder = one.holder();
  if (actor === CLOCK) return { words: t('orderClock', holder?.leased ? holder.owner : ''), sent: '' };
  if (actor === DEATH) return { words: t('orderDeath', scheduled(race)?.dies ?? ''), sent: '' };
  if (actor === FAILOVER) return { words: t('orderFailover', one.isPromoted ? 'done' : one.failsOver ? 'way' : ''), sent: '' };
  const stage = one.stage(actor);
  if (stage === 'end') return { words: t(one.isDead(actor) ? 'orderDead' : 'orderEnd'), sent: '' };
  if (stage === 'way') return { words: t('orderWaits', holder && holder.owner !== actor ? holder.owner : ''), sent: '' };
  const { what, sent } = nextOf(race, one, actor);
  return { words: what, sent };
}

/** @param {Race} race @param {Play} one @param {{tried: number, wrong: number, done: boolean} | undefined} going @param {boolean} auto */
function said(race, one, going, auto) {
  const who = /** @type {Scheduled} */ (scheduled(race));
  if (one.failed) return t('failed', one.failed);
  if (auto && going) return t('orderTrying', going.tried, going.wrong, who.goal);
  const all = going?.done ? t('orderTried', going.tried, going.wrong, who.goal) : '';
  if (!one.stuck && !one.ending) return all;
  return `${cameTo(race, one, who)}${one.hasReached(who) ? t('orderWon', one.presses.length) : t('orderLost', who.goal)}${t('space')}${all}`;
}

/** What this order came to. @param {Race} race @param {Play} one @param {Scheduled} who */
function cameTo(race, one, { goal }) {
  if (one.stuck) return t('orderStuck', one.holder()?.owner ?? '');
  if (goal === 'overtaken') return t('orderGotIn', one.gotIn.join(' '));
  if (goal !== 'deadlock') return t('replaySold', one.ending);
  const known = [race.ends, race.cured_ends].find(({ saw }) => saw === one.ending?.saw);
  return `${known?.said[current()] ?? one.ending?.saw ?? ''}${t('stop')}${t('space')}`;
}
