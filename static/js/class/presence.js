/**
 * Tells the service every few seconds which lesson this page shows, and follows the teacher's calls. A page that was opened after a call
 * does not follow it.
 */

import * as api from '../shared/api.js';
import { localStore, sessionStore } from '../shared/storage.js';

/** @typedef {{id: string, cured: boolean, pace: string}} WatchedReplay */
/** Where the teacher calls everybody; with replays, to a race that all watch. @typedef {{id: string, lesson: string, replays: WatchedReplay[]}} Call */

const INTERVAL_MS = 5000;
/** The id of the last call that this tab has followed, or that was older than the tab. */
const KEY = 'call';

/** @type {string | null} */
let followed = sessionStore.get(KEY);

/** @param {() => string} lesson the one on show @param {(call: Call) => void} follow */
export async function start(lesson, follow) {
  if (!document.hidden) await tell(lesson(), follow).catch(() => {});
  setTimeout(start, INTERVAL_MS, lesson, follow);
}

/** @param {string} lesson @param {(call: Call) => void} follow */
async function tell(lesson, follow) {
  const call = await api.tellPresence({ lesson, who: localStore.get('who') || undefined });
  const id = call?.id ?? '';
  if (followed === id) return;
  const isOlder = followed == null;
  followed = id;
  sessionStore.set(KEY, id);
  if (call && !isOlder) follow(call);
}

/** Lets the next page of this tab follow this call. */
export const leaveToNextPage = () => sessionStore.set(KEY, '');
