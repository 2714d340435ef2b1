/** The head of a lesson: where am I, what is claimed, where does it break; and its code, behind a fold. */

import * as api from './api.js';
import { colour } from './code.js';
import { $, el } from './dom.js';
import { current, reason, t } from './lang.js';

/** @type {Record<string, string>} */
const SERVERS = { mysql: 'MySQL', redis: 'Redis', zookeeper: 'ZooKeeper' };

/** @param {string[]} names @returns {string} */
export const servers = (names) => names.map((n) => SERVERS[n] ?? n).join(' + ');

/**
 * A title is "name: what happens"; without the second part, the promise says what happens.
 * @param {string} title @param {string} promise @returns {[string, string]}
 */
export function claim(title, promise) {
  const [, name, rest] = /^(.+?)(?:：|: )(.+)$/.exec(title) ?? [null, title, null];
  if (!rest) return [name, t('promiseLong', promise)];
  return [name, rest[0].toUpperCase() + rest.slice(1) + t('stop')];
}

/** @param {api.Lesson} lesson @param {string | null} replay where its race can be replayed */
export function draw(lesson, replay) {
  const lang = current();
  const [name, sentence] = claim(lesson.title[lang], lesson.promise);
  $('chapter').textContent = lesson.chapter;
  $('title').textContent = name;
  $('claim').textContent = sentence;
  $('promise').textContent = t('promised', lesson.promise);
  $('breaks').textContent = t('breaks', lesson.breaks[lang]);
  const needs = t('needs', servers(lesson.needs));
  $('needs').textContent = lesson.beyond ? `${needs} · ${t('beyond')}` : needs;
  $('replay-link').hidden = !replay;
  if (replay) $('replay-link').href = replay;
  document.title = `${lesson.chapter} ${name} · oversell`;

  const file = `${lesson.slug.replaceAll('-', '_')}.rs`;
  $('code-toggle').replaceChildren(`${t('code')} `, el('code', {}, file), el('span', { class: 'turn' }, '▾'));
  $('code-name').textContent = `src/stock/${file}`;
  if (!$('code').hidden) load(lesson.slug);
}

let shown = '';

/** @param {string} slug */
async function load(slug) {
  if (shown === slug) return;
  shown = slug;
  try {
    const text = await api.source(slug);
    if (shown === slug) $('source').replaceChildren(...colour(text));
  } catch (error) {
    shown = '';
    $('source').textContent = t('failed', reason(error));
  }
}

/** Opens or closes the code. It stands last, after the numbers; the fold takes you there. @param {string} slug */
export function toggleCode(slug) {
  const open = $('code').hidden;
  $('code').hidden = !open;
  $('code-toggle').setAttribute('aria-expanded', open);
  if (!open) return;
  load(slug).then(() => $('code').scrollIntoView({ block: 'start' }));
}
