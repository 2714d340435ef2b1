/**
 * The events of a replay, as server-sent events: from the beginning for whoever comes, so that a connection that was lost begins
 * with an empty list again.
 */

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {import('../timeline/events.js').Ending} Ending */

import { parseEvent } from '../timeline/events.js';

const RECONNECT_MS = 1000;
/** A replay that is gone (the service was restarted) answers an error for ever. */
const MAX_FAILURES = 5;

/**
 * @param {string} path
 * @param {{begin: () => void, event: (e: ReplayEvent) => void, over: (name: 'done' | 'failed', ending: Ending) => void}} handlers
 * @returns {() => void} ends the stream
 */
export function followReplay(path, handlers) {
  /** @type {EventSource} */
  let source;
  /** @type {number | undefined} */
  let timer;
  let failures = 0;
  const close = () => {
    clearTimeout(timer);
    source.close();
  };
  const open = () => {
    source = new EventSource(path.replace(/^\//, ''));
    source.onopen = () => {
      failures = 0;
      handlers.begin();
    };
    source.onmessage = ({ data }) => handlers.event(parseEvent(JSON.parse(data)));
    source.onerror = () => {
      if (source.readyState !== EventSource.CLOSED) return;
      failures += 1;
      if (failures < MAX_FAILURES) timer = setTimeout(open, RECONNECT_MS);
      else handlers.over('failed', {});
    };
    for (const name of /** @type {const} */ (['done', 'failed'])) {
      source.addEventListener(name, (event) => {
        close();
        handlers.over(name, JSON.parse(event.data));
      });
    }
  };
  open();
  return close;
}
