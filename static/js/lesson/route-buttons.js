/** Buttons for a lesson's own routes: who asks, and the answers, newest first. */

import * as api from '../shared/api.js';
import { LESSON_IDS } from '../class/class-lessons.js';
import * as courseFigures from './course-figures.js';
import { $, el, setText } from '../shared/dom.js';
import { localStore } from '../shared/storage.js';
import { errorText, t } from '../shared/language.js';

/** @typedef {{id: string, path: string, who: string, begun: number, ended: number, text: string, instance: string, failed: boolean}} LessonRequest */

const MAX_REQUESTS = 12;
const TICK_MS = 100;
/** Lessons that have a page of their own. @type {Record<string, string>} */
const PAGES = { '/limits.html': 'limitsTitle', '/cache.html': 'cacheTitle' };

/** @type {LessonRequest[]} */
let requests = [];
let shown = '';
/** Numbers each request: a browser holds back a second one to the same address. */
let requestCount = 0;
/** @type {number | undefined} */
let timer;

/** @param {{id: string, tries: string[]}} lesson */
export function draw({ id, tries }) {
  const isClassLesson = LESSON_IDS.includes(id);
  $('tries').hidden = tries.length === 0 && !isClassLesson;
  for (const part of ['try-note', 'try-asking']) $(part).hidden = tries.length === 0;
  $('together').hidden = !isClassLesson;
  $('together').href = `class.html#/${id}`;
  const now = JSON.stringify([id, tries, t('language')]);
  if (shown !== now) {
    shown = now;
    $('who').value = localStore.get('who') ?? t('someone');
    $('try-buttons').replaceChildren(...tries.map((path) => {
      if (PAGES[path]) return el('a', { href: path.slice(1) }, t(PAGES[path]));
      const button = el('button', { type: 'button' }, path.replace(/\?who=\{who\}|&who=\{who\}/, ''));
      button.addEventListener('click', () => sendRequest(id, path));
      return button;
    }));
    drawRequests(id);
  }
}

/** @param {string} id @param {string} path */
async function sendRequest(id, path) {
  requestCount += 1;
  const who = `${$('who').value.trim() || t('someone')} ${requestCount}`;
  const one = { id, path, who, begun: performance.now(), ended: 0, text: '', instance: '', failed: false };
  requests = [one, ...requests].slice(0, MAX_REQUESTS);
  drawRequests(id);
  timer ??= setInterval(() => drawTimes(id), TICK_MS);
  try {
    const { text, instance } = await api.requestText(path.replace('{who}', encodeURIComponent(who)));
    Object.assign(one, { text, instance });
  } catch (error) {
    Object.assign(one, { text: errorText(/** @type {any} */ (error)), failed: true });
  }
  one.ended = performance.now();
  drawRequests(id);
}

/** @param {string} id */
function drawRequests(id) {
  const here = requests.filter((a) => a.id === id);
  courseFigures.draw($('answer-figures'), courseFigures.answerFigures(id, here));
  $('tried').replaceChildren(...here.map((a) => el('li', { class: a.failed ? 'failed' : '' },
    el('b', {}, a.who), el('span', {}, a.instance || '…'), el('span', {}, a.ended ? a.text : t('tryWaits')), el('output', { class: 'ms' }, elapsedTime(a)))));
}

/** @param {string} id */
function drawTimes(id) {
  const here = requests.filter((a) => a.id === id);
  [...$('tried').children].forEach((item, i) => here[i] && !here[i].ended && setText(item.lastElementChild, elapsedTime(here[i])));
  if (requests.some((a) => !a.ended)) return;
  clearInterval(timer);
  timer = undefined;
}

/** @param {LessonRequest} one */
const elapsedTime = ({ begun, ended }) => t('at', (((ended || performance.now()) - begun) / 1000).toFixed(1));

export function listen() {
  $('who').onchange = () => localStore.set('who', $('who').value.trim());
}
