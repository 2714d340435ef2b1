/** A lesson's own routes, each a button that asks from here: who asks, and what came of it, the newest first. */

import * as api from '../shared/api.js';
import { LESSONS } from '../class/class-lessons.js';
import { $, el, put } from '../shared/dom.js';
import { always } from '../shared/storage.js';
import { reason, t } from '../shared/language.js';

/** @typedef {{id: string, path: string, who: string, begun: number, ended: number, text: string, instance: string, failed: boolean}} Asked */

const KEPT = 12;
const TICK_MS = 100;
/** Pages that draw what their lessons are about. @type {Record<string, string>} */
const PAGES = { '/limits.html': 'limitsTitle', '/cache.html': 'cacheTitle' };

/** @type {Asked[]} */
let asked = [];
let shown = '';
/** So that no two requests have the same address: a browser would hold the second back. */
let number = 0;
/** @type {number | undefined} */
let ticking;

/** @param {{id: string, tries: string[]}} lesson */
export function draw({ id, tries }) {
  const together = LESSONS.includes(id);
  $('tries').hidden = tries.length === 0 && !together;
  for (const part of ['try-note', 'try-asking']) $(part).hidden = tries.length === 0;
  $('together').hidden = !together;
  $('together').href = `class.html#/${id}`;
  const now = JSON.stringify([id, tries, t('language')]);
  if (shown !== now) {
    shown = now;
    $('who').value = always.get('who') ?? t('someone');
    $('try-buttons').replaceChildren(...tries.map((path) => {
      if (PAGES[path]) return el('a', { href: path.slice(1) }, t(PAGES[path]));
      const button = el('button', { type: 'button' }, path.replace(/\?who=\{who\}|&who=\{who\}/, ''));
      button.addEventListener('click', () => ask(id, path));
      return button;
    }));
    answers(id);
  }
}

/** @param {string} id @param {string} path */
async function ask(id, path) {
  number += 1;
  const who = `${$('who').value.trim() || t('someone')} ${number}`;
  const one = { id, path, who, begun: performance.now(), ended: 0, text: '', instance: '', failed: false };
  asked = [one, ...asked].slice(0, KEPT);
  answers(id);
  ticking ??= setInterval(() => tick(id), TICK_MS);
  try {
    const { text, instance } = await api.tried(path.replace('{who}', encodeURIComponent(who)));
    Object.assign(one, { text, instance });
  } catch (error) {
    Object.assign(one, { text: reason(/** @type {any} */ (error)), failed: true });
  }
  one.ended = performance.now();
  answers(id);
}

/** @param {string} id */
function answers(id) {
  const here = asked.filter((a) => a.id === id);
  $('tried').replaceChildren(...here.map((a) => el('li', { class: a.failed ? 'failed' : '' },
    el('b', {}, a.who), el('span', {}, a.instance || '…'), el('span', {}, a.ended ? a.text : t('tryWaits')), el('output', { class: 'ms' }, time(a)))));
}

/** @param {string} id */
function tick(id) {
  const here = asked.filter((a) => a.id === id);
  [...$('tried').children].forEach((item, i) => here[i] && !here[i].ended && put(item.lastElementChild, time(here[i])));
  if (asked.some((a) => !a.ended)) return;
  clearInterval(ticking);
  ticking = undefined;
}

/** @param {Asked} one */
const time = ({ begun, ended }) => t('at', (((ended || performance.now()) - begun) / 1000).toFixed(1));

export function listen() {
  $('who').onchange = () => always.set('who', $('who').value.trim());
}
