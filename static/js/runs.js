/**
 * Runs: the one under way, wherever it was started, and the last result of each lesson.
 *
 * The service is the truth (GET /runs/current); the stream only brings it sooner. So a reload, a lost connection and
 * a second window all end in the same place: ask, and join what is there.
 */

import * as api from './api.js';
import { PACES, paceBetween } from './figures.js';
import { tab } from './kept.js';
import { reason } from './lang.js';
import { follow } from './stream.js';

/** @typedef {import('./api.js').Run} Run */
/** @typedef {import('./api.js').Plan} Plan */

const key = (/** @type {{strategy: string, target: string}} */ plan) => `${plan.strategy} ${plan.target}`;

export class Runs {
  #changed;
  #ended;
  #close = () => {};
  /** The run under way, if there is one. @type {Run | null} */
  live = null;
  /** By lesson and target. @type {Record<string, Run>} */
  #results = tab.get('results') ?? {};

  /** @param {() => void} changed there is something new to draw @param {() => void} ended a run has come to its end */
  constructor(changed, ended) {
    this.#changed = changed;
    this.#ended = ended;
  }

  /** What to show for a lesson: the run under way if it is this lesson's, else its last result, else null. @param {string} strategy @param {string} target @returns {Run | null} */
  of(strategy, target) {
    const wanted = key({ strategy, target });
    return this.live && key(this.live.plan) === wanted ? this.live : this.#results[wanted] ?? null;
  }

  /** The run under way, if it is another lesson's. @param {string} strategy @param {string} target */
  other(strategy, target) {
    return this.live && key(this.live.plan) !== key({ strategy, target }) ? this.live : null;
  }

  /** Starts a run; where one is under way already, joins that. @param {Plan} plan */
  async start(plan) {
    const snapshot = { samples: 0, planned: plan.threads * plan.loops, sold: 0, sold_out: 0, errors: 0, unknown: 0, elapsed_ms: 0, throughput: 0, p50_ms: null, p99_ms: null, instances: {} };
    /** @type {Run} */
    const starting = { id: null, plan, state: 'starting', snapshot, shelf: plan.count, row: null, paces: [] };
    this.live = starting;
    this.#changed();
    try {
      const { id } = await api.startRun(plan);
      this.#join({ ...starting, id, state: 'running' });
    } catch (error) {
      const status = error instanceof api.Refused ? error.status : undefined;
      this.live = null;
      if (status === 409) await this.look();
      else this.#keep({ ...starting, state: 'failed', detail: status && reason(error) });
      if (status !== 409) throw error;
    }
    this.#changed();
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
      if (now) this.#keep({ detail: known?.detail, ...now, paces: known?.id === now.id ? known.paces : this.#pacesOf(now) });
      this.#leave();
      if (known) this.#ended();
    }
    this.#changed();
  }

  /** @param {Run} run */
  #join(run) {
    this.#leave();
    this.live = run;
    const again = () => this.look().catch(() => {});
    this.#close = follow(String(run.id), {
      progress: ({ shelf, ...snapshot }) => {
        const { live } = this;
        if (!live) return;
        const pace = paceBetween(live.snapshot, snapshot);
        const paces = pace == null ? live.paces : [...live.paces, pace].slice(-PACES);
        this.live = { ...live, snapshot, shelf: shelf ?? live.shelf, lost: false, paces };
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
}
