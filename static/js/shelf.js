/** The shelf by hand: what both stores hold, buying one piece, two who buy at once, and the reset. */

import * as api from './api.js';
import { $, el, put } from './dom.js';
import { number, reason, t } from './lang.js';

const KEPT = 4;
/** Long enough for two requests to meet inside, short enough to wait for. */
const MEET_MS = 200;

/** @type {any} */
let stock = null;
/** @typedef {{ok: boolean, text?: string, instance?: string, remaining?: number, waited_ms?: number, held_ms?: number, retries?: number, fence?: number, since?: number}} Answer */
/** @type {{slug: string, note?: string, answers: Answer[]}[]} */
let purchases = [];

/** Asks both stores. */
export async function refresh() {
  stock = await api.stock();
}

/**
 * @param {import('./course.js').Strategy} strategy @param {number} count what a reset would set @param {boolean} busy a run is on
 * @param {string} where which instances a purchase goes to, in words
 */
export function draw(strategy, count, busy, where) {
  for (const name of ['mysql', 'redis']) {
    const n = stock?.[name]?.count;
    const box = $(name);
    box.classList.toggle('ours', strategy.store === name);
    box.replaceChildren(`${{ mysql: 'MySQL', redis: 'Redis' }[name]} `,
      el('output', { class: 'some' }, n != null ? number(n) : stock ? t('absent') : '–'));
  }
  put($('reset'), t('reset', number(count)));
  // A run has a product of its own, which is not this one: what stands here does not change meanwhile.
  for (const name of ['reset', 'buy', 'buy-two']) $(name).setAttribute('aria-disabled', String(busy));
  put($('shelf-note'), busy ? t('shelfBusy') : where);
  // While somebody waits the seconds run, which nobody wants read out.
  $('answers').setAttribute('aria-busy', String(purchases.some(({ answers }) => answers.some((a) => a.since != null))));
  $('answers').replaceChildren(...purchases.map(item));
}

/** Sets both stores to the count; asks for the admin token where the service wants one. @param {number} count */
export async function reset(count) {
  try {
    stock = await api.reset(count);
    purchases = [];
    $('token').hidden = true;
  } catch (caught) {
    const error = /** @type {any} */ (caught);
    if (!wantToken(error)) note(reason(error));
  }
}

/** Opens the field for the admin token if that is what an error asks for. @param {any} error @returns {boolean} */
export function wantToken(error) {
  if (error.status !== 401) return false;
  $('token').hidden = false;
  $('token').focus();
  note(t('tokenWanted'));
  return true;
}

/**
 * @param {string} slug @param {number} hold_ms @param {1 | 2} people @param {string | null} at the one instance, or any
 * @param {() => void} changed while they wait, each tenth of a second
 */
export async function buy(slug, hold_ms, people, at, changed) {
  const stay = people > 1 ? Math.max(hold_ms, MEET_MS) : hold_ms;
  const since = performance.now();
  const waiting = { slug, note: '', answers: /** @type {Answer[]} */ (Array.from({ length: people }, () => ({ ok: false, since }))) };
  purchases = [waiting, ...purchases].slice(0, KEPT);
  const timer = setInterval(changed, 100);
  const one = async (/** @type {number} */ i) => {
    try {
      const { json, instance } = await bought(slug, stay, at, waiting);
      waiting.answers[i] = { ok: true, instance, ...json };
    } catch (error) {
      waiting.answers[i] = { ok: false, text: reason(/** @type {any} */ (error)) };
    }
  };
  await Promise.all(waiting.answers.map((_, i) => one(i)));
  clearInterval(timer);
  await refresh();
}

/** @param {string} slug @param {number} stay @param {string | null} at @param {{note: string}} purchase */
async function bought(slug, stay, at, purchase) {
  try {
    return await api.buy(slug, stay, at);
  } catch (error) {
    // Nothing was bought: there is no way to one instance alone here.
    if (!at || /** @type {any} */ (error).status !== 404) throw error;
    purchase.note = t('throughNginx');
    return api.buy(slug, stay, null);
  }
}

/** @param {string} text */
function note(text) {
  purchases = [{ slug: '', answers: [{ ok: false, text }] }, ...purchases].slice(0, KEPT);
}

/** Two who bought at once and both left the same number behind: one piece was sold twice. @param {Answer[]} answers @returns {number | null} */
export function soldTwice([a, b]) {
  return a?.ok && b?.ok && a.remaining != null && a.remaining === b.remaining ? a.remaining : null;
}

/** @param {{slug: string, note?: string, answers: Answer[]}} purchase */
function item({ slug, note: said, answers }) {
  const twice = soldTwice(answers);
  const red = twice == null ? [] : [el('span', { class: 'twice' }, t('sameAnswer', number(twice)))];
  return el('li', {}, el('span', { class: 'dim slug' }, slug), el('span', { class: 'each' }, ...answers.map(line), ...red, ...(said ? [el('span', { class: 'dim' }, said)] : [])));
}

/** @param {Answer} a */
function line(a) {
  if (a.since != null) return el('span', { class: 'dim' }, t('buying', ((performance.now() - a.since) / 1000).toFixed(1)));
  if (!a.ok) return el('span', {}, a.text ?? '');
  const parts = [
    a.instance,
    t('bought'),
    a.remaining != null && t('left', number(a.remaining)),
    t('waited', number(a.waited_ms ?? 0)),
    t('held', number(a.held_ms ?? 0)),
    (a.retries ?? 0) > 0 && t('retries', number(a.retries ?? 0)),
    a.fence != null && t('fence', a.fence),
  ];
  return el('span', {}, parts.filter((part) => part).join(' · '));
}
