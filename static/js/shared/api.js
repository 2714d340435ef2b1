/** The service's routes that the page uses: only requests, no drawing. */

import { loadReasons } from '../words/load-reasons.js';
import { sessionStore } from './storage.js';
import { visitorId } from './visitor.js';

const SHORT_TIMEOUT_MS = 2000;

/** Where the address that `oversell lab --lan` prints has the token; what stands behind `#` is sent to nobody. */
const TOKEN_IN_ADDRESS = /^#token=([\w-]+)$/;

/** Kept as long as this tab, so that a reload or another page does not ask for it again. @param {string} to */
export const setToken = (to) => sessionStore.set('token', to);

const [, tokenInAddress] = TOKEN_IN_ADDRESS.exec(globalThis.location?.hash ?? '') ?? [];
if (tokenInAddress) {
  setToken(tokenInAddress);
  // Nobody who looks at the screen reads it there.
  globalThis.history.replaceState(null, '', globalThis.location.pathname);
}

/** A refusal, with its problem details (RFC 9457). */
export class ApiError extends Error {
  /** @param {number} status @param {any} problem */
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `HTTP ${status}`);
    this.status = status;
    this.problem = problem ?? {};
  }
}

/**
 *
 * @param {string} path
 * @param {{method?: string, body?: object, accept?: number[], soon?: boolean, stays?: boolean}} [how] `stays`: it is sent even if the page is
 *   closed; `accept`: a status that is no refusal; `soon`: it fails after two seconds
 * @returns {Promise<{json: any, instance: string}>}
 */
async function request(path, { method = 'GET', body, accept = [], soon = false, stays = false } = {}) {
  /** @type {Record<string, string>} */
  const headers = { accept: 'application/json', 'x-visitor': visitorId };
  if (body) headers['content-type'] = 'application/json';
  const token = sessionStore.get('token');
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), cache: 'no-store', keepalive: stays, signal: soon ? AbortSignal.timeout(SHORT_TIMEOUT_MS) : null });
  // A broken answer is an error; for a refusal the status is enough.
  const read = () => (answer.ok ? answer.json() : answer.json().catch(() => null));
  const json = /json/.test(answer.headers.get('content-type') ?? '') ? await read() : null;
  if (!answer.ok && !(accept.includes(answer.status) && json)) {
    // Only the rule of a field has no Chinese title.
    if (json?.field) await loadReasons();
    throw new ApiError(answer.status, json);
  }
  return { json, instance: answer.headers.get('x-instance') ?? '' };
}

/** All strategies, in the course's order. */
export const strategies = async () => (await request('strategies')).json;

/** Chapters and lessons without their commands; null if the service has none. */
export const course = async () => (await request('course?brief=true', { accept: [404] })).json;

/** One lesson with its commands. @param {string} id */
export const lesson = async (id) => (await request(`course/${encodeURIComponent(id)}`)).json;

/** The full run that comes with the program, without its figures. */
export const storedRun = async () => (await request('course/last-run')).json;

/** The results of the last `oversell course`; null if there was none. */
export const verdicts = async () => (await request('course/verdicts', { accept: [404] })).json;

/** @param {string} slug @param {'stock' | 'seckill'} of */
const strategyPath = (slug, of) => `${of === 'stock' ? '' : 'voucher-order/'}strategies/${slug}`;

/** A strategy's explanation in both languages. @param {string} slug @param {'stock' | 'seckill'} of @returns {Promise<Record<'zh' | 'en', {steps: string[], survives: string, breaks: string}>>} */
export const strategyText = async (slug, of) => (await request(`${strategyPath(slug, of)}/text`)).json;

/** A strategy's Rust file. @param {string} slug @param {'stock' | 'seckill'} [of] */
export async function strategySource(slug, of = 'stock') {
  const answer = await fetch(`${strategyPath(slug, of)}/source`);
  if (!answer.ok) throw new ApiError(answer.status, null);
  return answer.text();
}

/** Which instances and servers are up. 503 means "not ready" and has the same body. */
export const health = async () => (await request('health/ready?instances=true', { accept: [503], soon: true })).json;

/** What can be broken here. @param {string} at the path of the instance that shall answer, or nothing */
export const labState = async (at) => (await request(`${at}lab`, { soon: true })).json;

/** Breaks or repairs something. @param {string} at @param {{action: string, member: string}} fault */
export const injectFault = async (at, fault) => (await request(`${at}lab/faults`, { method: 'POST', body: fault })).json;

/** @param {string} [at] the path of the instance that shall answer; nothing: any */
export const stock = async (at = '') => (await request(`${at}stock?stock_id=1`, { soon: true })).json;

/** Sets the stock of both stores and clears every lock. @param {number} count */
export const resetStock = async (count) => (await request('stock', { method: 'PUT', body: { count } })).json;

/**
 * Buys one piece. By POST: a browser may hold back a second GET of the same address, and two purchases must be under way at once.
 * @param {string} slug @param {number} hold_ms @param {string | null} at an instance; null: any
 */
export const buy = (slug, hold_ms, at) => request(`${at ? `instances/${at}/` : ''}check/lock/${slug}?hold_ms=${hold_ms}`, { method: 'POST' });

export const deadlocks = async () => (await request('test/deadlock')).json;

/** Plays a deadlock on the real MySQL. @param {string} slug @param {boolean} cured */
export const playDeadlock = async (slug, cured) => (await request(`test/deadlock/${slug}?cured=${cured}`, { method: 'POST' })).json;

/** Calls a lesson's route as a browser would. @param {string} path */
export async function requestText(path) {
  const answer = await fetch(path.replace(/^\//, ''), { cache: 'no-store' });
  const text = await answer.text();
  const isOwn = !/html/.test(answer.headers.get('content-type') ?? '');
  if (!answer.ok) throw new ApiError(answer.status, isOwn ? { title: text.trim().split('\n').slice(0, 2).join(' ') } : null);
  return { text: text.trim(), instance: answer.headers.get('x-instance') ?? '' };
}

/** The state of semaphore, latch and barrier in their servers. */
export const classroomObjects = async () => (await request('classroom/objects', { soon: true })).json;

/** Measures the herd: each holder in turn releases a lock, for both ways to wait. */
export const playHerd = async () => (await request('test/zk/herd')).json;

/** Sends visitors to a lesson, each by a request of its own. @param {object} who */
export const sendVisitors = (who) => request('classroom/visits', { method: 'POST', body: who });

/** Runs a lesson's command on the machine of the servers. @param {string} id @param {number} number @returns {Promise<{printed: string, expected: boolean}>} */
export const typeLine = async (id, number) => (await request(`classroom/lines/${encodeURIComponent(id)}/${number}`, { method: 'POST' })).json;

/** Tells the class's pages which lesson is on show. @param {string} lesson */
export const showLesson = (lesson) => request('classroom/lesson', { method: 'PUT', body: { lesson } });

/** Phones say the answer to what was guessed. @param {string} lesson */
export const endLesson = (lesson) => request('classroom/lesson', { method: 'PUT', body: { lesson, ended: true } });

/** Says that this page is open; the answer is the teacher's last call. @param {{lesson: string, who?: string}} page @returns {Promise<import('../class/presence.js').Call | null>} */
export const tellPresence = async (page) => (await request('classroom/presence', { method: 'PUT', body: page, soon: true })).json.call;

/** Who is there, which lesson each is at, and what waits. */
export const classDesk = async () => (await request('classroom/desk', { soon: true })).json;

/** Calls everybody to a lesson, or to a race of it. @param {{lesson: string, replays: string[]}} call */
export const callClass = (call) => request('classroom/desk', { method: 'PUT', body: call });

/** Ends what waits for its turn. @returns {Promise<number>} how many */
export const clearQueue = async () => (await request('classroom/desk/queue', { method: 'DELETE' })).json.ended;

/** A guess in the class how a race will end. @param {{lesson: string, who: string, guess: number}} one */
export const sendGuess = (one) => request('classroom/guesses', { method: 'POST', body: one });

/** Has the service send more connections at once than a browser can. @param {'address' | 'server'} limit @returns {Promise<{at_ms: number, status: number}[]>} */
export const sendBurst = async (limit) => (await request('classroom/burst', { method: 'POST', body: { limit } })).json;

/** @param {string} id @returns {Promise<import('../run/rate-rounds.js').Rates[]>} */
export const comparedRates = async (id) => (await request(`course/${encodeURIComponent(id)}/rates`)).json;

/** The scripts of one's own lock, and the course's to begin with. */
export const ownLock = async () => (await request('mine')).json;

/** @param {{acquire: string, release: string, renew: string}} scripts */
export const saveOwnLock = async (scripts) => (await request('mine', { method: 'PUT', body: scripts })).json;

/** Grades the saved scripts. */
export const gradeOwnLock = async () => (await request('mine/grade', { method: 'POST' })).json;

/** @param {object} plan */
export const startRun = async (plan) => (await request('runs', { method: 'POST', body: plan })).json;

/** The active or last run; null if there was none. */
export const currentRun = async () => (await request('runs/current', { soon: true })).json;

/** @param {string} id */
export const cancelRun = (id) => request(`runs/${id}`, { method: 'DELETE' });

/** The races of all lessons, in the course's order. */
export const replays = async () => (await request('replays', { soon: true })).json;

/** The race of one lesson; null if it has none. @param {string} id @returns {Promise<import('../race/race.js').Race | null>} */
export const raceOfLesson = async (id) => (await request(`replays?lesson=${encodeURIComponent(id)}`)).json.replays[0] ?? null;

/** Plays a race on the real servers. @param {string} lesson @param {boolean} cured @param {'slow' | 'fast' | 'scheduler' | 'timed'} pace @param {object} [times] the times of a `timed` replay */
export const startReplay = async (lesson, cured, pace, times) =>
  (await request(`replays/${encodeURIComponent(lesson)}?${new URLSearchParams({ cured: String(cured), pace, ...times })}`, { method: 'POST' })).json;

/** Lets an actor, or the clock, go on. @param {string} id @param {string} actor */
export const resumeActor = (id, actor) => request(`replays/${id}/next?actor=${actor}`, { method: 'POST' });

/** @param {string} id */
export const cancelReplay = (id) => request(`replays/${id}`, { method: 'DELETE', stays: true });
