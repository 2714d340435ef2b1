/** Requests what the first view shows before any other module has come: it imports nothing. */

/** The lesson of an empty address. */
const DEFAULT_LESSON = '1.1';
const lessonId = /^#\/(?:replay\/)?([^?]+)/.exec(location.hash)?.[1] ?? DEFAULT_LESSON;
/** A lesson begins with a digit; other views come with the rest. */
const isLesson = /^\d/.test(lessonId);

/** @param {string} path @returns {Promise<any>} null if it cannot be had */
const fetchJson = async (path) => {
  if (!isLesson) return null;
  const answer = await fetch(path, { headers: { accept: 'application/json' }, cache: 'no-store' }).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
};

export const lesson = fetchJson(`course/${lessonId}`);
export const races = fetchJson(`replays?lesson=${lessonId}`);
