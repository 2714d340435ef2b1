/**
 * Several strategies side by side (`#/compare`): those that are ticked are run one after the other, on one instance and on three,
 * and drawn as small multiples. Each such series is kept.
 */

import * as admin from '../shared/admin-token.js';
import { $, el, put } from '../shared/dom.js';
import { download } from '../shared/download.js';
import { current, number, reason, t } from '../shared/language.js';
import { nameIn } from '../lesson/course.js';
import { bars, result } from '../run/result-bars.js';
import { polled } from '../lesson/implementation.js';
import { reportOf } from './html-report.js';
import * as series from './series.js';

/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../run/runs.js').Runs} Runs */
/** @typedef {import('../page/address.js').Settings} Settings */
/** @typedef {{strategies: Strategy[], runs: Runs}} About */

/** What everybody knows, to begin with. */
const USUAL = ['none', 'mutex', 'select-for-update', 'version-cas', 'redis-lock', 'zk-lock'];

const ticked = new Set(USUAL);
/** @type {Set<'one' | 'three'>} */
const targets = new Set(/** @type {const} */ (['one', 'three']));
/** The one on show. @type {series.Series | null} */
let shown = series.all()[0] ?? null;
/** How far the series under way has come. @type {{done: number, all: number, what: string} | null} */
let under = null;
let stopped = false;
let why = '';
let drawn = '';
let picked = '';

/** Ticks these, and no others: what a lesson compares. @param {string[]} slugs */
export function choose(slugs) {
  ticked.clear();
  for (const slug of slugs) ticked.add(slug);
}

export const going = () => under != null;
/** Stops after the run under way. */
export const stop = () => { stopped = true; };
/** How many runs are asked for. */
export const count = () => ticked.size * targets.size;

/** @param {About & {settings: Settings}} about */
export async function run(about) {
  const { strategies, runs, settings } = about;
  if (under || !count()) return;
  const plans = strategies.filter((s) => ticked.has(s.slug)).flatMap((s) => /** @type {const} */ (['one', 'three'])
    .filter((target) => targets.has(target)).map((target) => ({ ...settings, target, strategy: s.slug })));
  [stopped, why] = [false, ''];
  $('picks').open = false;
  const mine = series.begin(t('seriesName', new Date()), settings);
  shown = mine;
  for (const [done, plan] of plans.entries()) {
    if (stopped) break;
    under = { done, all: plans.length, what: `${plan.strategy} · ${t(plan.target)}` };
    const row = await runs.row(plan, () => !stopped).catch((error) => {
      why = t('failed', admin.isWanted(error, $('run-admin'), () => run(about)) ? t('tokenWanted') : reason(error));
      stopped = true;
      return null;
    });
    // Its lanes are drawn at its lesson; thirty series with theirs would be more than a browser keeps.
    if (row) series.add(mine, { ...row, lanes: undefined, polled_ms: await polled(plan.strategy) });
  }
  under = null;
  if (!mine.rows.length) {
    series.remove(mine);
    shown = series.all()[0] ?? null;
  }
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** @param {About & {settings: Settings | null, able: boolean}} about `settings`: null where a field is wrong */
export function draw({ strategies, runs, settings, able }) {
  document.title = `${t('compare')} · oversell`;
  pick(strategies);
  const busy = runs.live && !under;
  put($('compare-say'), under ? t('comparing', under.what, under.done + 1, under.all, runs.live ? Math.round((100 * runs.live.snapshot.samples) / Math.max(1, runs.live.snapshot.planned)) : 100)
    : busy ? t('compareBusy', runs.live?.plan.strategy) : why || t(count() ? 'compareReady' : 'comparePick'));
  $('run').textContent = t(under ? 'cancel' : 'runAll');
  $('run').classList.toggle('cancel', under != null);
  $('run').setAttribute('aria-disabled', String(!under && (!count() || !settings || !able || busy != null && Boolean(busy))));
  results(strategies);
}

/** @param {Strategy[]} strategies */
function pick(strategies) {
  const now = JSON.stringify([strategies.length, t('language'), [...ticked], [...targets]]);
  if (now === picked) return;
  picked = now;
  const box = (/** @type {string} */ name, /** @type {string} */ value, /** @type {boolean} */ checked, /** @type {(string | Node)[]} */ ...label) =>
    el('label', {}, el('input', { type: 'checkbox', name, value, checked }), ' ', ...label);
  const lang = current();
  const names = strategies.filter((s) => ticked.has(s.slug)).map((s) => nameIn(s.title[lang]));
  put($('picked'), t('picked', names.length, names.join(t('and'))));
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...$('compare').querySelectorAll('[type="checkbox"]')]);
  const focused = boxes().find((one) => one === document.activeElement)?.value;
  $('pick').replaceChildren(...strategies.map((s) => el('li', {}, box('slug', s.slug, ticked.has(s.slug),
    el('span', { class: 'dim' }, s.chapter), ` ${nameIn(s.title[lang])}`))));
  $('pick-targets').replaceChildren(...['one', 'three'].map((target) => box('at', target, targets.has(/** @type {'one'} */ (target)), t(target))));
  // The boxes are new ones: who stood on one stays there.
  boxes().find((one) => one.value === focused)?.focus();
}

/** @param {Strategy[]} strategies */
function results(strategies) {
  const list = series.all();
  const now = JSON.stringify([shown?.id, shown?.name, shown?.rows.length, list.map((s) => [s.id, s.name]), t('language')]);
  if (now === drawn) return;
  drawn = now;
  $('series').replaceChildren(...list.map((s) => el('option', { value: s.id, selected: s === shown }, s.name)));
  $('kept').hidden = !list.length;
  if (!shown) {
    $('multiples').replaceChildren();
    put($('compare-stores'), '');
    return;
  }
  $('series-name').value = shown.name;
  put($('series-plan'), t('seriesPlan', shown.settings));
  $('multiples').replaceChildren(...table(shown.rows, strategies));
  put($('compare-stores'), new Set(shown.rows.map((row) => row.store)).size > 1 ? t('otherStores') : '');
}

/** A line for each strategy: one instance, three instances. @param {import('../run/result-bars.js').Row[]} rows @param {Strategy[]} strategies @returns {Element[]} */
function table(rows, strategies) {
  const full = Math.max(1, ...rows.map((row) => row.sold));
  const slugs = [...new Set(rows.map((row) => row.strategy))];
  const cell = (/** @type {import('../run/result-bars.js').Row | undefined} */ row) => el('td', { class: row?.oversold > 0 ? 'red' : '' },
    ...(row ? [bars(row, full), el('p', {}, result(row))] : ['–']));
  const cost = (/** @type {import('../run/result-bars.js').Row | undefined} */ row) => (row ? `${number(row.throughput)}/s` : '–');
  const dash = (/** @type {number | null | undefined} */ n) => (n == null ? '–' : number(n));
  const name = (/** @type {string} */ slug) => nameIn(strategies.find((s) => s.slug === slug)?.title[current()] ?? slug);
  return slugs.map((slug) => {
    const [one, three] = ['one', 'three'].map((target) => rows.find((row) => row.strategy === slug && row.target === target));
    const some = three ?? one;
    return el('tr', {}, el('th', { scope: 'row' }, name(slug), el('span', { class: 'dim' }, slug), el('span', { class: 'dim' }, t('sells', some?.store)),
      ...(some?.polled_ms ? [el('span', { class: 'dim' }, t('polls', some.polled_ms))] : [])), cell(one), cell(three),
      el('td', { class: 'n' }, cost(one)), el('td', { class: 'n' }, cost(three)),
      el('td', { class: 'n' }, dash(some?.retries)), el('td', { class: 'n' }, some?.waited_max_ms == null ? '–' : `${number(some.waited_max_ms)} ms`),
      el('td', { class: 'n' }, dash(some?.most_inside)));
  });
}

// ---- buttons ---------------------------------------------------------------------------------------------------------

/** @param {() => void} changed */
export function listen(changed) {
  $('compare').addEventListener('change', (/** @type {Event} */ event) => {
    const { name, value, checked } = /** @type {HTMLInputElement} */ (event.target);
    const set = /** @type {Set<string> | undefined} */ ({ slug: ticked, at: targets }[name]);
    if (set) set[checked ? 'add' : 'delete'](value);
    changed();
  });
  $('series').onchange = () => { shown = series.all().find((s) => s.id === $('series').value) ?? null; changed(); };
  $('series-name').onchange = () => { if (shown) series.rename(shown, $('series-name').value.trim() || shown.name); changed(); };
  $('series-json').onclick = () => shown && download('oversell.json', 'application/json', JSON.stringify(shown, null, 2));
  $('series-html').onclick = () => shown && download('oversell.html', 'text/html', reportOf(shown));
  $('series-remove').onclick = () => {
    if (shown && !under) series.remove(shown);
    if (!under) shown = series.all()[0] ?? null;
    changed();
  };
}
