/** The lights in the head: which instances and servers are up; and the text that says what waits for them. */

import * as api from './api.js';
import { $, el, replaceKeepingFocus } from './dom.js';
import { currentLanguage, t } from './language.js';
import { serverNames } from '../lesson/lesson-head.js';

const MAX_ATTEMPTS = 2;
/** @type {Record<string, string>} */
const SHORT_NAMES = { zookeeper: 'zk' };

/** One of several servers of a kind, and its role. @typedef {{name: string, role: string}} Member */

/**
 * The answer of `GET /health/ready?instances=true`. `notes`: each trouble, and whose it is.
 * @typedef {{instance: string, servers: Record<string, {up: boolean, detail?: string, members?: Member[]}>, waiting: string[],
 *   instances?: {name: string, url: string, up: boolean, detail?: string}[], notes?: {says: import('../lesson/course.js').Title}[]}} Health
 */

/**
 * Asks for health, and again if an instance does not answer: it may be paused, and another is asked next.
 * @param {Health | null} before the last answer, which stays valid after a refusal
 * @returns {Promise<Health | null>} null if none answered
 */
export async function fetchHealth(before) {
  for (let n = 0; n < MAX_ATTEMPTS; n += 1) {
    const answer = await api.health().catch((error) => (error instanceof api.ApiError ? before : null));
    if (answer) return answer;
  }
  return null;
}

/** @param {Health | null} health @returns {string[]} */
export const serversDown = (health) => Object.entries(health?.servers ?? {}).filter(([, s]) => !s.up).map(([name]) => name);

/** An instance that does not answer has only an address; on this machine the port is enough. @param {string} name */
const shortName = (name) => name.replace(/https?:\/\/((127\.0\.0\.1|localhost):)?/g, '');

/** The instances; a lone one names only itself. @param {Health | null} health @returns {{name: string, up: boolean, detail?: string}[]} */
export function instances(health) {
  if (health?.instances?.length) return health.instances.map((i) => ({ ...i, name: shortName(i.name) }));
  return health ? [{ name: health.instance, up: true }] : [];
}

/** The path of an instance that answers, while another does not: nginx may still choose that one. @param {Health | null} health */
export function pathOfLiving(health) {
  const all = health?.instances ?? [];
  const living = all.find(({ up }) => up);
  return living && all.some(({ up }) => !up) ? `instances/${shortName(living.name)}/` : '';
}

/** @param {Health | null} health the last answer @param {boolean} isCurrent is it recent? */
export function draw(health, isCurrent) {
  const state = (/** @type {boolean} */ up) => (isCurrent ? (up ? 'up' : 'down') : 'unknown');
  // A full dot is up and an empty ring is down, so no colour is needed. A server's detail is in English. fault-panel.js listens to the
  // buttons.
  const light = (/** @type {string} */ name, /** @type {boolean} */ up, /** @type {string | undefined} */ detail, /** @type {Member[]} */ members = []) => el('li', { class: state(up), title: `${(currentLanguage() === 'en' && detail) || t(state(up))}\n${t('lightOpens')}` },
    el('button', { type: 'button', 'data-key': name, 'aria-controls': 'breaking' },
      SHORT_NAMES[name] ?? name, dot(), el('span', { class: state(up) === 'down' ? 'word' : 'unseen' }, t(state(up)))),
    // Roles may have changed since the last answer.
    ...(isCurrent ? members : []).map((m) => el('span', { class: 'role', 'data-role': m.role }, `${m.name} ${t('role', m.role)}`)));
  replaceKeepingFocus($('lights'), [
    ...instances(health).map((i) => light(i.name, i.up, i.detail)),
    ...Object.entries(health?.servers ?? {}).map(([name, s]) => light(name, s.up, s.detail, s.members))]);
}

const dot = () => el('i', { class: 'dot', 'aria-hidden': 'true' });

/** Who is in trouble, and what waits for it. @param {Health | null} health the last answer @param {boolean} isCurrent is it recent? @param {string} [waiting] lessons that wait for a server @returns {string[]} */
export function troubles(health, isCurrent, waiting) {
  if (!health || !isCurrent) return [t('disconnected')];
  const down = serversDown(health);
  const dead = instances(health).filter((i) => !i.up).map((i) => i.name);
  // The service says whether it is an instance's trouble or a server's.
  const found = health.notes?.map((note) => `${shortName(note.says[currentLanguage()])}${t('stop')}`)
    ?? [down.length && t('serverDown', serverNames(down)), dead.length && t('instanceDown', dead.join(' '))];
  return [...found, waiting && t('lessonsWait', waiting)].filter(Boolean);
}
