/** Tells a screen reader how a run goes: politely, and seldom, or it could say nothing else. */

import { $, put } from './dom.js';

const SELDOM_MS = 8000;
let last = 0;

/** @param {string} text @param {boolean} now false: only if nothing was said for a while */
export function announce(text, now) {
  if (!now && Date.now() - last < SELDOM_MS) return;
  if ($('announce').textContent === text) return;
  last = Date.now();
  put($('announce'), text);
}
