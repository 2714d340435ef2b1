/** Who this browser is to the service: its races, its own lock and its place in the queue belong to this random id. */

import { localStore } from './storage.js';

const KEY = 'visitor';

/** `crypto.randomUUID` is not there on a page of the local network, which has no https. */
function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** @type {string} */
export const visitorId = localStore.get(KEY) ?? randomId();
localStore.set(KEY, visitorId);
