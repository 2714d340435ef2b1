/** Tells a screen reader how a run goes: politely, and seldom, or it could say nothing else. */

import { $, setText } from './dom.js';

const MIN_INTERVAL_MS = 8000;
let announcedAt = 0;

/** @param {string} text @param {boolean} urgent false: only if nothing was said for a while */
export function announce(text, urgent) {
  if (!urgent && Date.now() - announcedAt < MIN_INTERVAL_MS) return;
  if ($('announce').textContent === text) return;
  announcedAt = Date.now();
  setText($('announce'), text);
}
