/**
 * The lessons that a class tries together: whose visits are shown, how many may be inside, and the buttons. Pure.
 *
 * A button sends people to a route: `many` at once from this page, one from a phone.
 */

/** What stands behind a button. `only`: not on a phone (`desk`). @typedef {{name: string, visit: string, many: number, who: string, only?: 'desk', hold_ms?: number, members?: number, apart_ms?: number}} Action `apart_ms`: they come one after the other */
/**
 * @typedef {object} View
 * @property {string} id the lesson
 * @property {string} key the object, as the events name it
 * @property {number} room so many may be inside at once; readers together count as one
 * @property {string} state which words say how it stands
 * @property {Action[]} actions
 */

/** Nobody is ever one too many: who goes past a latch or a barrier. */
const ANY = Infinity;

/** How many meet at the double barrier. */
export const MEMBERS = 3;

/** @param {string} route @param {{many?: number, who?: string, only?: 'desk', hold_ms?: number, members?: number, apart_ms?: number}} [more] @returns {Action} */
const act = (route, { many = 1, who = 'classmate', ...more } = {}) => ({ name: `${route.split('/').at(-1)}${many > 1 ? `-${many}` : ''}`, visit: route, many, who, ...more });

/** @param {string} id @param {string} key @param {string} path @returns {View} */
const readersAndWriters = (id, key, path) => ({ id, key, room: 1, state: 'readWrite', actions: [act(`${path}/read`, { who: 'reader' }), act(`${path}/write`, { who: 'writer' })] });

/** @type {View[]} */
export const VIEWS = [
  { id: '2.10.2', key: 'fairLock', room: 1, state: 'lock', actions: [act('/test/fair', { hold_ms: 2000 }), act('/test/fair', { many: 5, only: 'desk', hold_ms: 2000, apart_ms: 300 })] },
  readersAndWriters('2.10.5', 'rwLock', '/test'),
  { id: '2.10.6', key: 'semaphore', room: 3, state: 'permits', actions: [act('/test/semaphore', { many: 10, only: 'desk' }), act('/test/semaphore')] },
  { id: '2.10.7', key: 'latch', room: ANY, state: 'latch', actions: [act('/test/latch', { who: 'monitor' }), act('/test/countdown')] },
  readersAndWriters('3.7.3', '/curator/rwlock', '/test/zk'),
  { id: '3.7.5', key: '/locks/semaphore', room: 5, state: 'permits', actions: [act('/test/zk/semaphore', { many: 10, only: 'desk', hold_ms: 5000 }), act('/test/zk/semaphore', { hold_ms: 5000 })] },
  { id: '3.7.6.barrier', key: '/curator/barrier', room: ANY, state: 'barrier', actions: [
    act('/test/zk/barrier/set', { who: 'teacher', only: 'desk' }), act('/test/zk/barrier/wait'), act('/test/zk/barrier/wait', { many: 5, only: 'desk' }), act('/test/zk/barrier/remove', { who: 'teacher', only: 'desk' })] },
  { id: '3.7.6', key: '/curator/double-barrier', room: ANY, state: 'meeting', actions: [
    act('/test/zk/double-barrier/enter', { members: MEMBERS }), act('/test/zk/double-barrier/enter', { many: MEMBERS, only: 'desk', members: MEMBERS }), act('/test/zk/double-barrier/leave', { members: MEMBERS })] },
];

/** The herd has no lanes, and a picture of its own. */
export const HERD = '3.4.2.herd';

/** Every lesson that has a page here, in the course's order. */
export const LESSONS = [...VIEWS.map((view) => view.id), HERD].toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true }));

/** @param {string} id */
export const viewOf = (id) => VIEWS.find((view) => view.id === id) ?? null;

/** Does this visit read, together with others? @param {string} route */
export const isShared = (route) => /\/read$/.test(route);
/** Does who came by this route stay inside until it leaves by another? @param {string} route */
export const isEnter = (route) => /\/enter$/.test(route);
/** @param {string} route */
export const isLeave = (route) => /\/leave$/.test(route);
