/** Follows a replay while it runs. */

import { follow } from '../shared/event-stream.js';
import { loadReasons } from '../words/load-reasons.js';
import { parseEvent } from './events.js';

/** A replay that is gone (the service was restarted) answers an error for ever. */
const MAX_ATTEMPTS = 5;

/**
 * Follows a replay. Each connection gets all of its events from the beginning, so a new one begins with an empty list.
 * @param {string} path
 * @param {{begin: () => void, event: (event: import('./events.js').ReplayEvent) => void, over: (name: 'done' | 'failed', ending: import('./events.js').Ending) => void}} handlers
 * @returns {() => void} ends the stream
 */
export const followReplay = (path, { begin, event, over }) => follow(path, {
  message: (data) => {
    if (data.event === 'failed') loadReasons();
    event(parseEvent(data));
  },
  done: (ending) => over('done', ending),
  failed: (ending) => over('failed', ending),
}, { opened: begin, last: ['done', 'failed'], attempts: MAX_ATTEMPTS, gaveUp: () => over('failed', {}) });
