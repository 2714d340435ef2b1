/** Tells a screen reader how a run goes, seldom enough that it can say something else. */

import { $, setText } from './dom.js';

const MIN_INTERVAL_MS = 8000;
let announcedAt = 0;

/** @param {string} text @param {boolean} urgent false: only after a pause */
export function announce(text, urgent) {
  if (!urgent && Date.now() - announcedAt < MIN_INTERVAL_MS) return;
  if ($('announce').textContent === text) return;
  announcedAt = Date.now();
  setText($('announce'), text);
}
