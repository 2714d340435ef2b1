/**
 * Plays a recording: forwards, slowly, step by step, or live.
 *
 * A live recording's cursor follows the time, unless somebody moves it.
 */

import { isActor, isForeignDelete } from './events.js';

/** @typedef {import('./events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('./events.js').Ending} Ending */
/**
 *
 * @typedef {object} Recording
 * @property {ReplayEvent[]} events
 * @property {boolean} live more may come
 * @property {Ending | null} ending
 * @property {boolean} stepped by hand, with pauses of people: its times are spread evenly
 * @property {boolean} [timed] at times of one's own: no ending is expected
 * @property {string} failed the reason if it failed
 */

/** The gap before an event of a stepped replay: of an actor that is drawn, of others, and the most. */
const [ACTOR_GAP_US, OTHER_GAP_US, MAX_GAP_US] = [350_000, 20_000, 900_000];

/** Events of an actor that are not drawn, or that accompany an observation. */
const NOT_DRAWN = ['taken', 'refused', 'renewed', 'sold', 'done'];

/** A moving picture is drawn at most this often: thirty times a second, which is half of the work of each frame. */
const FRAME_MS = 30;
/** The same with reduced motion. */
const REDUCED_MOTION_MS = 500;

/** What an actor does before its lock's server shows it. @type {Record<string, string[]>} */
const CAUSES = { held: ['taken', 'locked'], free: ['deleted', 'released'] };

/**
 * The moment when an actor brought about what the lock's server shows only now, if nothing was seen of that lock since.
 * @param {ReplayEvent[]} events @param {ReplayEvent} shown @returns {number | null}
 */
function causeOf(events, shown) {
  const causes = shown.actor === 'lock' ? CAUSES[shown.event] ?? [] : [];
  const since = events.slice(events.findLastIndex((e) => e.actor === 'lock' && e.key === shown.key) + 1);
  const own = since.filter((e) => isActor(e) && causes.includes(e.event));
  return (own.findLast((e) => e.actor === shown.owner) ?? own.at(-1))?.t_us ?? null;
}

/** When an event is drawn where each step has its room, however long somebody took to press. @param {ReplayEvent[]} events @param {ReplayEvent} event @param {number} passed since the event before */
function stepTime(events, event, passed) {
  const last = Math.max(0, ...events.map((e) => e.t_us));
  // The lock may be seen free just before its deleter says so: both are one moment.
  const shown = events.at(-1);
  if (isForeignDelete(event) && shown?.actor === 'lock' && shown.event === 'free') return last;
  const gap = isActor(event) && !NOT_DRAWN.includes(event.event) ? ACTOR_GAP_US : OTHER_GAP_US;
  return causeOf(events, event) ?? last + Math.max(gap, Math.min(passed, MAX_GAP_US));
}

/**
 * Adds an event at its time; in a stepped replay, after a gap. What the lock's server shows later than its cause stands at its cause.
 * @param {Recording} recording @param {ReplayEvent} event @param {number} before the time of the event before it, as it was sent
 * @returns {ReplayEvent} as it was added
 */
export function addEvent(recording, event, before) {
  const t_us = recording.stepped ? stepTime(recording.events, event, event.t_us - before) : event.t_us;
  recording.events.push({ ...event, t_us });
  return { ...event, t_us };
}

/** @returns {Recording} */
export const emptyRecording = () => ({ events: [], live: true, ending: null, failed: '', stepped: false });

export class Player {
  #changed;
  #cursor = 0;
  #isPlaying = false;
  #isFollowing = false;
  #slowdown = 1;
  #frame = 0;
  /** Events came that are not drawn yet. */
  #hasNews = false;
  #last = 0;
  /** The start of the replay by the local clock, as early as the arrivals allow. */
  #startedAt = Infinity;
  #reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
  /** @type {Recording} */
  recording = { ...emptyRecording(), live: false };

  /** @param {() => void} changed called when there is something to draw */
  constructor(changed) {
    this.#changed = changed;
  }

  get cursor() { return this.#cursor; }
  get isPlaying() { return this.#isPlaying; }
  get slowdown() { return this.#slowdown; }
  get isFollowing() { return this.#isFollowing; }

  /** The end so far, in microseconds. */
  get end() {
    const last = Math.max(0, ...this.recording.events.map((e) => e.t_us));
    return this.recording.live && this.#startedAt < Infinity ? Math.min(last + (this.recording.stepped ? MAX_GAP_US : Infinity), Math.max(last, performance.now() * 1000 - this.#startedAt)) : last;
  }

  /** Shows another recording: a live one as it goes, a finished one at its end. @param {Recording} recording */
  load(recording) {
    this.recording = recording;
    this.#isPlaying = false;
    this.#isFollowing = recording.live;
    this.#startedAt = Infinity;
    this.#cursor = this.end;
    this.#run();
  }

  /** An event was added, or the recording has ended. @param {ReplayEvent} [event] */
  update(event) {
    if (event) this.#startedAt = Math.min(this.#startedAt, performance.now() * 1000 - event.t_us);
    // Events come in bursts: the next frame draws them together.
    this.#hasNews = event != null && this.recording.live && this.#frame !== 0;
    if (this.#hasNews) return;
    if (this.#isFollowing) this.#cursor = this.end;
    this.#isFollowing &&= this.recording.live;
    this.#run();
  }

  toggle() {
    this.#isFollowing = false;
    this.#isPlaying = !this.#isPlaying;
    if (this.#isPlaying && this.#cursor >= this.end) this.#cursor = 0;
    this.#run();
  }

  /** Moves to the next moment, or the one before. @param {1 | -1} by @param {number[]} moments */
  step(by, moments) {
    this.#isPlaying = false;
    this.#isFollowing = false;
    const next = by > 0 ? moments.find((t) => t > this.#cursor) : moments.findLast((t) => t < this.#cursor);
    this.seek(next ?? (by > 0 ? this.end : 0));
  }

  /** @param {number} at */
  seek(at) {
    this.#isFollowing = this.recording.live && at >= this.end;
    this.#cursor = Math.max(0, Math.min(at, this.end));
    this.#run();
  }

  /** @param {number} times */
  setSlowdown(times) {
    this.#slowdown = times;
    this.#changed();
  }

  /** Draws now, and again while something moves. */
  #run() {
    cancelAnimationFrame(this.#frame);
    [this.#frame, this.#hasNews] = [0, false];
    this.#changed();
    if (!this.#isPlaying && !this.recording.live) return;
    this.#last = performance.now();
    this.#frame = requestAnimationFrame(() => this.#move());
  }

  #move() {
    const now = performance.now();
    const passed = now - this.#last;
    this.#frame = 0;
    if (passed >= (this.#reducedMotion.matches && !this.#hasNews ? REDUCED_MOTION_MS : FRAME_MS)) {
      this.#last = now;
      this.#hasNews = false;
      if (this.#isPlaying) this.#cursor = Math.min(this.end, this.#cursor + (passed * 1000) / this.#slowdown);
      else if (this.#isFollowing) this.#cursor = this.end;
      if (this.#cursor >= this.end && !this.recording.live) this.#isPlaying = false;
      this.#changed();
    }
    if (this.#isPlaying || this.recording.live) this.#frame = requestAnimationFrame(() => this.#move());
  }
}
