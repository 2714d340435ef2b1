/**
 * The address holds the state: `#/1.3?target=three&threads=100&loops=50&hold_ms=0`.
 *
 * The first part names the lesson by its chapter, as the course does; where two lessons share a chapter (1.7.2), or
 * it is a companion text and no chapter at all ([002]), by its slug: `#/select-share`. Both are understood for every
 * lesson; a shared chapter means its first lesson. `count` is written only where it is not 5000.
 */

/** @type {import('./api.js').Settings} */
export const DEFAULTS = { target: 'three', threads: 100, loops: 50, hold_ms: 0, count: 5000 };

/** @typedef {import('./api.js').Settings} Settings */
/** @typedef {import('./api.js').Lesson} Lesson */

/** The settings that are numbers. @type {('threads' | 'loops' | 'hold_ms' | 'count')[]} */
export const NUMBERS = ['threads', 'loops', 'hold_ms', 'count'];
const LIMITS = { threads: [1, 1000], loops: [1, 10000], hold_ms: [0, 60000], count: [0, 1000000] };

/** @param {string} hash @returns {{lesson: string, settings: typeof DEFAULTS}} what cannot be read is the default */
export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const given = new URLSearchParams(query);
  const settings = { ...DEFAULTS };
  const target = given.get('target');
  if (target === 'one' || target === 'three') settings.target = target;
  for (const name of NUMBERS) {
    const [least, most] = LIMITS[name];
    const text = given.get(name);
    if (/^\d+$/.test(text ?? '')) settings[name] = Math.min(most, Math.max(least, Number(text)));
  }
  return { lesson: decoded(path), settings };
}

/** @param {string} lesson @param {typeof DEFAULTS} settings @returns {string} */
export function format(lesson, settings) {
  const { count, ...always } = settings;
  return `#/${lesson}?${new URLSearchParams(Object.entries(count === DEFAULTS.count ? always : settings).map(([name, n]) => [name, String(n)]))}`;
}

/** What a lesson is called in the address. @param {Lesson[]} all @param {Lesson} lesson */
export function nameOf(all, lesson) {
  const plain = /^[\d.]+$/.test(lesson.chapter);
  return plain && all.filter((l) => l.chapter === lesson.chapter).length === 1 ? lesson.chapter : lesson.slug;
}

/** The lesson of this name, if any. @param {Lesson[]} all @param {string} name */
export function find(all, name) {
  return all.find((l) => l.slug === name) ?? all.find((l) => l.chapter === name);
}

/** @param {string} path */
function decoded(path) {
  try {
    return decodeURIComponent(path);
  } catch {
    return '';
  }
}
