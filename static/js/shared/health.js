/** The lights in the head: which instances and servers are up; and the words that say what waits for which. */

import * as api from './api.js';
import { $, el, replaceKeepingFocus } from './dom.js';
import { currentLanguage, t } from './language.js';
import { serverNames } from '../lesson/lesson-head.js';

const MAX_ATTEMPTS = 2;
/** @type {Record<string, string>} */
const SHORT_NAMES = { zookeeper: 'zk' };

/** One of several servers of a kind, and what it does. @typedef {{name: string, role: string}} Member */

/**
 * What `GET /health/ready?instances=true` answers. `notes`: each trouble, and whose it is.
 * @typedef {{instance: string, servers: Record<string, {up: boolean, detail?: string, members?: Member[]}>, waiting: string[],
 *   instances?: {name: string, url: string, up: boolean, detail?: string}[], notes?: {says: import('../lesson/course.js').Title}[]}} Health
 */

/**
 * Asks how everybody is. One that does not answer may be an instance that stands still: another is asked.
 * @param {Health | null} before the last answer, which stands where this time there is only a refusal
 * @returns {Promise<Health | null>} null: nobody has answered
 */
export async function fetchHealth(before) {
  for (let n = 0; n < MAX_ATTEMPTS; n += 1) {
    const answer = await api.health().catch((error) => (error instanceof api.ApiError ? before : null));
    if (answer) return answer;
  }
  return null;
}

/** The servers that are down. @param {Health | null} health @returns {string[]} */
export const serversDown = (health) => Object.entries(health?.servers ?? {}).filter(([, s]) => !s.up).map(([name]) => name);

/** One that does not answer has no name but its address; on this machine the port says enough. @param {string} name */
const shortName = (name) => name.replace(/https?:\/\/((127\.0\.0\.1|localhost):)?/g, '');

/** The instances; a lone one knows of no list and names itself. @param {Health | null} health @returns {{name: string, up: boolean, detail?: string}[]} */
export function instances(health) {
  if (health?.instances?.length) return health.instances.map((i) => ({ ...i, name: shortName(i.name) }));
  return health ? [{ name: health.instance, up: true }] : [];
}

/** @param {Health | null} health the last answer @param {boolean} isCurrent is it from now? */
export function draw(health, isCurrent) {
  const state = (/** @type {boolean} */ up) => (isCurrent ? (up ? 'up' : 'down') : 'unknown');
  // A full dot is up, an empty ring is not: no colour needed, and the word stands beside it. What a server says is in English.
  // Each opens what can be done to it: fault-panel.js listens.
  const light = (/** @type {string} */ name, /** @type {boolean} */ up, /** @type {string | undefined} */ detail, /** @type {Member[]} */ members = []) => el('li', { class: state(up), title: `${(currentLanguage() === 'en' && detail) || t(state(up))}\n${t('lightOpens')}` },
    el('button', { type: 'button', 'data-key': name, 'aria-controls': 'breaking' },
      SHORT_NAMES[name] ?? name, dot(), el('span', { class: state(up) === 'down' ? 'word' : 'unseen' }, t(state(up)))),
    // Who led when nobody answered any more may not lead by now.
    ...(isCurrent ? members : []).map((m) => el('span', { class: 'role', 'data-role': m.role }, `${m.name} ${t('role', m.role)}`)));
  replaceKeepingFocus($('lights'), [
    ...instances(health).map((i) => light(i.name, i.up, i.detail)),
    ...Object.entries(health?.servers ?? {}).map(([name, s]) => light(name, s.up, s.detail, s.members))]);
}

const dot = () => el('i', { class: 'dot', 'aria-hidden': 'true' });

/**
 * Who is in trouble, and what waits for it; nothing where nobody is.
 * @param {Health | null} health the last answer @param {boolean} isCurrent is it from now? @param {string} waiting the lessons that wait for a server
 */
export function troubleText(health, isCurrent, waiting) {
  if (!health || !isCurrent) return t('disconnected');
  const down = serversDown(health);
  const dead = instances(health).filter((i) => !i.up).map((i) => i.name);
  // The service says whose trouble it is: an instance's own, or a server's.
  const troubles = health.notes?.map((note) => `${shortName(note.says[currentLanguage()])}${t('stop')}`)
    ?? [down.length && t('serverDown', serverNames(down)), dead.length && t('instanceDown', dead.join(' '))];
  return [...troubles, waiting && t('lessonsWait', waiting)].filter(Boolean).join(t('space'));
}
