/** Why something failed: the service says it in English, and the Chinese page in Chinese. The translations come when something fails. */

const TIMEOUT_MS = 2000;

/** @type {(reason: string) => string} */
let chinese = (reason) => reason;

async function load() {
  const reasons = await import('./chinese-reasons.js');
  chinese = reasons.chinese;
}

/** @type {Promise<void> | null} */
let loading = null;

/** Loads the translations, before a failure is shown. Where nobody sends them in time, it is shown in English. */
export async function loadReasons() {
  // What has failed may be the service: then they are asked for again the next time.
  loading ??= load().catch(() => { loading = null; });
  await Promise.race([loading, new Promise((resolve) => { setTimeout(resolve, TIMEOUT_MS); })]);
}

/** @param {'zh' | 'en'} lang @param {string} reason */
export const reasonText = (lang, reason) => (lang === 'zh' ? chinese(reason) : reason);

/** Somebody pressed Cancel, which is no failure. @param {string} reason */
export const isCancelled = (reason) => /^(the replay left its script: )?it was cancelled/.test(reason);
