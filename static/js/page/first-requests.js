/** What the first view shows is asked for at once, before any other module has come: nothing is imported here. */

/** The lesson of an address without one. */
const DEFAULT_LESSON = '1.1';
const lessonId = /^#\/(?:replay\/)?([^?]+)/.exec(location.hash)?.[1] ?? DEFAULT_LESSON;
/** A lesson is a number; what else is on show (the verdicts, a strategy) comes with the rest. */
const isLesson = /^\d/.test(lessonId);

/** @param {string} path @returns {Promise<any>} null where there is no such thing */
const fetchJson = async (path) => {
  if (!isLesson) return null;
  const answer = await fetch(path, { headers: { accept: 'application/json' }, cache: 'no-store' }).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
};

export const lesson = fetchJson(`course/${lessonId}`);
export const races = fetchJson(`replays?lesson=${lessonId}`);
