/**
 * How full a limit is at a moment, by what was answered until then. Pure.
 *
 * 1. A token bucket has ten tokens at first and one more every 100 ms; who is let through takes one. Each instance has its own.
 * 2. A window that slides holds who was let through within the last second: ten at most.
 * 3. A leaky bucket holds who waits for a turn; without delay, the places that are not free again yet: one leaks out each second.
 * 4. A limit on requests at once holds who is inside.
 */

/** When it was sent and answered, in milliseconds since the first was sent; `at` is Infinity until then. @typedef {{sent: number, at: number, status: number, instance: string}} Answer */
/** @typedef {'bucket' | 'shared' | 'queued' | 'nodelay' | 'address' | 'server'} Kind */
/** @typedef {{name: string, places: number, full: number}} Level */

/** So many a second are let through by the course's own limits, and by nginx's; and so many may wait there. */
const [PER_SECOND, AT_NGINX, QUEUE_PLACES] = [10, 1, 5];
/** Who is on its way for so long waits. */
const WAITING_AFTER_MS = 100;
/** @type {Record<string, number>} */
const CONNECTION_LIMITS = { address: 20, server: 100 };

/** @param {Answer} answer */
const isAdmitted = ({ status }) => status === 200;

/** How many answers like this came within the last second. @param {Answer[]} answers @param {number} now @param {(answer: Answer) => boolean} like */
const countWithinSecond = (answers, now, like) => answers.filter((answer) => answer.at <= now && answer.at > now - 1000 && like(answer)).length;

/** @param {Answer[]} answers @param {number} now */
export const rateAt = (answers, now) => ({ through: countWithinSecond(answers, now, isAdmitted), refused: countWithinSecond(answers, now, ({ status }) => status === 429) });

/** Who waits: sent, and not answered yet. @param {Answer[]} answers @param {number} now */
const waitingCount = (answers, now) => answers.filter(({ sent, at }) => sent + WAITING_AFTER_MS <= now && now < at).length;

/** @param {Kind} kind @param {Answer[]} answers @param {number} now @returns {Level[]} */
export function levelsAt(kind, answers, now) {
  const through = answers.filter((answer) => isAdmitted(answer) && answer.at <= now).toSorted((a, b) => a.at - b.at);
  if (kind === 'bucket') {
    const names = [...new Set(answers.flatMap(({ instance }) => instance || []))].toSorted();
    return (names.length ? names : ['']).map((name) => ({ name, places: PER_SECOND, full: tokensLeft(through.filter(({ instance }) => instance === name), now) }));
  }
  if (kind === 'shared') return [{ name: '', places: PER_SECOND, full: Math.min(PER_SECOND, countWithinSecond(answers, now, isAdmitted)) }];
  if (kind === 'queued') return [{ name: '', places: QUEUE_PLACES, full: Math.min(QUEUE_PLACES, waitingCount(answers, now)) }];
  if (kind === 'nodelay') return [{ name: '', places: QUEUE_PLACES, full: Math.min(QUEUE_PLACES, Math.ceil(bucketExcess(through, now))) }];
  const inside = answers.filter((answer) => isAdmitted(answer) && answer.sent <= now && now < answer.at).length;
  return [{ name: '', places: CONNECTION_LIMITS[kind], full: inside }];
}

/** @param {Answer[]} taken in order @param {number} now */
function tokensLeft(taken, now) {
  let [left, then] = [PER_SECOND, 0];
  for (const { at } of [...taken, { at: now }]) {
    left = Math.min(PER_SECOND, left + ((at - then) * PER_SECOND) / 1000) - 1;
    then = at;
  }
  // The last step was no taking.
  return Math.max(0, Math.floor(left + 1));
}

/** What is in nginx's bucket beyond what has leaked out. @param {Answer[]} through in order @param {number} now */
function bucketExcess(through, now) {
  let [over, then] = [-1, 0];
  for (const { at } of through) {
    over = Math.max(-1, over - ((at - then) * AT_NGINX) / 1000) + 1;
    then = at;
  }
  return Math.max(0, over - ((now - then) * AT_NGINX) / 1000);
}
