/**
 * This visitor's run, in the queue or under way, and the last result of each strategy.
 *
 * The service decides (GET /runs/current); the stream is only faster. So after a reload, a lost connection or in a second window the page
 * asks and joins the active run.
 */

import * as api from '../shared/api.js';
import { follow } from '../shared/event-stream.js';
import { MAX_PACES, paceBetween } from './run-figures.js';
import { sessionStore } from '../shared/storage.js';
import { errorText } from '../shared/language.js';
import { loadReasons } from '../words/load-reasons.js';

/** @typedef {{strategy: string, target: 'one' | 'three', threads: number, loops: number, hold_ms: number, count: number}} Plan */
/**
 * The state of a run, as the service sends it.
 * @typedef {{samples: number, planned: number, sold: number, sold_out: number, errors: number, unknown: number, retries?: number,
 *   elapsed_ms: number, throughput: number, pace?: number, unanswered?: number, under_way?: Record<string, number>,
 *   p50_ms: number | null, p99_ms: number | null, instances: Record<string, number>, lanes?: import('../timeline/run-model.js').Stays}} Snapshot
 */
/**
 * @typedef {{id: string | null, plan: Plan, state: 'starting' | 'waiting' | 'running' | 'done' | 'cancelled' | 'failed', snapshot: Snapshot,
 *   remaining: number | null, row: Record<string, any> | null, paces: number[], by?: string, instance?: string, lost?: boolean, detail?: string, vanished?: boolean,
 *   position?: number, starts_in_ms?: number}} Run
 */

/** @param {{strategy: string, target: string}} plan */
const keyOf = (plan) => `${plan.strategy} ${plan.target}`;

/** As many as may wait do so: ask again after this. */
const RETRY_MS = 300;

export class Runs {
  #onChange;
  #onEnd;
  #close = () => {};
  /** @type {Run | null} */
  active = null;
  /** @type {Record<string, Run>} */
  #results = sessionStore.get('results') ?? {};
  /** Called at the end of the next run. @type {((run: Run) => void)[]} */
  #endListeners = [];

  /** @param {() => void} changed called when there is something to draw @param {() => void} ended called at the end of a run */
  constructor(changed, ended) {
    this.#onChange = changed;
    this.#onEnd = ended;
  }

  /** The run to show: the active one if it is this strategy's, else the last result. @param {string} strategy @param {string} target */
  runOf(strategy, target) {
    const planKey = keyOf({ strategy, target });
    return this.active && keyOf(this.active.plan) === planKey ? this.active : this.#results[planKey] ?? null;
  }

  /** The active run, if it is another strategy's. @param {string} strategy @param {string} target */
  otherRun(strategy, target) {
    return this.active && keyOf(this.active.plan) !== keyOf({ strategy, target }) ? this.active : null;
  }

  /** The last result, whatever is active. @param {string} strategy @param {string} target @returns {Run | null} */
  lastResult(strategy, target) {
    return this.#results[keyOf({ strategy, target })] ?? null;
  }

  /** The end of the next run, whoever started it. @returns {Promise<Run>} */
  waitForEnd() {
    return new Promise((resolve) => { this.#endListeners.push(resolve); });
  }

  /** Starts a run, or joins the active one. Throws if there is none to join. @param {Plan} plan @returns {Promise<boolean>} whether it was started */
  async start(plan) {
    const snapshot = { samples: 0, planned: plan.threads * plan.loops, sold: 0, sold_out: 0, errors: 0, unknown: 0, elapsed_ms: 0, throughput: 0, p50_ms: null, p99_ms: null, instances: {} };
    this.active = { id: null, plan, state: 'starting', snapshot, remaining: plan.count, row: null, paces: [] };
    this.#onChange();
    try {
      const { id, instance, state, position, starts_in_ms } = await api.startRun(plan);
      this.#join({ ...this.active, id, instance, state, position, starts_in_ms });
      this.#onChange();
      return true;
    } catch (caught) {
      const error = /** @type {any} */ (caught);
      const starting = this.active;
      this.active = null;
      if (error.status === 429) await this.refresh();
      if (!this.active && starting) this.#store({ ...starting, state: 'failed', detail: error.status ? errorText(error) : undefined });
      this.#onChange();
      if (!this.active) throw error;
      return false;
    }
  }

  /** Runs this when no other run is active. Throws if it is refused for another reason. @param {Plan} plan @param {() => boolean} goesOn false once it is not wanted @returns {Promise<Record<string, any> | null>} its row, or null */
  async runWhenFree(plan, goesOn) {
    while (goesOn()) {
      if (this.active) {
        await this.waitForEnd();
        continue;
      }
      const ended = this.waitForEnd();
      try {
        if (await this.start(plan)) {
          const run = await ended;
          return run.state === 'done' ? run.row : null;
        }
      } catch (error) {
        if (/** @type {any} */ (error).status !== 429) throw error;
        await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
      }
    }
    return null;
  }

  async cancel() {
    if (!this.active?.id) return;
    try {
      await api.cancelRun(this.active.id);
    } finally {
      await this.refresh();
    }
  }

  /** Asks the service for the current run, and joins or ends accordingly. Throws if it does not answer. */
  async refresh() {
    if (this.active?.state === 'starting') return;
    const askedId = this.active?.id;
    const current = await api.currentRun();
    if (current?.state === 'failed') await loadReasons();
    const now = current?.own ? current : null;
    const known = this.active;
    // Meanwhile the stream or a click may have moved on to a newer run.
    if (known?.id !== askedId) return;
    if (now?.state === 'running' || now?.state === 'waiting') {
      if (known?.id !== now.id) this.#join({ ...now, paces: [] });
      else if (this.active) Object.assign(this.active, { state: now.state, position: now.position, starts_in_ms: now.starts_in_ms });
    } else {
      if (known && now?.id !== known.id) this.#store({ ...known, state: 'failed', vanished: true });
      if (now) this.#store({ detail: known?.detail, ...now, paces: known && known.id === now.id ? known.paces : this.#pacesOf(now) });
      this.#leave();
      if (known) {
        this.#onEnd();
        this.#notifyEnd(this.#results[keyOf(known.plan)]);
      }
    }
    this.#onChange();
  }

  /** @param {Run} run */
  #join(run) {
    this.#leave();
    this.active = run;
    const again = () => this.refresh().catch(() => {});
    const over = (/** @type {{detail?: string}} */ { detail }) => {
      if (this.active) this.active = { ...this.active, detail };
      again();
    };
    this.#close = follow(`runs/${run.id}/events`, {
      progress: ({ remaining, ...snapshot }) => {
        if (!this.active) return;
        const pace = paceBetween(this.active.snapshot, snapshot);
        this.active = { ...this.active, state: snapshot.samples ? 'running' : this.active.state, snapshot, remaining: remaining ?? this.active.remaining, lost: false };
        if (pace != null) this.active.paces = [...this.active.paces, pace].slice(-MAX_PACES);
        this.#onChange();
      },
      done: over,
      failed: over,
    }, {
      last: ['done', 'failed'],
      opened: () => this.#setLost(false),
      // Either the connection is lost or the run was cancelled: ask.
      lost: () => {
        this.#setLost(true);
        again();
      },
    });
  }

  /** @param {boolean} lost */
  #setLost(lost) {
    if (!this.active || Boolean(this.active.lost) === lost) return;
    this.active = { ...this.active, lost };
    this.#onChange();
  }

  #leave() {
    this.#close();
    this.#close = () => {};
    this.active = null;
  }

  /** @param {Run} run */
  #pacesOf(run) {
    const stored = this.#results[keyOf(run.plan)];
    return stored?.id === run.id ? stored.paces : [];
  }

  /** @param {Run} run */
  #store(run) {
    this.#results[keyOf(run.plan)] = { ...run, lost: false };
    sessionStore.set('results', this.#results);
  }

  /** @param {Run} run */
  #notifyEnd(run) {
    for (const told of this.#endListeners.splice(0)) told(run);
  }
}
