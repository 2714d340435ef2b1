/**
 * Server-sent events that survive an error answer. The browser reconnects by itself when the network breaks, but gives up when the answer is
 * an error, as that of a proxy whose upstream is gone: then a new connection is opened.
 */

import { loadReasons } from '../words/load-reasons.js';

const RECONNECT_MS = 1000;

/**
 *
 * @param {string} path
 * @param {Record<string, (data: any) => void>} events what handles each, by name; `message` has no name
 * @param {{opened?: () => void, lost?: () => void, last?: string[], attempts?: number, gaveUp?: () => void}} [how]
 *   `last`: names of events that end the stream; `gaveUp`: called after so many error answers in a row
 * @returns {() => void} ends the stream
 */
export function follow(path, events, { opened = () => {}, lost = () => {}, last = [], attempts = Infinity, gaveUp = () => {} } = {}) {
  /** @type {EventSource} */
  let source;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  let failures = 0;
  let isLeft = false;
  const close = () => {
    clearTimeout(timer);
    source.close();
  };
  const open = () => {
    source = new EventSource(path.replace(/^\//, ''));
    source.onopen = () => {
      failures = 0;
      opened();
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) {
        failures += 1;
        if (failures >= attempts) {
          gaveUp();
          return;
        }
        timer = setTimeout(open, RECONNECT_MS);
      }
      lost();
    };
    for (const [name, act] of Object.entries(events)) {
      source.addEventListener(name, async ({ data }) => {
        if (last.includes(name)) close();
        if (name === 'failed') await loadReasons();
        if (!isLeft) act(JSON.parse(data));
      });
    }
  };
  open();
  return () => {
    isLeft = true;
    close();
  };
}
