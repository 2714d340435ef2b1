/** What was really sent: each statement and command of an actor with its result; the one at the cursor is highlighted. */

import { el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { isActor, isForeignDelete } from '../timeline/events.js';

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {{actor: string, at: number}} Moment */
/** `sent`: a statement or command; else our words for what the lock's library did. @typedef {{at: number, actor: string, text: string, sent: boolean, came: string}} Line */

/** These events are results of the command before, or nothing that was sent. */
const RESULT_EVENTS = ['taken', 'read', 'written', 'checked', 'deleted', 'lost', 'conflict', 'watched', 'renewed', 'compared', 'committed'];
/** The lock's library does these by commands of its own. */
const LIBRARY_EVENTS = ['locked', 'waits', 'released', 'lost', 'refused-by-row', 'failed', 'stopped', 'continued', 'statement'];
/** Of repeated refusals only the first is shown. */
const MAX_SAME_REFUSALS = 1;

/** @param {ReplayEvent[]} events @returns {Line[]} */
export function linesOf(events) {
  /** @type {Line[]} */
  const lines = [];
  for (const e of events.filter(isActor)) {
    const mine = lines.filter((line) => line.actor === e.actor);
    const last = mine.at(-1);
    if (e.event === 'sent') {
      const text = withoutIds(e.value ?? '');
      if (mine.slice(-MAX_SAME_REFUSALS).some((line) => line.text === text && line.came === t('linesRefused'))) continue;
      lines.push({ at: e.t_us, actor: e.actor, text, sent: true, came: '' });
    } else if (e.event === 'refused' && last?.sent) last.came = t('linesRefused');
    else if (last?.sent && !last.came && RESULT_EVENTS.includes(e.event)) {
      last.came = resultOf(e);
      last.at = e.t_us;
    } else if (LIBRARY_EVENTS.includes(e.event) && !(e.event === 'locked' && (last?.sent || !hasLock(events, e.actor)))) {
      lines.push({ at: e.t_us, actor: e.actor, text: t('lineSpoken', e), sent: false, came: '' });
    }
  }
  return lines;
}

/** Did this actor come in by a lock? @param {ReplayEvent[]} events @param {string} actor */
const hasLock = (events, actor) => events.some((e) => (e.actor === 'lock' && e.owner === actor) || (e.actor === actor && ['waits', 'taken'].includes(e.event)));

/** @param {ReplayEvent} e */
function resultOf(e) {
  if (e.event === 'read' || e.event === 'written') return `${e.event === 'read' ? '→' : '←'} ${e.value ?? ''}`;
  if (e.event === 'checked') return `→ ${e.owner || e.value || 'nil'}`;
  if (e.event === 'conflict') return t('tick', e);
  if (e.event === 'lost') return '→ 0';
  if (isForeignDelete(e)) return t('linesForeign', e.owner ?? '');
  return '✓';
}

/** Shortens the ids of products and owners. @param {string} line */
export const withoutIds = (line) => line.replaceAll(/:\d{9,}/g, '').replaceAll(/\b(\w+-[0-9a-f]{8})-?[0-9a-f-]{20,}:\d+/g, '$1…');

/** @type {WeakMap<Element, string>} */
const lastDrawn = new WeakMap();

/** @param {HTMLElement} box @param {ReplayEvent[]} events @param {number} cursor @param {Moment[]} [guilty] the two moments that did it */
export function draw(box, events, cursor, guilty = []) {
  const lines = linesOf(events);
  const lit = lines.findLastIndex((line) => line.at <= cursor);
  const now = JSON.stringify([lines, lit, guilty]);
  const guiltyLines = guilty.map(({ actor, at }) => lines.findLast((line) => line.actor === actor && line.at <= at));
  const isGuilty = (/** @type {Line} */ line) => guiltyLines.includes(line);
  if (lastDrawn.get(box) === now) return;
  lastDrawn.set(box, now);
  box.replaceChildren(...lines.map((line, i) => el('li', { class: `${i === lit ? 'lit' : i > lit ? 'coming' : ''}${isGuilty(line) ? ' guilty' : ''}`.trim(), 'aria-current': i === lit && 'true' },
    el('b', { 'data-actor': line.actor }, line.actor), line.sent ? el('code', {}, line.text) : el('em', {}, line.text), el('span', { class: 'came' }, line.came))));
  const at = /** @type {HTMLElement | null} */ (box.querySelector('.lit'));
  if (!at) return;
  // The list begins with a whole line.
  const top = at.offsetTop - (box.clientHeight - at.offsetHeight) / 2;
  const first = /** @type {HTMLElement[]} */ ([...box.children]).find((line) => line.offsetTop >= top) ?? at;
  box.scrollTop = first.offsetTop - box.offsetTop;
}
