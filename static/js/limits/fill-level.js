/**
 * How full a limiter is at a moment, from the answers until then. Pure.
 *
 * 1. A token bucket starts with ten tokens and gets one every 100 ms; a request takes one. Each instance has its own.
 * 2. A sliding window counts the requests of the last second: at most ten.
 * 3. A leaky bucket holds the requests in its queue; without delay, the places that have not leaked out: one per second.
 * 4. A connection limit counts the requests in progress.
 */

/** Times in milliseconds since the first request; `at`, when it was answered, is Infinity until then. @typedef {{sent: number, at: number, status: number, instance: string}} Answer */
/** @typedef {'bucket' | 'shared' | 'queued' | 'nodelay' | 'address' | 'server'} Kind */
/** @typedef {{name: string, places: number, full: number}} Level */

/** Requests per second that the course's limits and nginx's allow; the places of nginx's queue. */
const [PER_SECOND, AT_NGINX, QUEUE_PLACES] = [10, 1, 5];
/** A request without an answer for this long counts as waiting. */
const WAITING_AFTER_MS = 100;
/** @type {Record<string, number>} */
const CONNECTION_LIMITS = { address: 20, server: 100 };

/** @param {Answer} answer */
const isAdmitted = ({ status }) => status === 200;

/** How many such answers came within the last second. @param {Answer[]} answers @param {number} now @param {(answer: Answer) => boolean} like */
const countWithinSecond = (answers, now, like) => answers.filter((answer) => answer.at <= now && answer.at > now - 1000 && like(answer)).length;

/** @param {Answer[]} answers @param {number} now */
export const rateAt = (answers, now) => ({ through: countWithinSecond(answers, now, isAdmitted), refused: countWithinSecond(answers, now, ({ status }) => status === 429) });

/** How many requests are sent and not answered. @param {Answer[]} answers @param {number} now */
const waitingCount = (answers, now) => answers.filter(({ sent, at }) => sent + WAITING_AFTER_MS <= now && now < at).length;

/** @param {Kind} kind @param {Answer[]} answers @param {number} now @returns {Level[]} */
export function levelsAt(kind, answers, now) {
  const through = answers.filter((answer) => isAdmitted(answer) && answer.at <= now).sort((a, b) => a.at - b.at);
  if (kind === 'bucket') {
    const names = [...new Set(answers.flatMap(({ instance }) => instance || []))].sort();
    return (names.length ? names : ['']).map((name) => ({ name, places: PER_SECOND, full: tokensLeft(through.filter(({ instance }) => instance === name), now) }));
  }
  if (kind === 'shared') return [{ name: '', places: PER_SECOND, full: Math.min(PER_SECOND, countWithinSecond(answers, now, isAdmitted)) }];
  if (kind === 'queued') return [{ name: '', places: QUEUE_PLACES, full: Math.min(QUEUE_PLACES, waitingCount(answers, now)) }];
  if (kind === 'nodelay') return [{ name: '', places: QUEUE_PLACES, full: Math.min(QUEUE_PLACES, Math.ceil(bucketExcess(through, now))) }];
  const inside = answers.filter((answer) => isAdmitted(answer) && answer.sent <= now && now < answer.at).length;
  return [{ name: '', places: CONNECTION_LIMITS[kind], full: inside }];
}

/** @param {Answer[]} taken sorted by time @param {number} now */
function tokensLeft(taken, now) {
  let [left, then] = [PER_SECOND, 0];
  for (const { at } of [...taken, { at: now }]) {
    left = Math.min(PER_SECOND, left + ((at - then) * PER_SECOND) / 1000) - 1;
    then = at;
  }
  // The last step was `now` and took no token.
  return Math.max(0, Math.floor(left + 1));
}

/** What is in nginx's bucket and has not leaked out. @param {Answer[]} through sorted by time @param {number} now */
function bucketExcess(through, now) {
  let [over, then] = [-1, 0];
  for (const { at } of through) {
    over = Math.max(-1, over - ((at - then) * AT_NGINX) / 1000) + 1;
    then = at;
  }
  return Math.max(0, over - ((now - then) * AT_NGINX) / 1000);
}
