/** The routes of the service that the page uses. Everything here is a request; nothing here draws. */

/** @typedef {{zh: string, en: string}} Title */
/** @typedef {{slug: string, chapter: string, store: string, promise: string, needs: string[], beyond: boolean, title: Title, breaks: Title}} Lesson */
/** @typedef {{target: string, threads: number, loops: number, hold_ms: number, count: number}} Settings how a run is to be */
/** @typedef {Settings & {strategy: string}} Plan */
/** @typedef {{up: boolean, detail?: string}} Up */
/** @typedef {{instance: string, instances?: (Up & {name: string})[], servers: Record<string, Up>, waiting: string[]}} Health */
/**
 * A run, under way or over. What it counts (`snapshot`, while it runs) and its row of the table (`row`, at its end) are
 * described at `/docs`.
 * @typedef {object} Run
 * @property {string | null} id null while it is being started
 * @property {Plan} plan
 * @property {string} state
 * @property {any} snapshot
 * @property {number | null} shelf
 * @property {any} row
 * @property {number[]} paces
 * @property {boolean} [lost] the connection is
 * @property {boolean} [vanished] the service does not know it any more
 * @property {string} [detail] why it failed
 * @property {string} [by]
 */

let token = '';

/** The admin token for `PUT /stock`, kept in memory only. @param {string} to */
export const setToken = (to) => { token = to; };

/** A refusal, with the problem (RFC 9457) that the service gave as its reason. */
export class Refused extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `HTTP ${status}`);
    this.status = status;
    this.problem = problem ?? {};
  }
}

/**
 * @param {string} path
 * @param {{method?: string, body?: object, accept?: number[]}} [how] `accept`: refusals that are answers
 * @returns {Promise<{json: any, instance: string | null}>}
 */
async function ask(path, { method = 'GET', body, accept = [] } = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept: 'application/json' };
  if (body) headers['content-type'] = 'application/json';
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: 'no-store' });
  const json = /json/.test(answer.headers.get('content-type') ?? '') ? await answer.json().catch(() => null) : null;
  if (!answer.ok && !(accept.includes(answer.status) && json)) throw new Refused(answer.status, json);
  return { json, instance: answer.headers.get('x-instance') };
}

/** Every lesson, in the course's order. @returns {Promise<Lesson[]>} */
export const strategies = async () => (await ask('strategies')).json;

/** The Rust file of a lesson. @param {string} slug */
export async function source(slug) {
  const answer = await fetch(`strategies/${slug}/source`);
  if (!answer.ok) throw new Refused(answer.status, null);
  return answer.text();
}

/** Which instances and servers are up. 503 means "not ready", and says the same in the same words. @returns {Promise<Health>} */
export const health = async () => (await ask('health/ready?instances=true', { accept: [503] })).json;

export const stock = async () => (await ask('stock?stock_id=1')).json;

/** Puts both stores to this count and clears every lock. @param {number} count */
export const reset = async (count) => (await ask('stock', { method: 'PUT', body: { count } })).json;

/**
 * Buys one piece. POST and not GET: a browser may hold a second GET of the same address back until the first is
 * answered, and two who buy at once must be under way at once.
 * @param {string} slug @param {number} hold_ms
 */
export const buy = (slug, hold_ms) => ask(`check/lock/${slug}?hold_ms=${hold_ms}`, { method: 'POST' });

/** @param {object} plan */
export const startRun = async (plan) => (await ask('runs', { method: 'POST', body: plan })).json;

/** The run under way or the last one; null where there was none. @returns {Promise<Run | null>} */
export const currentRun = async () => (await ask('runs/current')).json;

/** @param {string} id */
export const cancelRun = (id) => ask(`runs/${id}`, { method: 'DELETE' });

/** The races that can be replayed here, in the course's order. */
export const replays = async () => (await ask('replays')).json;

/** Plays one on the real servers. @param {string} lesson @param {boolean} cured @param {'slow' | 'step'} pace */
export const startReplay = async (lesson, cured, pace) =>
  (await ask(`replays/${encodeURIComponent(lesson)}?${new URLSearchParams({ cured: String(cured), pace })}`, { method: 'POST' })).json;

/** @param {string} id */
export const stepReplay = (id) => ask(`replays/${id}/step`, { method: 'POST' });

/** @param {string} id */
export const cancelReplay = (id) => ask(`replays/${id}`, { method: 'DELETE' });
