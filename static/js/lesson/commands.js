/**
 * The commands that a student types: each to copy, with its output, grouped by terminal.
 *
 * Where replays are allowed a button runs a command on the machine of the servers and shows its real output; another runs all of them in
 * order.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { $, el } from '../shared/dom.js';
import * as stepTable from './step-table.js';
import { errorText, t } from '../shared/language.js';

/** @typedef {import('./course.js').Line} Line */
/** The result of one command. @typedef {{busy: boolean, printed: string, expected: boolean}} LineResult */

/** A command marked `again` is repeated for this long, this often. */
const [RETRY_LIMIT_MS, RETRY_MS] = [30_000, 400];

let lastDrawn = '';
/** @type {{id: string, lines: Line[]}} */
let shownLesson = { id: '', lines: [] };
/** Results by lesson and number. @type {Map<string, LineResult>} */
const results = new Map();
/** Commands that run in the background, by lesson and terminal. @type {Map<string, Promise<void>[]>} */
const background = new Map();
/** The lesson whose commands are all being run. */
let runningLesson = '';

const keyOf = (/** @type {string} */ id, /** @type {number} */ number) => `${id} ${number}`;

/** @param {import('./course.js').Lesson} lesson @param {boolean} alone the lesson has nothing else to do @param {boolean} allowed the page may run commands */
export function draw({ id, byHand, startsLab }, alone, allowed) {
  const lines = byHand ?? [];
  $('by-hand').hidden = lines.length === 0;
  // A lab takes the terminal until it ends.
  const can = allowed && !startsLab;
  const now = JSON.stringify([id, lines, can, t('language')]);
  if (lastDrawn === now) return;
  lastDrawn = now;
  shownLesson = { id, lines };
  $('by-hand').firstElementChild.open = alone;
  const numbered = lines.map((line, i) => ({ ...line, number: i + 1 }));
  const terminals = [...new Set(lines.map((line) => line.terminal))].sort();
  $('type-all').hidden = !can;
  $('type-all').onclick = () => typeAllLines(shownLesson);
  $('terminals').replaceChildren(startsLab ? el('p', { class: 'dim' }, t('typeOwnLab')) : '', ...terminals.map((terminal) => el('details', { open: true },
    el('summary', {}, t('terminal', terminal)),
    el('ol', { class: 'typed' }, ...numbered.filter((line) => line.terminal === terminal).map((line) => lineItem(line, can))))));
  stepTable.draw(lines, (number) => results.get(keyOf(id, number)));
  for (const { number } of numbered) drawResult(id, number);
}

/** Options of the lab that some commands need. */
const LAB_OPTIONS = [{ with: '--replica', like: /replica/ }, { with: '--links', like: /lab fault (--lab-json \S+ )?(cut|slow|expire) / }];

/** @param {Line & {number: number}} line @param {boolean} can */
function lineItem({ number, run, expect, again }, can) {
  const copy = el('button', { type: 'button' }, t('copy'));
  const line = el('pre', { tabindex: '0' }, run);
  copy.addEventListener('click', async () => {
    copy.textContent = await copyText(run, line) ? t('copied') : t('selected');
    setTimeout(() => { copy.textContent = t('copy'); }, 2000);
  });
  const needs = LAB_OPTIONS.filter(({ like }) => like.test(run));
  const type = el('button', { type: 'button', 'data-type': String(number) }, t('typeIt'));
  type.addEventListener('click', () => typeLine(shownLesson, number));
  return el('li', { value: String(number) }, el('span', { class: 'keys' }, copy, can ? type : ''), line,
    again ? el('p', { class: 'dim' }, t('again')) : '',
    needs.length ? el('small', { class: 'dim' }, t('typeNeeds', needs.map((need) => need.with).join(' '))) : '',
    expect ? el('pre', { class: 'expect', tabindex: '0', 'aria-label': t('prints') }, expect) : '',
    el('div', { class: 'printed', 'data-printed': String(number), role: 'status' }));
}

/** Draws a result below its command, if its lesson is on show. @param {string} id @param {number} number */
function drawResult(id, number) {
  const box = id === shownLesson.id ? $('terminals').querySelector(`[data-printed="${number}"]`) : null;
  const one = results.get(keyOf(id, number));
  if (!box) return;
  stepTable.drawAnswer(shownLesson.lines[number - 1], number, one);
  box.replaceChildren(...(one ? [
    el('p', { class: 'dim' }, t(one.busy ? 'typing' : one.expected ? 'printedAsSaid' : 'printed')),
    ...(one.printed ? [el('pre', { tabindex: '0', 'aria-label': t('printed') }, one.printed)] : [])] : []));
  $('terminals').querySelector(`[data-type="${number}"]`)?.setAttribute('aria-disabled', String(one?.busy ?? false));
}

/** @param {string} id @param {number} number @param {LineResult} one */
function setResult(id, number, one) {
  results.set(keyOf(id, number), one);
  drawResult(id, number);
}

/** Runs one command; `wait` waits for those in the background. @param {{id: string, lines: Line[]}} lesson @param {number} number @returns {Promise<boolean>} whether it was run */
async function typeLine({ id, lines }, number) {
  const { run, terminal, again } = lines[number - 1];
  if (results.get(keyOf(id, number))?.busy) return false;
  setResult(id, number, { busy: true, printed: '', expected: false });
  const at = `${id} ${terminal}`;
  if (run === 'wait') {
    await Promise.all(background.get(at) ?? []);
    background.delete(at);
    setResult(id, number, { busy: false, printed: '', expected: true });
    return true;
  }
  let isTyped = true;
  const ended = (async () => {
    try {
      const end = performance.now() + (again ? RETRY_LIMIT_MS : 0);
      for (;;) {
        const { printed, expected } = await api.typeLine(id, number);
        const isOver = expected || performance.now() >= end;
        setResult(id, number, { busy: !isOver, printed, expected });
        if (isOver) return;
        await new Promise((resolve) => { setTimeout(resolve, RETRY_MS); });
      }
    } catch (error) {
      isTyped = false;
      const isRefused = admin.askForToken(error, $('type-admin'), () => typeLine({ id, lines }, number));
      setResult(id, number, { busy: false, printed: isRefused ? t('tokenWanted') : errorText(/** @type {any} */ (error)), expected: false });
    }
  })();
  if (run.endsWith(' &')) background.set(at, [...background.get(at) ?? [], ended]);
  else await ended;
  return isTyped;
}

/** Runs all of them in order. @param {{id: string, lines: Line[]}} lesson */
async function typeAllLines(lesson) {
  if (runningLesson) return;
  runningLesson = lesson.id;
  $('type-all').setAttribute('aria-disabled', 'true');
  for (const i of lesson.lines.keys()) if (!(await typeLine(lesson, i + 1))) break;
  runningLesson = '';
  $('type-all').setAttribute('aria-disabled', 'false');
}

/** Where the browser refuses the clipboard, the command is selected. @param {string} text @param {Element} element */
async function copyText(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(element);
    return false;
  }
}
