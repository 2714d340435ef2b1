/**
 * Several strategies side by side (`#/compare`): the selected ones are run one after the other, on one instance and on three, and drawn as
 * small bars. Each such series is stored.
 */

import * as admin from '../shared/admin-token.js';
import { $, download, el, setText } from '../shared/dom.js';
import { currentLanguage, formatNumber, t } from '../shared/language.js';
import { nameInTitle } from '../lesson/course.js';
import { resultBars, resultText } from '../run/result-bars.js';
import { pollInterval } from '../lesson/implementation.js';
import * as series from './series.js';

/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../run/runs.js').Runs} Runs */
/** @typedef {import('../page/address.js').Settings} Settings */
/** @typedef {{strategies: Strategy[], runs: Runs}} Context */

/** What is selected at first. */
const DEFAULT_SELECTION = ['none', 'mutex', 'select-for-update', 'version-cas', 'redis-lock', 'zk-lock'];

const selected = new Set(DEFAULT_SELECTION);
/** @type {Set<'one' | 'three'>} */
const targets = new Set(/** @type {const} */ (['one', 'three']));
/** @type {series.Series | null} */
let shownSeries = series.all()[0] ?? null;
/** How far the running series has come. @type {{done: number, all: number, what: string} | null} */
let progress = null;
let isStopped = false;
let message = '';
let lastResults = '';
let lastSelection = '';

/** Selects these strategies and no others. @param {string[]} slugs */
export function selectStrategies(slugs) {
  selected.clear();
  for (const slug of slugs) selected.add(slug);
}

export const isRunning = () => progress != null;
/** Stops after the current run. */
export const stop = () => { isStopped = true; };
export const plannedRuns = () => selected.size * targets.size;

/** @param {Context & {settings: Settings}} context */
export async function run(context) {
  const { strategies, runs, settings } = context;
  if (progress || !plannedRuns()) return;
  const plans = strategies.filter((s) => selected.has(s.slug)).flatMap((s) => /** @type {const} */ (['one', 'three'])
    .filter((target) => targets.has(target)).map((target) => ({ ...settings, target, strategy: s.slug })));
  [isStopped, message] = [false, ''];
  $('picks').open = false;
  const mine = series.begin(t('seriesName', new Date()), settings);
  shownSeries = mine;
  for (const [done, plan] of plans.entries()) {
    if (isStopped) break;
    progress = { done, all: plans.length, what: `${plan.strategy} · ${t(plan.target)}` };
    const row = await runs.runWhenFree(plan, () => !isStopped).catch((error) => {
      message = admin.refusalText(error, $('run-admin'), () => run(context));
      isStopped = true;
      return null;
    });
    // Without the lanes, which are drawn on the lesson: with them thirty series would not fit in the browser's storage.
    if (row) series.add(mine, { ...row, lanes: undefined, polled_ms: await pollInterval(plan.strategy) });
  }
  progress = null;
  if (!mine.rows.length) {
    series.remove(mine);
    shownSeries = series.all()[0] ?? null;
  }
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** @param {Context & {settings: Settings | null, able: boolean}} about `settings`: null if a field is wrong */
export function draw({ strategies, runs, settings, able }) {
  document.title = `${t('compare')} · oversell`;
  drawSelection(strategies);
  const busy = runs.active && !progress;
  setText($('compare-say'), progress ? t('comparing', progress.what, progress.done + 1, progress.all, runs.active ? Math.round((100 * runs.active.snapshot.samples) / Math.max(1, runs.active.snapshot.planned)) : 100)
    : busy ? t('compareBusy', runs.active?.plan.strategy) : message || t(plannedRuns() ? 'compareReady' : 'comparePick'));
  $('run').textContent = t(progress ? 'cancel' : 'runAll');
  $('run').classList.toggle('cancel', progress != null);
  $('run').setAttribute('aria-disabled', String(!progress && (!plannedRuns() || !settings || !able || busy != null && Boolean(busy))));
  drawResults(strategies);
}

/** @param {Strategy[]} strategies */
function drawSelection(strategies) {
  const now = JSON.stringify([strategies.length, t('language'), [...selected], [...targets]]);
  if (now === lastSelection) return;
  lastSelection = now;
  const box = (/** @type {string} */ name, /** @type {string} */ value, /** @type {boolean} */ checked, /** @type {(string | Node)[]} */ ...label) =>
    el('label', {}, el('input', { type: 'checkbox', name, value, checked }), ' ', ...label);
  const lang = currentLanguage();
  const names = strategies.filter((s) => selected.has(s.slug)).map((s) => nameInTitle(s.title[lang]));
  setText($('picked'), t('picked', names.length, names.join(t('and'))));
  const boxes = () => /** @type {HTMLInputElement[]} */ ([...$('compare').querySelectorAll('[type="checkbox"]')]);
  const focused = boxes().find((one) => one === document.activeElement)?.value;
  $('pick').replaceChildren(...strategies.map((s) => el('li', {}, box('slug', s.slug, selected.has(s.slug),
    el('span', { class: 'dim' }, s.chapter), ` ${nameInTitle(s.title[lang])}`))));
  $('pick-targets').replaceChildren(...['one', 'three'].map((target) => box('at', target, targets.has(/** @type {'one'} */ (target)), t(target))));
  // The boxes are new elements: give the focus back.
  boxes().find((one) => one.value === focused)?.focus();
}

/** @param {Strategy[]} strategies */
function drawResults(strategies) {
  const list = series.all();
  const now = JSON.stringify([shownSeries?.id, shownSeries?.name, shownSeries?.rows.length, list.map((s) => [s.id, s.name]), t('language')]);
  if (now === lastResults) return;
  lastResults = now;
  $('series').replaceChildren(...list.map((s) => el('option', { value: s.id, selected: s === shownSeries }, s.name)));
  $('kept').hidden = !list.length;
  if (!shownSeries) {
    $('multiples').replaceChildren();
    setText($('compare-stores'), '');
    return;
  }
  $('series-name').value = shownSeries.name;
  setText($('series-plan'), t('seriesPlan', shownSeries.settings));
  $('multiples').replaceChildren(...table(shownSeries.rows, strategies));
  setText($('compare-stores'), new Set(shownSeries.rows.map((row) => row.store)).size > 1 ? t('otherStores') : '');
}

/** A row for each strategy: one instance, three instances. @param {import('../run/result-bars.js').Row[]} rows @param {Strategy[]} strategies @returns {Element[]} */
function table(rows, strategies) {
  const full = Math.max(1, ...rows.map((row) => row.sold));
  const slugs = [...new Set(rows.map((row) => row.strategy))];
  const cell = (/** @type {import('../run/result-bars.js').Row | undefined} */ row) => el('td', { class: row?.oversold > 0 ? 'red' : '' },
    ...(row ? [resultBars(row, full), el('p', {}, resultText(row))] : ['–']));
  const cost = (/** @type {import('../run/result-bars.js').Row | undefined} */ row) => (row ? `${formatNumber(row.throughput)}/s` : '–');
  const dash = (/** @type {number | null | undefined} */ n) => (n == null ? '–' : formatNumber(n));
  const name = (/** @type {string} */ slug) => nameInTitle(strategies.find((s) => s.slug === slug)?.title[currentLanguage()] ?? slug);
  return slugs.map((slug) => {
    const [one, three] = ['one', 'three'].map((target) => rows.find((row) => row.strategy === slug && row.target === target));
    const some = three ?? one;
    return el('tr', {}, el('th', { scope: 'row' }, name(slug), el('span', { class: 'dim' }, slug), el('span', { class: 'dim' }, t('sells', some?.store)),
      ...(some?.polled_ms ? [el('span', { class: 'dim' }, t('polls', some.polled_ms))] : [])), cell(one), cell(three),
      el('td', { class: 'n' }, cost(one)), el('td', { class: 'n' }, cost(three)),
      el('td', { class: 'n' }, dash(some?.retries)), el('td', { class: 'n' }, some?.waited_max_ms == null ? '–' : `${formatNumber(some.waited_max_ms)} ms`),
      el('td', { class: 'n' }, dash(some?.most_inside)));
  });
}

// ---- buttons ---------------------------------------------------------------------------------------------------------

/** @param {() => void} changed */
export function listen(changed) {
  $('compare').addEventListener('change', (/** @type {Event} */ event) => {
    const { name, value, checked } = /** @type {HTMLInputElement} */ (event.target);
    const set = /** @type {Set<string> | undefined} */ ({ slug: selected, at: targets }[name]);
    if (set) set[checked ? 'add' : 'delete'](value);
    changed();
  });
  $('series').onchange = () => { shownSeries = series.all().find((s) => s.id === $('series').value) ?? null; changed(); };
  $('series-name').onchange = () => { if (shownSeries) series.rename(shownSeries, $('series-name').value.trim() || shownSeries.name); changed(); };
  $('series-json').onclick = () => shownSeries && download('oversell.json', 'application/json', JSON.stringify(shownSeries, null, 2));
  $('series-html').onclick = async () => {
    if (!shownSeries) return;
    const { reportOf } = await import('./html-report.js');
    download('oversell.html', 'text/html', reportOf(shownSeries));
  };
  $('series-remove').onclick = () => {
    if (shownSeries && !progress) series.remove(shownSeries);
    if (!progress) shownSeries = series.all()[0] ?? null;
    changed();
  };
}
