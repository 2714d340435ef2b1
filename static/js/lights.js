/** The lights in the head: which instances and servers are up; and the line that says what waits for which. */

import { $, el } from './dom.js';
import { t } from './lang.js';
import { servers } from './lesson.js';

/** @typedef {import('./api.js').Health | null} Health the last answer, if any */

/** @type {Record<string, string>} */
const SHORT = { zookeeper: 'zk' };

/** @param {Health} health @returns {string[]} the servers that are down */
export const down = (health) => Object.entries(health?.servers ?? {}).filter(([, s]) => !s.up).map(([name]) => name);

/** One that does not answer has no name but its address; on this machine the port says enough. */
const short = (/** @type {string} */ name) => name.replace(/^https?:\/\/((127\.0\.0\.1|localhost):)?/, '');

/** The instances; a lone one knows of no list and names itself. @param {Health} health @returns {{name: string, up: boolean}[]} */
export function instances(health) {
  if (health?.instances?.length) return health.instances.map((i) => ({ ...i, name: short(i.name) }));
  return health ? [{ name: health.instance, up: true }] : [];
}

/** @param {Health} health @param {boolean} reached is it from now? */
export function draw(health, reached) {
  const state = (/** @type {boolean} */ up) => (reached ? (up ? 'up' : 'down') : 'unknown');
  // A full dot is up, an empty ring is not: no colour needed, and the word stands beside it.
  const light = (/** @type {string} */ name, /** @type {boolean} */ up, detail = '') => el('li', { class: state(up), title: detail || t(state(up)) },
    name, dot(), el('span', { class: state(up) === 'down' ? 'word' : 'unseen' }, t(state(up))));
  $('lights').replaceChildren(
    ...instances(health).map((i) => light(i.name, i.up)),
    ...Object.entries(health?.servers ?? {}).map(([name, s]) => light(SHORT[name] ?? name, s.up, s.detail)));

  const text = notice(health, reached);
  $('notice').hidden = !text;
  if ($('notice').textContent !== text) $('notice').textContent = text;
}

const dot = () => el('i', { class: 'dot', 'aria-hidden': 'true' });

/** @param {Health} health @param {boolean} reached @returns {string} */
function notice(health, reached) {
  if (!reached || !health) return t('disconnected');
  const off = down(health);
  if (off.length) {
    const all = document.querySelectorAll('#chapters a').length;
    return health.waiting.length >= all
      ? t('allWait', servers(off))
      : t('serverDown', servers(off), health.waiting.join(' '));
  }
  const dead = instances(health).filter((i) => !i.up).map((i) => i.name);
  return dead.length ? t('instanceDown', dead.join(' ')) : '';
}
