/** Why something failed: the service says it in English, and the Chinese page in Chinese. */

/** @type {(reason: string) => string} */
let chinese = (reason) => reason;

/** Until then every reason is in English. @param {(reason: string) => string} translate */
export function setChineseReasons(translate) {
  chinese = translate;
}

/** @param {'zh' | 'en'} lang @param {string} reason */
export const reasonText = (lang, reason) => (lang === 'zh' ? chinese(reason) : reason);

/** Somebody pressed Cancel, which is no failure. @param {string} reason */
export const isCancelled = (reason) => /^(the replay left its script: )?it was cancelled/.test(reason);
