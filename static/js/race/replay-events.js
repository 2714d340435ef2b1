/** Follows the events of a replay. Each connection gets all of them from the beginning, so a new one begins with an empty list. */

import { follow } from '../shared/event-stream.js';
import { parseEvent } from '../timeline/events.js';

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('../timeline/events.js').Ending} Ending */

/** A replay that is gone (the service was restarted) answers an error for ever. */
const MAX_ATTEMPTS = 5;

/**
 * @param {string} path
 * @param {{begin: () => void, event: (event: ReplayEvent) => void, over: (name: 'done' | 'failed', ending: Ending) => void}} handlers
 * @returns {() => void} ends the stream
 */
export const followReplay = (path, { begin, event, over }) => follow(path, {
  message: (data) => event(parseEvent(data)),
  done: (ending) => over('done', ending),
  failed: (ending) => over('failed', ending),
}, { opened: begin, last: ['done', 'failed'], attempts: MAX_ATTEMPTS, gaveUp: () => over('failed', {}) });
