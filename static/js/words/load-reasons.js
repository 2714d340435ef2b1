/** Loads the Chinese reasons when something fails: they are a tenth of what a page weighs. */

import { setChineseReasons } from './reasons.js';

const TIMEOUT_MS = 2000;

async function load() {
  const reasons = await import('./chinese-reasons.js');
  setChineseReasons(reasons.chinese);
}

/** @type {Promise<void> | null} */
let loading = null;

/** Loads them, before a failure is shown. Where nobody sends them in time, it is shown in English. */
export async function loadReasons() {
  // What has failed may be the service: then they are asked for again the next time.
  loading ??= load().catch(() => { loading = null; });
  await Promise.race([loading, new Promise((resolve) => { setTimeout(resolve, TIMEOUT_MS); })]);
}
