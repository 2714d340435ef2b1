/** The events of a replay, as the service sends them. */

/**
 *
 * @typedef {object} ReplayEvent
 * @property {number} t_us microseconds since the replay began
 * @property {string} actor `A` `B` `C`, or what is observed
 * @property {string} event
 * @property {string} [instance]
 * @property {string} [key]
 * @property {string} [value]
 * @property {string} [owner]
 * @property {number} [pttl] milliseconds; -1: no lease
 * @property {number} [token]
 */
/** How a replay ended. @typedef {{sold?: number, gone?: number, inside?: number, notes?: string, as_meant?: boolean, detail?: string}} Ending */

/** What is observed and is no actor: the lock's server, the shelf, the row, the caption. */
const WATCHED = ['lock', 'stock', 'row', 'step'];

/** What goes over the wire for another event, and where a person has stopped an actor. */
export const TRANSPORT = ['sent', 'answered', 'stands'];

/** The name of an actor in a text. */
export const ACTOR_NAME = /(?<![A-Za-z])([ABC])(?![A-Za-z])/;

/** @param {ReplayEvent} e */
export const isActor = (e) => !WATCHED.includes(e.actor);

/** Has the actor deleted a lock that was not its own? @param {ReplayEvent} e */
export const isForeignDelete = (e) => isActor(e) && e.event === 'deleted'
  && (e.value === 'foreign' || (e.owner != null && e.owner !== e.actor));

/**
 * Without the waits in vain: an actor says that it waits before it asks for a lock, also for a free one. Nothing of another happens
 * meanwhile then, and it does not fail.
 * @param {ReplayEvent[]} events
 */
export function withoutVainWaits(events) {
  return events.filter((e, i) => {
    if (e.event !== 'waits' || !isActor(e)) return true;
    const next = events.slice(i + 1).find((later) => isActor(later) && !TRANSPORT.includes(later.event));
    return !next || next.actor !== e.actor || next.event === 'failed';
  });
}

/** @param {string | undefined} text */
export const isInteger = (text) => text != null && /^-?\d+$/.test(text);

/** Turns a value into text: on the wire it may be a number, and a caption is an object. @param {any} raw @returns {ReplayEvent} */
export function parseEvent(raw) {
  const { value } = raw;
  if (value == null) return raw;
  return { ...raw, value: typeof value === 'object' ? JSON.stringify(value) : String(value) };
}
