/**
 * What a student types to see a lesson: each line to copy, with what it prints, one fold for each terminal. Where replays are allowed a
 * line is typed here by its button, where the servers are, and what it really prints stands below it; or all of them, in their order.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { $, el } from '../shared/dom.js';
import { reason, t } from '../shared/language.js';

/** @typedef {import('./course.js').Line} Line */
/** What a line came to. @typedef {{busy: boolean, printed: string, expected: boolean}} Typed */

/** A line that is to be typed again is, for so long, so often. */
const [LONG_MS, AGAIN_MS] = [30_000, 400];

let shown = '';
/** The lesson on show, and its lines. @type {{id: string, lines: Line[]}} */
let own = { id: '', lines: [] };
/** What was typed, by lesson and number. @type {Map<string, Typed>} */
const typed = new Map();
/** Lines that go on beside the next ones, by lesson and terminal. @type {Map<string, Promise<void>[]>} */
const beside = new Map();
/** All lines are being typed: the lesson's. */
let going = '';

const key = (/** @type {string} */ id, /** @type {number} */ number) => `${id} ${number}`;

/** @param {string} id @param {Line[]} lines in the order in which they are typed @param {boolean} alone there is nothing else to do in this lesson @param {boolean} can they can be typed from here */
export function draw(id, lines, alone, can) {
  $('by-hand').hidden = lines.length === 0;
  const now = JSON.stringify([id, lines, can, t('language')]);
  if (shown === now) return;
  shown = now;
  own = { id, lines };
  $('by-hand').firstElementChild.open = alone;
  const numbered = lines.map((line, i) => ({ ...line, number: i + 1 }));
  const terminals = [...new Set(lines.map((line) => line.terminal))].toSorted();
  $('type-all').hidden = !can;
  $('type-all').onclick = () => typeAll(own);
  $('terminals').replaceChildren(...terminals.map((terminal) => el('details', { open: true },
    el('summary', {}, t('terminal', terminal)),
    el('ol', { class: 'typed' }, ...numbered.filter((line) => line.terminal === terminal).map((line) => item(line, can))))));
  for (const { number } of numbered) tell(id, number);
}

/** What a lab must be started with for a line. */
const NEEDS = [{ with: '--replica', like: /replica/ }, { with: '--ways', like: /lab fault (cut|slow|expire) / }];

/** @param {Line & {number: number}} line @param {boolean} can */
function item({ number, run, expect, again }, can) {
  const copy = el('button', { type: 'button' }, t('copy'));
  const line = el('pre', { tabindex: '0' }, run);
  copy.addEventListener('click', async () => {
    copy.textContent = await copied(run, line) ? t('copied') : t('selected');
    setTimeout(() => { copy.textContent = t('copy'); }, 2000);
  });
  const needs = NEEDS.filter(({ like }) => like.test(run));
  const type = el('button', { type: 'button', 'data-type': String(number) }, t('typeIt'));
  type.addEventListener('click', () => typeOne(own, number));
  return el('li', { value: String(number) }, el('span', { class: 'keys' }, copy, can ? type : ''), line,
    again ? el('p', { class: 'dim' }, t('again')) : '',
    needs.length ? el('small', { class: 'dim' }, t('typeNeeds', needs.map((need) => need.with).join(' '))) : '',
    expect ? el('pre', { class: 'expect', tabindex: '0', 'aria-label': t('prints') }, expect) : '',
    el('div', { class: 'printed', 'data-printed': String(number), role: 'status' }));
}

/** Writes what a line came to below it, where it is on show. @param {string} id @param {number} number */
function tell(id, number) {
  const box = id === own.id ? $('terminals').querySelector(`[data-printed="${number}"]`) : null;
  const one = typed.get(key(id, number));
  if (!box) return;
  box.replaceChildren(...(one ? [
    el('p', { class: 'dim' }, t(one.busy ? 'typing' : one.expected ? 'printedAsSaid' : 'printed')),
    ...(one.printed ? [el('pre', { tabindex: '0', 'aria-label': t('printed') }, one.printed)] : [])] : []));
  $('terminals').querySelector(`[data-type="${number}"]`)?.setAttribute('aria-disabled', String(one?.busy ?? false));
}

/** @param {string} id @param {number} number @param {Typed} one */
function set(id, number, one) {
  typed.set(key(id, number), one);
  tell(id, number);
}

/** Types a line; who waits for those beside waits here. @param {{id: string, lines: Line[]}} lesson @param {number} number @returns {Promise<boolean>} whether it was typed */
async function typeOne({ id, lines }, number) {
  const { run, terminal, again } = lines[number - 1];
  if (typed.get(key(id, number))?.busy) return false;
  set(id, number, { busy: true, printed: '', expected: false });
  const at = `${id} ${terminal}`;
  if (run === 'wait') {
    await Promise.all(beside.get(at) ?? []);
    beside.delete(at);
    set(id, number, { busy: false, printed: '', expected: true });
    return true;
  }
  let went = true;
  const ended = (async () => {
    try {
      const end = performance.now() + (again ? LONG_MS : 0);
      for (;;) {
        const { printed, expected } = await api.typeLine(id, number);
        const over = expected || performance.now() >= end;
        set(id, number, { busy: !over, printed, expected });
        if (over) return;
        await new Promise((resolve) => { setTimeout(resolve, AGAIN_MS); });
      }
    } catch (error) {
      went = false;
      const isRefused = admin.isWanted(error, $('type-admin'), () => typeOne({ id, lines }, number));
      set(id, number, { busy: false, printed: isRefused ? t('tokenWanted') : reason(/** @type {any} */ (error)), expected: false });
    }
  })();
  if (run.endsWith(' &')) beside.set(at, [...beside.get(at) ?? [], ended]);
  else await ended;
  return went;
}

/** All of them, in their order. @param {{id: string, lines: Line[]}} lesson */
async function typeAll(lesson) {
  if (going) return;
  going = lesson.id;
  $('type-all').setAttribute('aria-disabled', 'true');
  for (const i of lesson.lines.keys()) if (!(await typeOne(lesson, i + 1))) break;
  going = '';
  $('type-all').setAttribute('aria-disabled', 'false');
}

/** Where the browser lets no page write to the clipboard, the line is selected. @param {string} text @param {Element} shown */
async function copied(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection()?.selectAllChildren(shown);
    return false;
  }
}
