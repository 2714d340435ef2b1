/**
 * A lesson that compares rates: one press runs its strategies in turn, several rounds of each, and draws the median, the spread, and the
 * bound of the claim. A second button draws each from 1 connection to 200.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import { $, el, setText, svg } from '../shared/dom.js';
import { nameInTitle } from '../lesson/course.js';
import { currentLanguage, formatNumber, t } from '../shared/language.js';
import { hasErrors } from './result-bars.js';
import { judge, keyOf, medianOf, sidesOf } from './rate-rounds.js';

/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('./rate-rounds.js').Side} Side */
/** @typedef {import('./rate-rounds.js').Rates} Rates */

/** Rounds of each strategy, and about how long one takes; those of a curve are shorter. */
const [ROUNDS, ROUND_S, CURVE_S] = [3, 2, 1];
const CONNECTIONS = [1, 5, 20, 50, 100, 200];
/** The most requests of one connection. */
const MAX_LOOPS = 200;
const STOCK = 1_000_000;
/** Sizes in the picture's own units. */
const [WIDTH, NAMES_WIDTH, ROW_HEIGHT, CURVE_HEIGHT] = [720, 230, 40, 260];
/** The longest name that a chart has room for. */
const MAX_NAME = { zh: 10, en: 22 };
/** The most numbers on the axis of rates. */
const MAX_TICKS = 5;

/** By lesson. @type {Map<string, Rates[]>} */
const ratesByLesson = new Map();
/** Rates of each side, and its curve, by lesson. @type {Map<string, {seen: Map<string, number[]>, curve: Map<string, [number, number][]>}>} */
const results = new Map();
/** The lesson being compared, and how far it is. @type {{id: string, done: number, all: number} | null} */
let activeComparison = null;
let failure = '';
let lastDrawn = '';
let onChange = () => {};

/** @param {() => void} then called on each change */
export function listen(then) {
  onChange = then;
}

export const stop = () => { activeComparison = null; };

/**
 * @param {{id: string, timing: boolean}} lesson @param {Strategy[]} strategies @param {import('./runs.js').Runs} runs
 * @param {boolean} able
 */
export function draw(lesson, strategies, runs, able) {
  const { id } = lesson;
  if (lesson.timing && !ratesByLesson.has(id)) loadRates(id);
  const rates = ratesByLesson.get(id) ?? [];
  $('rates').hidden = !rates.length;
  if (!rates.length) return;
  const mine = activeComparison?.id === id ? activeComparison : null;
  const busy = !able || (!mine && (activeComparison != null || runs.active != null));
  const { seen, curve } = results.get(id) ?? { seen: new Map(), curve: new Map() };
  const now = JSON.stringify([id, mine, busy, [...seen], [...curve], failure, t('language')]);
  if (now === lastDrawn) return;
  lastDrawn = now;
  const sides = sidesOf(rates);
  const name = (/** @type {Side} */ side) => [nameOf(side.strategy, strategies), side.target === 'three' ? t('three') : '', sides.some((other) => other.threads !== side.threads) ? t('connections', side.threads) : ''].filter(Boolean).join(' · ');
  for (const [button, act] of /** @type {const} */ ([['rates-run', () => start(id, strategies, runs, planRounds)], ['rates-curve', () => start(id, strategies, runs, planCurves)]])) {
    $(button).setAttribute('aria-disabled', String(busy));
    $(button).onclick = () => (mine ? stop() : busy ? undefined : act());
  }
  setText($('rates-run'), t(mine ? 'cancel' : 'ratesRun', sides.length, ROUNDS));
  setText($('rates-curve'), t('ratesCurve', CONNECTIONS[0], CONNECTIONS.at(-1)));
  $('rates-curve').hidden = mine != null;
  setText($('rates-say'), mine ? t('ratesGoing', mine.done + 1, mine.all) : failure);
  $('rates-picture').replaceChildren(...(seen.size ? [rateChart(sides, rates, seen, name)] : []), ...(seen.size ? [el('ul', {}, ...rates.flatMap((pair) => verdictItem(pair, seen, name)))] : []),
    ...(curve.size ? [curveChart(curve, strategies)] : []));
}

/** @param {string} id */
async function loadRates(id) {
  ratesByLesson.set(id, []);
  const found = await api.comparedRates(id).catch(() => null);
  if (found) ratesByLesson.set(id, found);
  else ratesByLesson.delete(id);
  if (found?.length) onChange();
}

/** @param {string} id @param {Strategy[]} strategies @param {import('./runs.js').Runs} runs @param {(id: string) => {side: Side, seconds: number, told: (rate: number) => void}[]} plan */
async function start(id, strategies, runs, plan) {
  const all = plan(id);
  const mine = { id, done: 0, all: all.length };
  activeComparison = mine;
  failure = '';
  onChange();
  try {
    for (const { side, seconds, told: recordOf } of all) {
      if (activeComparison !== mine) break;
      const pace = strategies.find(({ slug }) => slug === side.strategy)?.pace ?? 100;
      const loops = Math.max(1, Math.min(MAX_LOOPS, Math.ceil((pace * seconds) / side.threads)));
      const row = await runs.runWhenFree({ ...side, loops, hold_ms: 0, count: STOCK }, () => activeComparison === mine);
      if (!row) break;
      // A round with errors does not count.
      if (hasErrors(row)) failure = t('ratesErrors', side.strategy);
      else recordOf(row.throughput);
      mine.done += 1;
      onChange();
    }
  } catch (error) {
    failure = admin.refusalText(error, $('rates-admin'), () => start(id, strategies, runs, plan));
  }
  if (activeComparison === mine) activeComparison = null;
  onChange();
}

/** In turn, so that a slow moment of the machine affects all of them. @param {string} id */
function planRounds(id) {
  const before = results.get(id);
  /** @type {Map<string, number[]>} */
  const seen = new Map();
  results.set(id, { seen, curve: before?.curve ?? new Map() });
  const recordOf = (/** @type {Side} */ side) => (/** @type {number} */ rate) => seen.set(keyOf(side), [...seen.get(keyOf(side)) ?? [], rate]);
  return Array.from({ length: ROUNDS }, () => sidesOf(ratesByLesson.get(id) ?? [])).flat().map((side) => ({ side, seconds: ROUND_S, told: recordOf(side) }));
}

/** @param {string} id */
function planCurves(id) {
  /** @type {Map<string, [number, number][]>} */
  const curve = new Map();
  results.set(id, { seen: results.get(id)?.seen ?? new Map(), curve });
  const each = new Map(sidesOf(ratesByLesson.get(id) ?? []).map((side) => [`${side.strategy} ${side.target}`, side]));
  return CONNECTIONS.flatMap((threads) => [...each].map(([name, side]) => ({
    side: { ...side, threads }, seconds: CURVE_S, told: (/** @type {number} */ rate) => curve.set(name, [...curve.get(name) ?? [], [threads, rate]]),
  })));
}

// ---- drawing -----------------------------------------------------------------------------------------------------------

/** A bar for each side: the median, the spread from least to most, and the bound of the claim. @param {Side[]} sides @param {Rates[]} rates @param {Map<string, number[]>} seen @param {(side: Side) => string} name */
function rateChart(sides, rates, seen, name) {
  const bounds = rates.flatMap(({ first, second, least, most }) => {
    const other = seen.get(keyOf(second));
    return other ? [least, ...(most ? [most] : [])].map((times) => ({ at: keyOf(first), rate: times * medianOf(other), times })) : [];
  });
  const full = Math.max(1, ...[...seen.values()].flat(), ...bounds.map(({ rate }) => rate));
  const x = (/** @type {number} */ rate) => NAMES_WIDTH + ((WIDTH - NAMES_WIDTH - 90) * rate) / full;
  const rows = sides.flatMap((side, i) => {
    const all = seen.get(keyOf(side));
    const [top, middle] = [i * ROW_HEIGHT, i * ROW_HEIGHT + ROW_HEIGHT / 2];
    const label = svg('text', { class: 'name', x: 0, y: middle + 5 }, name(side));
    if (!all) return [label];
    const median = medianOf(all);
    return [label, svg('rect', { class: 'rate', 'data-rate': keyOf(side), x: NAMES_WIDTH, y: top + 8, width: x(median) - NAMES_WIDTH, height: ROW_HEIGHT - 16 }),
      svg('path', { class: 'spread', d: `M${x(Math.min(...all))} ${middle - 5}v10m0 -5H${x(Math.max(...all))}m0 -5v10` }),
      ...bounds.filter(({ at }) => at === keyOf(side)).map(({ rate }) => svg('path', { class: 'bound', d: `M${x(rate)} ${top + 2}v${ROW_HEIGHT - 4}` })),
      svg('text', { x: Math.max(x(Math.max(...all)), x(median)) + 8, y: middle + 5 }, `${formatNumber(median)}/s`)];
  });
  return svg('svg', { class: 'rates-bars', viewBox: `0 0 ${WIDTH} ${sides.length * ROW_HEIGHT}`, role: 'img', 'aria-label': t('ratesTitle') }, ...rows);
}

/** @param {Rates} pair @param {Map<string, number[]>} seen @param {(side: Side) => string} name */
function verdictItem(pair, seen, name) {
  const judged = judge(pair, seen);
  if (!judged) return [];
  const [low, high] = [Math.min(...judged.rounds), Math.max(...judged.rounds)].map((ratio) => ratio.toFixed(2));
  return [el('li', { 'data-says': judged.says }, t('ratesSaid', { first: name(pair.first), second: name(pair.second), ratio: judged.ratio.toFixed(2), low, high, least: pair.least, most: pair.most ?? null, says: judged.says }))];
}

/** A strategy's name, or where that is too long for a chart, its slug. @param {string} slug @param {Strategy[]} strategies */
function nameOf(slug, strategies) {
  const lang = currentLanguage();
  const title = strategies.find((strategy) => strategy.slug === slug)?.title[lang];
  const name = title ? nameInTitle(title) : slug;
  return name.length <= MAX_NAME[lang] ? name : slug;
}

/** A line for each strategy; the steps between numbers of connections are equal. @param {Map<string, [number, number][]>} curve @param {Strategy[]} strategies */
function curveChart(curve, strategies) {
  const full = Math.max(1, ...[...curve.values()].flat().map(([, rate]) => rate));
  const x = (/** @type {number} */ threads) => 60 + ((WIDTH - 60 - 200) * CONNECTIONS.indexOf(threads)) / (CONNECTIONS.length - 1);
  const y = (/** @type {number} */ rate) => CURVE_HEIGHT - 30 - ((CURVE_HEIGHT - 60) * rate) / full;
  const step = [1, 2, 5].flatMap((n) => [10, 100, 1000, 10_000].map((power) => n * power)).sort((a, b) => a - b).find((each) => full / each <= MAX_TICKS) ?? full;
  const ticks = Array.from({ length: Math.floor(full / step) + 1 }, (_, i) => i * step);
  const ends = [...curve].map(([name, points]) => ({ name, points, at: y(points[points.length - 1][1]) })).sort((a, b) => a.at - b.at);
  // Move names apart that would overlap.
  ends.forEach((end, i) => { if (i) end.at = Math.max(end.at, ends[i - 1].at + 20); });
  return svg('svg', { class: 'rates-lines', viewBox: `0 0 ${WIDTH} ${CURVE_HEIGHT + 20}`, role: 'img', 'aria-label': t('ratesCurve', CONNECTIONS[0], CONNECTIONS.at(-1)) },
    svg('path', { class: 'axis', d: `M60 10V${CURVE_HEIGHT - 30}H${WIDTH - 190}` }),
    ...ticks.flatMap((rate) => [svg('path', { class: 'grid', d: `M60 ${y(rate)}H${WIDTH - 190}` }), svg('text', { 'data-tick': '', x: 52, y: y(rate) + 5, 'text-anchor': 'end' }, formatNumber(rate))]),
    svg('text', { class: 'title', x: 0, y: 12 }, t('curveRate')),
    svg('text', { class: 'title', x: (60 + WIDTH - 200) / 2, y: CURVE_HEIGHT + 12, 'text-anchor': 'middle' }, t('curveConnections')),
    ...CONNECTIONS.map((threads) => svg('text', { x: x(threads), y: CURVE_HEIGHT - 10, 'text-anchor': 'middle' }, String(threads))),
    ...ends.flatMap(({ name, points, at }, i) => [
      svg('polyline', { 'data-curve': name, class: `line line-${i % 4}`, points: points.map(([threads, rate]) => `${x(threads)},${y(rate)}`).join(' ') }),
      ...points.map(([threads, rate]) => svg('circle', { class: `line-${i % 4}`, cx: x(threads), cy: y(rate), r: 3.5 })),
      svg('text', { class: `line-${i % 4}`, x: x(points[points.length - 1][0]) + 10, y: at + 5 }, nameOf(name.split(' ')[0], strategies), name.endsWith(' three') ? ` · ${t('three')}` : '')]));
}
