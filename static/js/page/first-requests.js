/** What the first view shows is asked for at once, before any other module has come: nothing is imported here. */

/** The lesson of an address without one. */
const FIRST = '1.1';
const name = /^#\/(?:replay\/)?([^?]+)/.exec(location.hash)?.[1] ?? FIRST;
/** A lesson is a number; what else is on show (the verdicts, a strategy) comes with the rest. */
const isLesson = /^\d/.test(name);

/** @param {string} path @returns {Promise<any>} null where there is no such thing */
const ask = async (path) => {
  if (!isLesson) return null;
  const answer = await fetch(path, { headers: { accept: 'application/json' }, cache: 'no-store' }).catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
};

export const lesson = ask(`course/${name}`);
export const races = ask(`replays?lesson=${name}`);
