/** Buying by hand: the stock of both stores, one purchase, two at once, and the reset. */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { $, el, setText } from '../shared/dom.js';
import { formatNumber, errorText, t } from '../shared/language.js';
import { modelOf } from '../timeline/model.js';
import { Picture } from '../timeline/picture.js';

const MAX_PURCHASES = 4;
/** Long enough for two requests to meet inside, short enough to wait for. */
const MEETING_HOLD_MS = 200;
const TICK_MS = 200;

/** A purchase under way, done, or refused. @typedef {{under_way?: boolean, ok?: boolean, text?: string, instance?: string, [field: string]: any}} Answer */
/** `note`: a remark for the reader. @typedef {{slug: string, since: number, note: string, answers: Answer[]}} Purchase */

/** @type {any} */
let stock = null;
/** Why the stock could not be read; null: it was. @type {any} */
let failure = null;
/** @type {Purchase[]} */
let purchases = [];
const lanes = el('div', { class: 'lanes', tabindex: '0', role: 'group' });
/** Of the last purchases at once. */
const picture = new Picture(lanes);

/** @param {string} [at] the path of the instance that shall answer; nothing: any */
export async function refresh(at) {
  try {
    [stock, failure] = [await api.stock(at), null];
  } catch (error) {
    [stock, failure] = [null, error];
  }
}

/**
 *
 * @param {import('../lesson/course.js').Strategy} strategy @param {number} count the stock after a reset @param {boolean} busy a run is active
 * @param {boolean} reached an instance has answered
 * @param {string} where which instances a purchase goes to, in words
 */
export function draw(strategy, count, busy, reached, where) {
  for (const name of ['mysql', 'redis']) {
    const n = stock?.[name]?.count;
    const box = $(name);
    box.classList.toggle('ours', strategy.store === name);
    box.replaceChildren(`${{ mysql: 'MySQL', redis: 'Redis' }[name]} `,
      el('output', { class: 'some' }, n != null ? formatNumber(n) : stock ? t('absent') : '–'));
  }
  setText($('reset'), t('reset', formatNumber(count)));
  // A run has a product of its own: this stock does not change meanwhile.
  for (const name of ['reset', 'buy', 'buy-two']) $(name).setAttribute('aria-disabled', String(busy || !reached));
  setText($('shelf-note'), failure ? t('shelfUnread', errorText(failure)) : busy ? t('shelfBusy') : where);
  // A screen reader must not read out the running seconds.
  $('answers').setAttribute('aria-busy', String(purchases.some(({ answers }) => answers.some((a) => Boolean(a.under_way)))));
  $('answers').replaceChildren(...purchases.map(purchaseItem));
  const together = purchases[0]?.answers ?? [];
  if (together.length < 2) return;
  lanes.setAttribute('aria-label', t('lanes'));
  $('answers').firstChild.append(lanes);
  const model = modelOf(together.flatMap(eventsOf));
  picture.draw(model, model.end + 1, { live: together.some((a) => Boolean(a.under_way)), moves: false, scaled: true });
}

/** An answer as events, from what it says of its waits, tries and hold. Both requests were sent at once. @param {Answer} answer @param {number} i @returns {import('../timeline/events.js').ReplayEvent[]} */
function eventsOf(answer, i) {
  const event = (/** @type {string} */ name, /** @type {number} */ ms, value = answer.remaining) => ({
    t_us: ms * 1000, actor: 'AB'[i], event: name, instance: answer.instance, ...(value != null && { value: String(value) }),
  });
  const start = event('start', 0);
  if (!answer.ok) return [start];
  /** @type {[number, number][]} */
  const tries = answer.tries_us ?? [];
  const ms = (/** @type {number} */ us) => answer.waited_ms + (us - tries[0][0]) / 1000;
  const vain = tries.slice(0, -1).flatMap(([from, to]) => [event('entered', ms(from), null), event('conflict', ms(to), null)]);
  const last = tries.at(-1);
  const [enteredMs, leftMs] = last ? [ms(last[0]), ms(last[1])] : [answer.waited_ms, answer.waited_ms + answer.held_ms];
  return [start, ...vain, event('entered', enteredMs, null), event('written', leftMs), event('sold', leftMs)];
}

/** Sets the stock of both stores. @param {number} count @param {() => void} again called again with the token */
export async function reset(count, again) {
  try {
    [stock, failure] = [await api.resetStock(count), null];
    purchases = [];
  } catch (error) {
    addNote(admin.askForToken(error, $('admin'), again) ? t('tokenWanted') : errorText(error));
  }
}

/**
 *
 * @param {string} slug @param {number} hold_ms @param {1 | 2} people @param {string | null} at an instance; null: any
 * @param {() => void} changed called on each answer, and on each tick
 */
export async function buy(slug, hold_ms, people, at, changed) {
  const stay = people > 1 ? Math.max(hold_ms, MEETING_HOLD_MS) : hold_ms;
  /** @type {Purchase} */
  const purchase = { slug, since: performance.now(), note: '', answers: Array.from({ length: people }, () => ({ under_way: true })) };
  purchases = [purchase, ...purchases].slice(0, MAX_PURCHASES);
  changed();
  const ticking = setInterval(changed, TICK_MS);
  await Promise.all(purchase.answers.map(async (_, i) => {
    purchase.answers[i] = await buyWithFallback(purchase, stay, at).then(
      ({ json, instance }) => ({ ok: true, instance, ...json }),
      (error) => ({ ok: false, text: errorText(error) }),
    );
    changed();
  }));
  clearInterval(ticking);
  await refresh();
}

/** @param {Purchase} purchase @param {number} stay @param {string | null} at */
async function buyWithFallback(purchase, stay, at) {
  try {
    return await api.buy(purchase.slug, stay, at);
  } catch (error) {
    // Nothing was bought: a single instance cannot be reached here.
    if (!at || /** @type {any} */ (error).status !== 404) throw error;
    purchase.note = t('throughNginx');
    return api.buy(purchase.slug, stay, null);
  }
}

/** @param {string} text */
function addNote(text) {
  purchases = [{ slug: '', since: 0, note: '', answers: [{ ok: false, text }] }, ...purchases].slice(0, MAX_PURCHASES);
}

/** The number that two purchases at once both left; then one piece was sold twice. @param {Answer[]} answers @returns {number | null} */
export function soldTwice([a, b]) {
  return a?.ok && b?.ok && a.remaining != null && a.remaining === b.remaining ? a.remaining : null;
}

/** @param {Purchase} purchase */
function purchaseItem({ slug, since, note: besides, answers }) {
  const soldTwiceAs = soldTwice(answers);
  const red = soldTwiceAs == null ? [] : [el('span', { class: 'twice' }, t('sameAnswer', formatNumber(soldTwiceAs)))];
  return el('li', {}, el('span', { class: 'dim slug' }, slug), el('span', { class: 'each' }, ...answers.map((a) => answerText(a, since)), ...red, ...(besides ? [el('span', { class: 'dim' }, besides)] : [])));
}

/** @param {Answer} a @param {number} since when it was sent */
function answerText(a, since) {
  if (a.under_way) return el('span', { class: 'dim' }, t('buying', ((performance.now() - since) / 1000).toFixed(1)));
  if (!a.ok) return el('span', {}, a.text ?? '');
  const parts = [
    a.instance,
    t('bought'),
    a.remaining != null && t('left', formatNumber(a.remaining)),
    t('waited', formatNumber(a.waited_ms)),
    t('held', formatNumber(a.held_ms)),
    a.retries > 0 && t('retries', formatNumber(a.retries)),
    a.fence != null && t('fence', a.fence),
  ];
  return el('span', {}, parts.filter(Boolean).join(' · '));
}
