/**
 * The page once all of it has come (first-view.js shows its lesson before): one state, drawn whole whenever something changed.
 *
 * The address says which lesson and settings; `runs` knows the run under way and the results; every three seconds
 * the service is asked how everybody is. Read on in: address.js, lesson/course.js, run/runs.js, run/sold-and-gone.js.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import * as breaking from '../shared/fault-panel.js';
import * as byHand from '../lesson/commands.js';
import * as compare from '../compare/comparison.js';
import { chaptersOf, find } from '../lesson/course.js';
import * as deadlock from '../lesson/deadlock.js';
import { $, put } from '../shared/dom.js';
import { isStale } from '../run/run-figures.js';
import * as help from './help.js';
import * as how from '../lesson/implementation.js';
import * as jumps from '../lesson/section-links.js';
import * as keys from './keyboard.js';
import * as lang from '../shared/language.js';
import * as lessonHead from '../lesson/lesson-head.js';
import * as lessons from '../lesson/lesson-list.js';
import * as lights from '../shared/health.js';
import * as live from '../run/live-metrics.js';
import * as numbers from '../run/sold-and-gone.js';
import * as projector from './projector.js';
import * as race from '../race/race.js';
import * as rates from '../run/rate-comparison.js';
import * as runLanes from '../run/request-lanes.js';
import { Runs } from '../run/runs.js';
import * as saying from '../run/status-line.js';
import * as settingsForm from '../run/settings-form.js';
import * as shelf from '../run/purchase-by-hand.js';
import * as spine from '../lesson/ninety-minutes.js';
import * as state from './address.js';
import * as strip from '../run/last-results.js';
import * as theme from '../shared/theme.js';
import * as tries from '../lesson/route-buttons.js';
import * as verdict from '../lesson/verdicts.js';
import * as views from './view.js';
import { languages } from '../words/all.js';

lang.learn(languages);

/** So many of the lessons that wait for a server are named. */
const NAMED = 6;

/** @typedef {import('../lesson/course.js').Lesson} Lesson */
/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../run/runs.js').Run} Run */

const ASK_MS = 3000;
/** A second press so soon is a double click, not a wish to cancel. */
const DOUBLE_MS = 500;

/** @type {Strategy[]} */
let strategies = [];
/** @type {import('../lesson/course.js').Chapter[]} */
let chapters = [];
/** @type {import('../lesson/verdicts.js').Verdicts | null} */
let verdicts = null;
/** @type {views.View} */
let view = 'lesson';
/** The one before. @type {views.View | ''} */
let viewed = '';
/** The one on show, or the last one that was. @type {Lesson} */
let lesson;
/** The strategy that shows it; null where it has none. @type {Strategy | null} */
let strategy = null;
/** The last settings that were right. */
let settings = state.DEFAULTS;
/** @type {lights.Health | null} */
let health = null;
/** Whether somebody answered when last asked: nobody has been asked yet. */
let reached = false;
let startedAt = 0;
let drawn = '';
/** How the strategy on show polls, in ms. @type {number | null} */
let polled = null;

const { t } = lang;

const runs = new Runs(draw, () => atShelf(shelf.refresh));

// ---- what is on show -------------------------------------------------------------------------------------------

const all = () => chapters.flatMap((chapter) => chapter.lessons);
/** One instance has nobody to share with: three is not to be had, whatever the address says. */
const alone = () => health != null && lights.instances(health).length < 2;
const target = () => (alone() ? 'one' : settings.target);
/** The instance that "one" is: runs are started at the first. */
const first = () => lights.instances(health)[0]?.name ?? '';
/** @param {Strategy} of */
const down = (of) => lights.down(health).filter((server) => of.needs.includes(server));
const dead = () => lights.instances(health).filter((i) => !i.up).map((i) => i.name).join(' ');
/** The settings that stand in the form; null where one is wrong. */
const chosen = () => state.settingsOf(target(), settingsForm.typed());

function draw() {
  if (!lesson) return;
  frame();
  const running = runs.live != null;
  if (view === 'compare') {
    settingsForm.draw(target(), alone(), first(), compare.count());
    compare.draw({ strategies, runs, settings: chosen(), able: reached });
  } else if (strategy && view === 'lesson') {
    drawRun(strategy);
    rates.draw(lesson, strategies, runs, reached);
    const where = target() === 'one' ? t('toOne', first()) : t('toThree');
    shelf.draw(strategy, settings.count, running, reached, where);
  }
  if (view === 'lesson' || view === 'text') race.redraw();
  if (view === 'verdicts') verdict.list(chapters, verdicts);
}

/** @param {Strategy} its */
function drawRun(its) {
  const mine = { ...settings, target: target() };
  const run = runs.of(its.slug, mine.target);
  const other = runs.other(its.slug, mine.target);
  const running = run === runs.live && run != null;
  const now = chosen();
  const stale = run != null && !running && (!now || isStale(run, now));

  settingsForm.draw(mine.target, alone(), first(), 1);
  settingsForm.button(running ? 'cancel' : 'run', running || !(other || down(its).length || !reached || !now), running);
  numbers.draw(run, stale);
  live.draw(run, mine.target === 'three' ? lights.instances(health).map((i) => i.name) : [], polled);
  if (other) saying.busy(other, whereIs(other.plan));
  else saying.say(saying.sentence({ strategy: its, settings: now, run, stale, down: down(its), dead: dead() }), running);
  put($('of'), run ? t('plan', run.plan) : '');
  runLanes.draw(run, its.slug, stale);
  strip.draw(before(its));
}

/** The last results: here on one and on three, and of the lesson before, as far as there are any. @param {Strategy} its */
function before(its) {
  const earlier = all().slice(0, all().indexOf(lesson)).findLast((l) => l.strategies.length && l.strategies[0] !== its);
  const [strategy] = earlier?.strategies ?? [];
  const at = (/** @type {'one' | 'three'} */ where) => ({
    label: `${lesson.id} ${t(where)}`, row: runs.last(its.slug, where)?.row, href: address({ ...settings, target: where }),
  });
  if (!earlier || !strategy) return [at('one'), at('three')];
  return [at('one'), at('three'), {
    label: `${earlier.id} ${t(target())}`, row: runs.last(strategy.slug, target())?.row, href: state.format(earlier.id, settings),
  }];
}

/** What changes seldom is drawn seldom: links and buttons under the pointer stay the same ones. */
function frame() {
  const now = JSON.stringify([lang.current(), view, view === 'unknown' && location.hash, lesson.id, strategy?.slug, settings, health, reached, theme.current(), verdicts?.at, lesson.byHand?.length]);
  if (now === drawn) return;
  drawn = now;
  lang.translate();
  const waiting = health?.waiting ?? [];
  const shown = view === 'lesson' || view === 'text' ? lesson : null;
  lessons.draw(chapters, shown, waiting);
  const ids = all().filter((l) => l.strategies.some((s) => waiting.includes(s.slug))).map((l) => l.id);
  lights.draw(health, reached);
  breaking.draw(lights.instances(health));
  const trouble = lights.trouble(health, reached, ids.slice(0, NAMED).join(' ') + (ids.length > NAMED ? t('andMore', ids.length) : ''));
  $('notice').hidden = !trouble;
  put($('notice'), trouble);
  if (shown) {
    const isLoad = strategy != null && lesson.loads;
    lessonHead.draw(lesson, strategy, settings, after());
    deadlock.draw(lesson.deadlocks);
    tries.draw(lesson);
    byHand.draw(lesson.id, lesson.byHand ?? [], !isLoad && !lesson.tries.length && !lesson.deadlocks.length && !race.isShown(), race.canPlay());
    verdict.draw(lesson, verdicts);
    how.draw(strategy?.slug ?? null, lesson.steps);
    $('no-button').hidden = Boolean(isLoad || race.isShown() || lesson.tries.length || lesson.deadlocks.length || lesson.steps.length || lesson.byHand?.length);
    jumps.draw(strategy != null && !race.isShown());
  } else if (view === 'unknown') {
    put($('unknown-text'), t('unknownLesson', state.parse(location.hash).name));
    document.title = 'oversell';
  }
  for (const name of ['zh', 'en']) $(name).setAttribute('aria-pressed', String(lang.current() === name));
  $('theme').title = t('theme', theme.current());
  $('theme').setAttribute('aria-label', $('theme').title);
}

/** The lesson that comes next: of the twelve, the next of those. */
const after = () => all().find((l) => l.id === spine.after(lesson.id)) ?? all()[all().indexOf(lesson) + 1] ?? null;

// ---- the address -----------------------------------------------------------------------------------------------

/** The address of the lesson on show. @param {state.Settings} as */
const address = (as) => state.format(lesson.id, as, strategy && strategy !== lesson.strategies[0] ? strategy.slug : null);

/** The address of the lesson that a plan runs; null for one that this page does not know. @param {import('../run/runs.js').Plan} plan */
function whereIs(plan) {
  const there = find(chapters, plan.strategy);
  if (!there) return null;
  const { target, threads, loops, hold_ms, count } = plan;
  const slug = there.strategy === there.lesson.strategies[0] ? null : plan.strategy;
  return state.format(there.lesson.id, { ...settings, target, threads, loops, hold_ms, count }, slug);
}

function fromAddress() {
  const wanted = state.parse(location.hash);
  const found = find(chapters, wanted.name);
  const before = lesson;
  lesson ??= all()[0];
  strategy ??= lesson.strategies[0] ?? null;
  if (wanted.name === 'compare' || wanted.name === 'verdicts') view = wanted.name;
  else if (wanted.name && !found) view = 'unknown';
  else {
    if (found) lesson = found.lesson;
    strategy = lesson.strategies.find((s) => s.slug === wanted.strategy) ?? found?.strategy ?? lesson.strategies[0] ?? null;
    view = strategy ? 'lesson' : 'text';
  }
  views.show(view);
  if (view === 'compare' && wanted.strategy) compare.choose(wanted.strategy.split(','));
  // Filled before it is asked what it holds: a wrong number of the address stands in the form as one that was typed does.
  settingsForm.fill(wanted.typed);
  settings = state.settingsOf(wanted.target, wanted.typed) ?? { ...settings, target: wanted.target };
  // Without a lesson, the address is made to say what is on show.
  if (!wanted.name) history.replaceState(null, '', address(settings));
  const shown = view === 'lesson' || view === 'text' ? lesson : null;
  const raced = race.show(shown?.id ?? '', Boolean(shown?.deadlocks.length));
  // What does not show the claim folds away, unless the address asks for a run.
  if (lesson !== before || view !== viewed) for (const id of ['load', 'how-fold']) $(id).open = (!raced && (view === 'compare' || lesson.loads)) || (id === 'load' && wanted.asksForRun);
  viewed = view;
  if (shown && shown.claim && !shown.byHand) typedIn(shown);
  if (view === 'lesson') lookAt(/** @type {Strategy} */ (strategy).slug);
  if (before && lesson !== before) scrollTo({ top: 0, behavior: 'instant' });
  draw();
}

/** Asks what a student types in a lesson: all lessons together have more than half of the course. @param {Lesson} its */
async function typedIn(its) {
  const found = await api.lesson(its.id).catch(() => null);
  if (!found) return;
  its.byHand = found.by_hand;
  draw();
}

/** Asks the strategy's file whether who waits polls. @param {string} slug */
async function lookAt(slug) {
  polled = null;
  const found = await how.polled(slug);
  if (strategy?.slug === slug) polled = found;
  draw();
}

/** Another target is a step that "back" undoes; a number is not. @param {state.Settings} as @param {boolean} isStep */
function goTo(as, isStep) {
  settings = as;
  const there = view === 'compare' ? state.format('compare', as) : address(as);
  history[isStep ? 'pushState' : 'replaceState'](null, '', there);
  fromAddress();
}

/** @param {1 | -1} by */
function step(by) {
  const next = all()[all().indexOf(lesson) + by];
  if (next) location.hash = `#/${next.id}`;
}

// ---- acts ------------------------------------------------------------------------------------------------------

async function run() {
  // What is folded away is not what is meant.
  if (race.isShown() && !$('load').open) {
    await race.run();
    return;
  }
  if (settingsForm.refuse()) return;
  const now = chosen();
  if (runs.live || !reached || !now) return;
  if (view === 'compare') compare.run({ strategies, runs, settings: now });
  else if (strategy && view === 'lesson' && !down(strategy).length) {
    startedAt = Date.now();
    // One that cannot be started is kept as a run that failed.
    await runs.start({ ...now, strategy: strategy.slug }).catch((error) => admin.isWanted(error, $('run-admin'), run));
  }
}

function cancel() {
  race.cancel();
  compare.stop();
  rates.stop();
  const mine = runs.live && (view === 'compare' || (strategy && !runs.other(strategy.slug, target())));
  if (mine) runs.cancel().catch((error) => admin.isWanted(error, $('run-admin'), cancel));
}

function pressed() {
  if (!runs.live && !compare.going()) run();
  else if (Date.now() - startedAt > DOUBLE_MS) cancel();
}

/** @param {'zh' | 'en'} to */
function speak(to) {
  lang.speak(to);
  draw();
}

/** Does something with the shelf, and draws what came of it. @param {() => Promise<void>} act */
async function atShelf(act) {
  await act().catch(() => {});
  draw();
}

/** @param {1 | 2} people */
function buy(people) {
  const its = strategy;
  // Which instance is the first is known once one has answered.
  if (runs.live || !reached || !its) return;
  atShelf(() => shelf.buy(its.slug, settings.hold_ms, people, target() === 'one' ? first() : null, draw));
}

function reset() {
  if (!runs.live && reached) atShelf(() => shelf.reset(settings.count, reset));
}

/** Asks how everybody is, and what is under way. */
async function ask() {
  const answer = await lights.ask(health);
  [health, reached] = [answer ?? health, answer != null];
  if (reached) await Promise.allSettled([runs.look(), shelf.refresh(), race.look()]);
  draw();
}

/** What the last `oversell course` has found: it may have been run while nobody looked here. */
async function askVerdicts() {
  const last = await api.verdicts().catch(() => null);
  verdicts = last?.lessons ? last : null;
}

/** Asks again and again; not while nobody looks. */
async function askForEver() {
  if (!document.hidden) await ask();
  setTimeout(askForEver, ASK_MS);
}

function listen() {
  settingsForm.listen(draw, (field) => {
    if (field === 'target') settings = { ...settings, target: settingsForm.target() };
    const now = state.settingsOf(settings.target, settingsForm.typed());
    if (now) goTo(now, field === 'target');
    else draw();
  });
  $('run').onclick = pressed;
  race.listen(() => { drawn = ''; draw(); });
  lessons.listen();
  tries.listen();
  breaking.listen(ask);
  compare.listen(draw);
  rates.listen(draw);
  keys.listen({ step, run, cancel, other: race.keyed, help: help.open, search: lessons.search, projector: projector.toggle, language: () => speak(lang.current() === 'zh' ? 'en' : 'zh') });
  addEventListener('hashchange', () => { lessons.unfold(false); fromAddress(); });
  addEventListener('popstate', fromAddress);
  document.addEventListener('visibilitychange', async () => {
    if (document.hidden) return;
    await askVerdicts();
    await ask();
  });
  $('zh').onclick = () => speak('zh');
  $('en').onclick = () => speak('en');
  $('theme').onclick = () => { theme.next(); draw(); };
  $('projector').onclick = projector.toggle;
  $('help-open').onclick = help.open;
  $('skip').onclick = () => $('main').focus();
  $('fold').onclick = () => lessons.unfold($('fold').getAttribute('aria-expanded') !== 'true');
  $('reset').onclick = reset;
  $('buy').onclick = () => buy(1);
  $('buy-two').onclick = () => buy(2);
}

/** The lessons come first: without them there is nothing to show. @param {() => boolean} pressed the race was asked for before there was anybody to play it */
export async function begin(pressed) {
  lang.translate();
  projector.show();
  try {
    const [all, course] = await Promise.all([api.strategies(), api.course().catch(() => null), race.load()]);
    strategies = all;
    chapters = chaptersOf(course?.chapters ? course : null, strategies);
  } catch {
    lights.draw(null, false);
    setTimeout(begin, ASK_MS, pressed);
    return;
  }
  // A reload without an address joins the run under way.
  const asked = Promise.all([ask(), askVerdicts()]);
  if (!location.hash) await asked;
  if (!location.hash && runs.live) {
    history.replaceState(null, '', whereIs(runs.live.plan) ?? '#/');
  }
  listen();
  fromAddress();
  delete document.body.dataset.first;
  if (pressed()) race.run();
  await asked;
  draw();
  setTimeout(askForEver, ASK_MS);
}
