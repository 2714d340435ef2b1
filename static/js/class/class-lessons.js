/**
 * The lessons that a class tries together: the object whose visits are shown, its capacity, and the buttons. Pure.
 *
 * A button sends visitors to a route: `many` at once from the desk, one from a phone.
 */

/** A button. `only`: not on a phone (`desk`). @typedef {{name: string, visit: string, many: number, who: string, only?: 'desk', hold_ms?: number, members?: number, apart_ms?: number}} Action `apart_ms`: the pause between two visitors */
/**
 *
 * @typedef {object} ClassLesson
 * @property {string} id the lesson
 * @property {string} key the object, as the events name it
 * @property {number} room how many may be inside at once; readers together count as one
 * @property {string} state the name of the text that describes its state
 * @property {Action[]} actions
 */

/** A latch or a barrier has no capacity that could be exceeded. */
const UNLIMITED = Infinity;

/** How many parties the double barrier has. */
export const MEMBERS = 3;

/** @param {string} route @param {{many?: number, who?: string, only?: 'desk', hold_ms?: number, members?: number, apart_ms?: number}} [more] @returns {Action} */
const action = (route, { many = 1, who = 'classmate', ...more } = {}) => ({ name: `${route.split('/').at(-1)}${many > 1 ? `-${many}` : ''}`, visit: route, many, who, ...more });

/** @param {string} id @param {string} key @param {string} path @returns {ClassLesson} */
const readersAndWriters = (id, key, path) => ({ id, key, room: 1, state: 'readWrite', actions: [action(`${path}/read`, { who: 'reader' }), action(`${path}/write`, { who: 'writer' })] });

/** @type {ClassLesson[]} */
export const CLASS_LESSONS = [
  { id: '2.10.2', key: 'fairLock', room: 1, state: 'lock', actions: [action('/test/fair', { hold_ms: 2000 }), action('/test/fair', { many: 5, only: 'desk', hold_ms: 2000, apart_ms: 300 })] },
  readersAndWriters('2.10.5', 'rwLock', '/test'),
  { id: '2.10.6', key: 'semaphore', room: 3, state: 'permits', actions: [action('/test/semaphore', { many: 10, only: 'desk' }), action('/test/semaphore')] },
  { id: '2.10.7', key: 'latch', room: UNLIMITED, state: 'latch', actions: [action('/test/latch', { who: 'monitor' }), action('/test/countdown')] },
  readersAndWriters('3.7.3', '/curator/rwlock', '/test/zk'),
  { id: '3.7.5', key: '/locks/semaphore', room: 5, state: 'permits', actions: [action('/test/zk/semaphore', { many: 10, only: 'desk', hold_ms: 5000 }), action('/test/zk/semaphore', { hold_ms: 5000 })] },
  { id: '3.7.6.barrier', key: '/curator/barrier', room: UNLIMITED, state: 'barrier', actions: [
    action('/test/zk/barrier/set', { who: 'teacher', only: 'desk' }), action('/test/zk/barrier/wait'), action('/test/zk/barrier/wait', { many: 5, only: 'desk' }), action('/test/zk/barrier/remove', { who: 'teacher', only: 'desk' })] },
  { id: '3.7.6', key: '/curator/double-barrier', room: UNLIMITED, state: 'meeting', actions: [
    action('/test/zk/double-barrier/enter', { members: MEMBERS }), action('/test/zk/double-barrier/enter', { many: MEMBERS, only: 'desk', members: MEMBERS }), action('/test/zk/double-barrier/leave', { members: MEMBERS })] },
];

/** The herd has a bar chart in place of lanes. */
export const HERD = '3.4.2.herd';

/** Every lesson with a page for the class, in the course's order. */
export const LESSON_IDS = [...CLASS_LESSONS.map((view) => view.id), HERD].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));

/** @param {string} id */
export const classLessonOf = (id) => CLASS_LESSONS.find((view) => view.id === id) ?? null;

/** @param {string} route */
export const isRead = (route) => /\/read$/.test(route);
/** Does a visitor of this route stay inside until the same one calls the route that leaves? @param {string} route */
export const isEnter = (route) => /\/enter$/.test(route);
/** @param {string} route */
export const isLeave = (route) => /\/leave$/.test(route);
