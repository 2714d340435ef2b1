/** What the first view shows is asked for at once, before any other module has come: nothing is imported here. */

/** The lesson of an address without one. */
const FIRST = '1.1';
const id = /^#\/(?:replay\/)?([^?]+)/.exec(location.hash)?.[1] ?? FIRST;

/** @param {string} path @returns {Promise<any>} null where there is no such thing */
const ask = (path) => fetch(path, { headers: { accept: 'application/json' }, cache: 'no-store' }).then((answer) => (answer.ok ? answer.json() : null)).catch(() => null);

export const lesson = ask(`course/${id}`);
export const races = ask(`replays?lesson=${id}`);
