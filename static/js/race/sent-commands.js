/** What was really sent: each statement and command of an actor with its result; the one at the cursor is highlighted. */

import { el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { isActor, isForeignDelete, withoutVainWaits } from '../timeline/events.js';

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {{actor: string, at: number}} Moment */
/**
 * `sent`: a statement or command; else our words for what the lock's library did. `raw`: the command as it is named in its answer; `script`:
 * the text of the script that it runs, where it is told first.
 * @typedef {{at: number, actor: string, text: string, raw: string, script: string, sent: boolean, answered: boolean, refused: boolean, came: string}} Line
 */

/** The lock's library, or the machine, does these; without a command of their own they are told in words. */
const SPOKEN_EVENTS = ['locked', 'waits', 'released', 'lost', 'refused-by-row', 'failed', 'stopped', 'continued', 'statement'];
/** A command says these itself. */
const SAID_BY_COMMANDS = ['locked', 'released', 'lost'];
/** Redis does not have a script yet: it is loaded, and the command sent again. */
const [SCRIPT_LOAD, NO_SCRIPT] = ['SCRIPT LOAD', 'NOSCRIPT'];

/** @param {ReplayEvent[]} events @returns {Line[]} */
export function linesOf(events) {
  /** @type {Line[]} */
  const lines = [];
  /** The texts of scripts whose command is sent once more. @type {Map<string, string>} */
  const unloaded = new Map();
  for (const e of withoutVainWaits(events).filter(isActor)) {
    const mine = lines.filter((line) => line.actor === e.actor);
    const last = mine.at(-1);
    if (e.event === 'sent') {
      const [raw, ...script] = (e.value ?? '').split('\n');
      const text = withoutIds(raw).replaceAll(/\bid = \?/g, 'id = 1');
      // Of the same refusal again and again only the first is shown.
      if (raw.includes(SCRIPT_LOAD) || (last?.refused && last.text === text)) continue;
      lines.push({ at: e.t_us, actor: e.actor, text, raw, script: script.join('\n') || (unloaded.get(raw) ?? ''), sent: true, answered: false, refused: false, came: '' });
    } else if (e.event === 'answered') {
      const line = mine.findLast((one) => one.sent && !one.answered && one.raw === e.key);
      if (!line) continue;
      if (e.value?.includes(NO_SCRIPT)) {
        lines.splice(lines.indexOf(line), 1);
        unloaded.set(line.raw, line.script);
      } else Object.assign(line, { answered: true, at: e.t_us, came: `→ ${withoutIds(e.value ?? '')}` });
    } else if (e.event === 'refused') {
      if (last?.sent) {
        last.refused = true;
        last.came = `${last.came} ${t('linesRefused')}`.trim();
      }
    } else if (last?.sent && ['read', 'written'].includes(e.event)) {
      last.at = e.t_us;
      const named = last.text.replace(/\bcount = \?/, `count = ${e.value}`);
      // What is written stands in its place; else the value of a statement, which does not name it, stands beside it.
      if (e.event === 'written' && named !== last.text) last.text = named;
      else if (last.text.includes('?') || !last.answered) last.came = `${e.event === 'read' ? '→' : '←'} ${e.value ?? ''}${e.event === 'read' ? '' : ` ${last.came}`}`.trim();
    } else if (last?.sent && (e.event === 'conflict' || isForeignDelete(e))) {
      last.came = `${last.came} ${e.event === 'conflict' ? t('tick', e) : t('linesForeign', e.owner ?? '')}`.trim();
    } else if (SPOKEN_EVENTS.includes(e.event) && !(SAID_BY_COMMANDS.includes(e.event) && (last?.sent || !hasLock(events, e.actor)))) {
      lines.push({ at: e.t_us, actor: e.actor, text: t('lineSpoken', e), raw: '', script: '', sent: false, answered: true, refused: false, came: isUnlisted(events, e) ? t('linesUnlisted') : '' });
    }
  }
  return lines;
}

/** The library took or released a lock in a server over an encrypted connection to MySQL, of which no statement can be read. @param {ReplayEvent[]} events @param {ReplayEvent} e */
const isUnlisted = (events, e) => SAID_BY_COMMANDS.includes(e.event) && events.some(({ actor, owner }) => actor === 'lock' && owner === e.actor);

/** Did this actor come in by a lock? @param {ReplayEvent[]} events @param {string} actor */
const hasLock = (events, actor) => events.some((e) => (e.actor === 'lock' && e.owner === actor) || (e.actor === actor && ['waits', 'taken'].includes(e.event)));

/** Shortens the ids of products, owners, and of Curator's nodes. @param {string} line */
export const withoutIds = (line) => line.replaceAll(/:\d{9,}|-1\d{9}(?![-\d])/g, '').replaceAll(/\b(\w+-[0-9a-f]{8})-?[0-9a-f-]{20,}:\d+/g, '$1…').replaceAll(/\b(_c_[0-9a-f]{8})-[0-9a-f-]{27}/g, '$1…');

/** What a driver needs, and the columns that no statement of these compares: `SELECT count FROM …` is what matters of them. */
const NOISE = /CAST\((?=\w+ AS SIGNED\))|(?<=CAST\(\w+) AS SIGNED\)(?: AS \w+)?|, (?<read>version|fence)(?=(?:, \w+)* FROM)|, (?<raised>version) = version \+ 1/g;
/** Where a person decides when it ends, a lease outlasts the replay. */
const LONG_LEASE = /\b600000\b/;

/** A command with its noise pale; its text stays what was sent. @param {string} text @param {string} all the commands beside it */
export function withPaleNoise(text, all) {
  const isCompared = (/** @type {string | undefined} */ column) => column != null && new RegExp(`\\b${column} [<=] \\?`).test(all);
  /** @type {(Node | string)[]} */
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(NOISE)) {
    if (isCompared(match.groups?.read ?? match.groups?.raised)) continue;
    parts.push(text.slice(at, match.index), el('span', { class: 'noise' }, match[0]));
    at = match.index + match[0].length;
  }
  const [before, ...after] = text.slice(at).split(LONG_LEASE);
  return [...parts, before, ...after.flatMap((rest) => [el('span', { class: 'noise', 'data-note': t('linesLongLease') }, '600000'), rest])];
}

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
  const all = lines.map(({ text }) => text).join('\n');
  box.replaceChildren(...lines.map((line, i) => el('li', { class: `${i === lit ? 'lit' : i > lit ? 'coming' : ''}${isGuilty(line) ? ' guilty' : ''}`.trim(), 'aria-current': i === lit && 'true' },
    el('b', { 'data-actor': line.actor }, line.actor), line.sent ? el('code', {}, ...withPaleNoise(line.text, all)) : el('em', {}, line.text), el('span', { class: 'came' }, line.came), line.script ? el('pre', { class: 'script' }, line.script) : '')));
  const at = /** @type {HTMLElement | null} */ (box.querySelector('.lit'));
  if (!at) return;
  // The list begins with a whole line, at its end too, where room is added below.
  box.style.paddingBottom = '';
  const top = at.offsetTop - (box.clientHeight - at.offsetHeight) / 2;
  const first = /** @type {HTMLElement[]} */ ([...box.children]).find((line) => line.offsetTop >= top) ?? at;
  const begin = first.offsetTop - box.offsetTop;
  box.style.paddingBottom = `${Math.max(0, begin + box.clientHeight - box.scrollHeight)}px`;
  box.scrollTop = begin;
}
