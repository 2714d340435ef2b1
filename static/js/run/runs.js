/**
 * Runs: the one under way, wherever it was started, and the last result of each lesson.
 *
 * The service is the truth (GET /runs/current); the stream only brings it sooner. So a reload, a lost connection and
 * a second window all end in the same place: ask, and join what is there.
 */

import * as api from '../shared/api.js';
import { PACES, paceBetween } from './run-figures.js';
import { tab } from '../shared/storage.js';
import { reason } from '../shared/language.js';
import { follow } from './run-stream.js';

/** @typedef {{strategy: string, target: 'one' | 'three', threads: number, loops: number, hold_ms: number, count: number}} Plan */
/**
 * How a run stands, as the service says it.
 * @typedef {{samples: number, planned: number, sold: number, sold_out: number, errors: number, unknown: number, retries?: number,
 *   elapsed_ms: number, throughput: number, pace?: number, unanswered?: number, under_way?: Record<string, number>,
 *   p50_ms: number | null, p99_ms: number | null, instances: Record<string, number>, lanes?: import('../timeline/run-model.js').Stays}} Snapshot
 */
/**
 * @typedef {{id: string | null, plan: Plan, state: 'starting' | 'running' | 'done' | 'cancelled' | 'failed', snapshot: Snapshot,
 *   shelf: number | null, row: Record<string, any> | null, paces: number[], by?: string, instance?: string, lost?: boolean, detail?: string, vanished?: boolean}} Run
 */

/** @param {{strategy: string, target: string}} plan */
const key = (plan) => `${plan.strategy} ${plan.target}`;

/** One that is in the way and not seen from here, of another instance, is waited for by asking again so soon. */
const AGAIN_MS = 300;

export class Runs {
  #changed;
  #ended;
  #close = () => {};
  /** The run under way, if any. @type {Run | null} */
  live = null;
  /** @type {Record<string, Run>} */
  #results = tab.get('results') ?? {};
  /** Those who wait for the end of a run. @type {((run: Run) => void)[]} */
  #waiting = [];

  /** @param {() => void} changed there is something new to draw @param {() => void} ended a run has come to its end */
  constructor(changed, ended) {
    this.#changed = changed;
    this.#ended = ended;
  }

  /** What to show for a lesson: the run under way if it is this lesson's, else its last result, else null. @param {string} strategy @param {string} target */
  of(strategy, target) {
    const wanted = key({ strategy, target });
    return this.live && key(this.live.plan) === wanted ? this.live : this.#results[wanted] ?? null;
  }

  /** The run under way, if it is another lesson's. @param {string} strategy @param {string} target */
  other(strategy, target) {
    return this.live && key(this.live.plan) !== key({ strategy, target }) ? this.live : null;
  }

  /** The last result, whatever is under way. @param {string} strategy @param {string} target @returns {Run | null} */
  last(strategy, target) {
    return this.#results[key({ strategy, target })] ?? null;
  }

  /** The next run that comes to its end, whosever it is. @returns {Promise<Run>} */
  ended() {
    return new Promise((resolve) => { this.#waiting.push(resolve); });
  }

  /**
   * Starts a run; where one is under way already, joins that. Throws where there is none to join.
   * @param {Plan} plan @returns {Promise<boolean>} whether it was started
   */
  async start(plan) {
    const snapshot = { samples: 0, planned: plan.threads * plan.loops, sold: 0, sold_out: 0, errors: 0, unknown: 0, elapsed_ms: 0, throughput: 0, p50_ms: null, p99_ms: null, instances: {} };
    this.live = { id: null, plan, state: 'starting', snapshot, shelf: plan.count, row: null, paces: [] };
    this.#changed();
    try {
      const { id, instance } = await api.startRun(plan);
      this.#join({ ...this.live, id, instance, state: 'running' });
      this.#changed();
      return true;
    } catch (caught) {
      const error = /** @type {any} */ (caught);
      const starting = this.live;
      this.live = null;
      if (error.status === 409) await this.look();
      // That of another instance is not seen from here.
      if (!this.live && starting) this.#keep({ ...starting, state: 'failed', detail: error.status ? reason(error) : undefined });
      this.#changed();
      if (!this.live) throw error;
      return false;
    }
  }

  /**
   * Runs this once nobody else's goes on. Throws where it is refused for another reason.
   * @param {Plan} plan @param {() => boolean} goesOn it is still wanted @returns {Promise<Record<string, any> | null>} its row; null where it came to none
   */
  async row(plan, goesOn) {
    while (goesOn()) {
      if (this.live) {
        await this.ended();
        continue;
      }
      const ended = this.ended();
      try {
        if (await this.start(plan)) {
          const run = await ended;
          return run.state === 'done' ? run.row : null;
        }
      } catch (error) {
        if (/** @type {any} */ (error).status !== 409) throw error;
        await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
      }
    }
    return null;
  }

  /** Cancels the run under way. */
  async cancel() {
    if (!this.live?.id) return;
    try {
      await api.cancelRun(this.live.id);
    } finally {
      await this.look();
    }
  }

  /** Asks the service what there is, and joins or settles accordingly. Throws where it does not answer. */
  async look() {
    if (this.live?.state === 'starting') return;
    const asked = this.live?.id;
    const now = await api.currentRun();
    const known = this.live;
    // While we asked, the stream or a click may have moved on to another run: that is newer.
    if (known?.id !== asked) return;
    if (now?.state === 'running') {
      if (known?.id !== now.id) this.#join({ ...now, paces: [] });
    } else {
      if (known && now?.id !== known.id) this.#keep({ ...known, state: 'failed', vanished: true });
      if (now) this.#keep({ detail: known?.detail, ...now, paces: known && known.id === now.id ? known.paces : this.#pacesOf(now) });
      this.#leave();
      if (known) {
        this.#ended();
        this.#tell(this.#results[key(known.plan)]);
      }
    }
    this.#changed();
  }

  /** @param {Run} run */
  #join(run) {
    this.#leave();
    this.live = run;
    const again = () => this.look().catch(() => {});
    this.#close = follow(/** @type {string} */ (run.id), {
      progress: ({ shelf, ...snapshot }) => {
        if (!this.live) return;
        const pace = paceBetween(this.live.snapshot, snapshot);
        this.live = { ...this.live, snapshot, shelf: shelf ?? this.live.shelf, lost: false };
        if (pace != null) this.live.paces = [...this.live.paces, pace].slice(-PACES);
        this.#changed();
      },
      found: () => this.#lost(false),
      // It may be the connection, and it may be that the run was cancelled: ask.
      lost: () => {
        this.#lost(true);
        again();
      },
      over: ({ detail }) => {
        if (this.live) this.live = { ...this.live, detail };
        again();
      },
    });
  }

  /** @param {boolean} lost */
  #lost(lost) {
    if (!this.live || Boolean(this.live.lost) === lost) return;
    this.live = { ...this.live, lost };
    this.#changed();
  }

  #leave() {
    this.#close();
    this.#close = () => {};
    this.live = null;
  }

  /** @param {Run} run */
  #pacesOf(run) {
    const kept = this.#results[key(run.plan)];
    return kept?.id === run.id ? kept.paces : [];
  }

  /** @param {Run} run */
  #keep(run) {
    this.#results[key(run.plan)] = { ...run, lost: false };
    tab.set('results', this.#results);
  }

  /** @param {Run} run */
  #tell(run) {
    for (const told of this.#waiting.splice(0)) told(run);
  }
}
