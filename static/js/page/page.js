/**
 * The whole page (first-view.js shows its lesson before): one state, drawn again whenever something changes.
 *
 * The address holds lesson and settings; `runs` holds the active run and the results; health is polled every three seconds. Read on in
 * address.js, lesson/course.js, run/runs.js, run/sold-and-gone.js.
 */

import * as admin from '../shared/admin-token.js';
import * as api from '../shared/api.js';
import * as faultPanel from '../shared/fault-panel.js';
import * as commands from '../lesson/commands.js';
import * as comparison from '../compare/comparison.js';
import { chaptersOf, findLesson } from '../lesson/course.js';
import { numberOf } from '../lesson/lesson-number.js';
import * as courseFigures from '../lesson/course-figures.js';
import * as deadlock from '../lesson/deadlock.js';
import { $, setText } from '../shared/dom.js';
import { isStale } from '../run/run-figures.js';
import * as help from './help.js';
import * as implementation from '../lesson/implementation.js';
import * as sectionLinks from '../lesson/section-links.js';
import * as keyboard from './keyboard.js';
import * as lang from '../shared/language.js';
import * as lessonHead from '../lesson/lesson-head.js';
import * as lessonList from '../lesson/lesson-list.js';
import * as healthLights from '../shared/health.js';
import * as liveMetrics from '../run/live-metrics.js';
import * as soldAndGone from '../run/sold-and-gone.js';
import * as projector from './projector.js';
import * as race from '../race/race.js';
import * as rateComparison from '../run/rate-comparison.js';
import * as requestLanes from '../run/request-lanes.js';
import { Runs } from '../run/runs.js';
import * as statusLine from '../run/status-line.js';
import * as settingsForm from '../run/settings-form.js';
import * as presence from '../class/presence.js';
import * as purchaseByHand from '../run/purchase-by-hand.js';
import * as ninetyMinutes from '../lesson/ninety-minutes.js';
import * as address from './address.js';
import * as opening from './opening.js';
import * as lastResults from '../run/last-results.js';
import { sessionStore } from '../shared/storage.js';
import * as theme from '../shared/theme.js';
import * as routeButtons from '../lesson/route-buttons.js';
import * as verdictViews from '../lesson/verdicts.js';
import * as viewSwitch from './view.js';
import { languages } from '../words/all.js';

lang.addWords(languages);

/** How many lessons that wait for a server are named. */
const MAX_NAMED_LESSONS = 6;

/** @typedef {import('../lesson/course.js').Lesson} Lesson */
/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../run/runs.js').Run} Run */

const POLL_MS = 3000;
/** What a race has stopped runs again this long after its end. */
const REPAIR_MS = 10_000;
/** A second press within this time is a double click and does not cancel. */
const DOUBLE_CLICK_MS = 500;

/** @type {Strategy[]} */
let strategies = [];
/** @type {import('../lesson/course.js').Chapter[]} */
let chapters = [];
/** @type {import('../lesson/verdicts.js').Verdicts | null} */
let verdicts = null;
/** @type {viewSwitch.View} */
let view = 'lesson';
/** @type {viewSwitch.View | ''} */
let previousView = '';
/** The lesson on show, or the last one that was. @type {Lesson} */
let lesson;
/** Its strategy on show; null if it has none. @type {Strategy | null} */
let strategy = null;
/** The last valid settings. */
let settings = address.DEFAULT_SETTINGS;
/** @type {healthLights.Health | null} */
let health = null;
/** Whether the latest poll was answered. */
let isReached = false;
/** Before the first answer nothing is known to be wrong. */
let isAsked = false;
/** The troubles that no race has caused, and until when those that come are caused by one. @type {string[]} */
let ownTroubles = [];
let brokenUntil = 0;
let startedAt = 0;
let lastFrame = '';
/** The lesson to which the teacher has called everybody. */
let calledTo = '';
/** How often the strategy's waiters poll. @type {number | null} */
let pollIntervalMs = null;

const { t } = lang;

const runs = new Runs(draw, () => changeStock(() => purchaseByHand.refresh()));

// ---- what is on show -------------------------------------------------------------------------------------------

const allLessons = () => chapters.flatMap((chapter) => chapter.lessons);
/** A lone instance has no "three", whatever the address says. */
const isLoneInstance = () => health != null && healthLights.instances(health).length < 2;
const effectiveTarget = () => (isLoneInstance() ? 'one' : settings.target);
/** "one" means the first instance. */
const firstInstance = () => healthLights.instances(health)[0]?.name ?? '';
/** @param {Strategy} of */
const serversDown = (of) => healthLights.serversDown(health).filter((server) => of.needs.includes(server));
const deadInstances = () => healthLights.instances(health).filter((i) => !i.up).map((i) => i.name).join(' ');
/** The settings in the form; null if one is wrong. */
const typedSettings = () => address.settingsOf(effectiveTarget(), settingsForm.typedValues());

function draw() {
  if (!lesson) return;
  drawFrame();
  const running = runs.active != null;
  if (view === 'compare') {
    settingsForm.draw(effectiveTarget(), isLoneInstance(), firstInstance(), comparison.plannedRuns());
    comparison.draw({ strategies, runs, settings: typedSettings(), able: isReached });
  } else if (strategy && view === 'lesson') {
    drawRun(strategy);
    rateComparison.draw(lesson, strategies, runs, isReached);
    const where = effectiveTarget() === 'one' ? t('toOne', firstInstance()) : t('toThree');
    purchaseByHand.draw(strategy, settings.count, running, isReached, where);
  }
  if (view === 'lesson' || view === 'text') {
    opening.draw(runs, isReached);
    race.redraw();
  }
  if (view === 'verdicts') verdictViews.drawTable(chapters, verdicts);
}

/** @param {Strategy} shown */
function drawRun(shown) {
  const mine = { ...settings, target: effectiveTarget() };
  const run = runs.runOf(shown.slug, mine.target);
  const other = runs.otherRun(shown.slug, mine.target);
  const running = run === runs.active && run != null;
  const now = typedSettings();
  const stale = run != null && !running && (!now || isStale(run, now));

  settingsForm.draw(mine.target, isLoneInstance(), firstInstance(), 1);
  settingsForm.drawButton(running ? 'cancel' : 'run', running || !(other || serversDown(shown).length || !isReached || !now), running);
  soldAndGone.draw(run, stale);
  liveMetrics.draw(run, mine.target === 'three' ? healthLights.instances(health).map((i) => i.name) : [], pollIntervalMs);
  if (other) statusLine.sayOtherRun(other, addressOfPlan(other.plan));
  else statusLine.say(statusLine.statusSentence({ strategy: shown, settings: now, run, stale, down: serversDown(shown), dead: deadInstances(), showsClaim: showsClaim(lesson) }), running);
  setText($('of'), run ? t('plan', run.plan) : '');
  const why = run?.row && !race.isShown() ? race.raceOfStrategy(shown.slug) : null;
  $('say-why').hidden = !why;
  if (why) [$('say-why').href, $('say-why').textContent] = [`#/${why.lesson}`, t('sayWhy', numberOf(why.lesson), run?.row?.oversold > 0)];
  courseFigures.draw($('load-figures'), courseFigures.loadFigures(lesson.id, run));
  requestLanes.draw(run, shown.slug, stale);
  lastResults.draw(lastResultsOf(shown));
}

/** The last results on one and on three, and of the lesson before. @param {Strategy} shown */
function lastResultsOf(shown) {
  const earlier = allLessons().slice(0, allLessons().indexOf(lesson)).findLast((l) => l.strategies.length && l.strategies[0] !== shown);
  const [strategy] = earlier?.strategies ?? [];
  const at = (/** @type {'one' | 'three'} */ where) => ({
    label: `${numberOf(lesson.id)} ${t(where)}`, row: runs.lastResult(shown.slug, where)?.row, href: addressOfLesson({ ...settings, target: where }),
  });
  if (!earlier || !strategy) return [at('one'), at('three')];
  return [at('one'), at('three'), {
    label: `${numberOf(earlier.id)} ${t(effectiveTarget())}`, row: runs.lastResult(strategy.slug, effectiveTarget())?.row, href: address.formatAddress(earlier.id, settings),
  }];
}

/** What is in trouble, but for what a race stops and starts again. */
function troublesToTell() {
  const ids = [...new Set(allLessons().filter((l) => l.strategies.some((s) => health?.waiting.includes(s.slug))).map((l) => numberOf(l.id)))];
  const found = !isAsked ? [] : healthLights.troubles(health, isReached, ids.slice(0, MAX_NAMED_LESSONS).join(' ') + (ids.length > MAX_NAMED_LESSONS ? t('andMore', ids.length) : ''));
  if (race.isBreaking()) brokenUntil = performance.now() + REPAIR_MS;
  if (performance.now() >= brokenUntil) ownTroubles = found;
  return found.filter((trouble) => ownTroubles.includes(trouble)).join(t('space'));
}

/** Draws what changes seldom only when it does, so that links and buttons under the pointer stay. */
function drawFrame() {
  const trouble = troublesToTell();
  const now = JSON.stringify([trouble, lang.currentLanguage(), view, view === 'unknown' && location.hash, lesson.id, strategy?.slug, settings, health, isReached, isAsked, theme.current(), verdicts?.kept?.at, lesson.byHand?.length]);
  if (now === lastFrame) return;
  lastFrame = now;
  lang.translate();
  const shown = view === 'lesson' || view === 'text' ? lesson : null;
  lessonList.draw(chapters, shown, health?.waiting ?? []);
  healthLights.draw(health, isReached);
  faultPanel.draw(healthLights.instances(health));
  $('notice').hidden = !trouble;
  setText($('notice'), trouble);
  if (shown) {
    const isLoad = strategy != null && showsClaim(lesson);
    setText($('load-title'), t('loadTitle', settings));
    race.drawErrata(errataOf(lesson));
    lessonHead.draw(lesson, strategy, settings, nextLesson());
    opening.show(lesson.id);
    deadlock.draw(lesson.deadlocks);
    routeButtons.draw(lesson);
    commands.draw(lesson, !isLoad && !lesson.tries.length && !lesson.deadlocks.length && !race.isShown(), race.canPlay());
    verdictViews.draw(lesson, verdicts);
    implementation.draw(strategy?.slug ?? null, lesson.steps);
    $('no-button').hidden = Boolean(isLoad || race.isShown() || lesson.tries.length || lesson.deadlocks.length || lesson.byHand?.length);
    sectionLinks.draw(strategy != null && !race.isShown());
  } else if (view === 'unknown') {
    setText($('unknown-text'), t('unknownLesson', address.parseAddress(location.hash).name));
    document.title = 'oversell';
  }
  $('called').hidden = calledTo !== lesson.id;
  setText($('called'), t('called'));
  for (const name of ['zh', 'en']) $(name).setAttribute('aria-pressed', String(lang.currentLanguage() === name));
  $('theme').title = t('theme', theme.current());
  $('theme').setAttribute('aria-label', $('theme').title);
}

/** The errata of a lesson's section. @param {Lesson} of */
const errataOf = ({ id }) => allLessons().filter((l) => l.id.endsWith('.printed') && l.id.startsWith(`${id}.`));

/** Whether a run shows what this lesson claims. @param {Lesson} of */
const showsClaim = (of) => of.loads || address.hasOwnSettings(of.id);

/** The next lesson of the ninety minutes, or the next one. */
const nextLesson = () => allLessons().find((l) => l.id === ninetyMinutes.nextAfter(lesson.id)) ?? allLessons()[allLessons().indexOf(lesson) + 1] ?? null;

// ---- the address -----------------------------------------------------------------------------------------------

/** @param {address.Settings} as */
const addressOfLesson = (as) => address.formatAddress(lesson.id, as, strategy && strategy !== lesson.strategies[0] ? strategy.slug : null);

/** The address of a plan's lesson; null if this page does not know it. @param {import('../run/runs.js').Plan} plan */
function addressOfPlan(plan) {
  const there = findLesson(chapters, plan.strategy);
  if (!there) return null;
  const { target, threads, loops, hold_ms, count } = plan;
  const slug = there.strategy === there.lesson.strategies[0] ? null : plan.strategy;
  return address.formatAddress(there.lesson.id, { ...settings, target, threads, loops, hold_ms, count }, slug);
}

function showAddress() {
  const parsed = address.parseAddress(location.hash);
  const found = findLesson(chapters, parsed.name);
  const before = lesson;
  lesson ??= allLessons()[0];
  strategy ??= lesson.strategies[0] ?? null;
  if (parsed.name === 'compare' || parsed.name === 'verdicts') view = parsed.name;
  else if (parsed.name && !found) view = 'unknown';
  else {
    if (found) lesson = found.lesson;
    strategy = lesson.strategies.find((s) => s.slug === parsed.strategy) ?? found?.strategy ?? lesson.strategies[0] ?? null;
    view = strategy ? 'lesson' : 'text';
  }
  viewSwitch.showView(view);
  if (view === 'compare' && parsed.strategy) comparison.selectStrategies(parsed.strategy.split(','));
  // Fill the form first: a wrong number in the address is shown like one that was typed.
  settingsForm.fill(parsed.typed);
  settings = address.settingsOf(parsed.target, parsed.typed) ?? { ...settings, target: parsed.target };
  // An empty address is completed.
  if (!parsed.name) history.replaceState(null, '', addressOfLesson(settings));
  const shown = view === 'lesson' || view === 'text' ? lesson : null;
  const raced = race.show(shown?.id ?? '', Boolean(shown?.deadlocks.length));
  // Sections that do not show the claim are folded, unless the address has settings.
  if (lesson !== before || view !== previousView) for (const id of ['load', 'how-fold']) $(id).open = (!raced && (view === 'compare' || showsClaim(lesson))) || (id === 'load' && parsed.asksForRun);
  previousView = view;
  if (shown && shown.claim && !shown.byHand) loadCommands(shown);
  if (view === 'lesson') loadPollInterval(/** @type {Strategy} */ (strategy).slug);
  if (before && lesson !== before) scrollTo({ top: 0, behavior: 'instant' });
  draw();
}

/** Loads a lesson's commands: those of all lessons are more than half of the course. @param {Lesson} shown */
async function loadCommands(shown) {
  const found = await api.lesson(shown.id).catch(() => null);
  if (!found) return;
  shown.byHand = found.by_hand;
  shown.whyNot = found.why_not;
  draw();
}

/** Reads from the strategy's file how often it polls. @param {string} slug */
async function loadPollInterval(slug) {
  pollIntervalMs = null;
  const found = await implementation.pollInterval(slug);
  if (strategy?.slug === slug) pollIntervalMs = found;
  draw();
}

/** Goes where the teacher calls everybody. @param {import('../class/presence.js').Call} call */
function followCall({ lesson: id, replays }) {
  // This phone came from the class's page.
  if (!replays.length && sessionStore.get('phone')) {
    presence.leaveToNextPage();
    location.href = `class.html#/${id}?me`;
    return;
  }
  location.hash = `#/${id}`;
  race.watch(id, replays);
  calledTo = id;
  lastFrame = '';
  draw();
}

/** A change of target is a step in the browser's history; a change of a number is not. @param {address.Settings} as @param {boolean} isStep */
function goTo(as, isStep) {
  settings = as;
  const there = view === 'compare' ? address.formatAddress('compare', as) : addressOfLesson(as);
  history[isStep ? 'pushState' : 'replaceState'](null, '', there);
  showAddress();
}

/** @param {1 | -1} by */
function step(by) {
  const next = allLessons()[allLessons().indexOf(lesson) + by];
  if (next) location.hash = `#/${next.id}`;
}

// ---- actions ---------------------------------------------------------------------------------------------------

async function run() {
  // A folded load test is not meant.
  if (race.isShown() && !$('load').open) {
    await race.run();
    return;
  }
  if (settingsForm.focusFirstWrong()) return;
  const now = typedSettings();
  if (runs.active || !isReached || !now) return;
  if (view === 'compare') comparison.run({ strategies, runs, settings: now });
  else if (strategy && view === 'lesson' && !serversDown(strategy).length) {
    startedAt = Date.now();
    // A run that cannot be started is stored as a failed one.
    await runs.start({ ...now, strategy: strategy.slug }).catch((error) => admin.askForToken(error, $('run-admin'), run));
  }
}

function cancel() {
  race.cancel();
  comparison.stop();
  rateComparison.stop();
  const mine = runs.active && (view === 'compare' || (strategy && !runs.otherRun(strategy.slug, effectiveTarget())));
  if (mine) runs.cancel().catch((error) => admin.askForToken(error, $('run-admin'), cancel));
}

function pressRun() {
  if (!runs.active && !comparison.isRunning()) run();
  else if (Date.now() - startedAt > DOUBLE_CLICK_MS) cancel();
}

/** @param {'zh' | 'en'} to */
function switchLanguage(to) {
  lang.setLanguage(to);
  draw();
}

/** Changes the stock and draws the result. @param {() => Promise<void>} act */
async function changeStock(act) {
  await act().catch(() => {});
  draw();
}

/** @param {1 | 2} people */
function buy(people) {
  const shown = strategy;
  // The first instance is unknown until one has answered.
  if (runs.active || !isReached || !shown) return;
  changeStock(() => purchaseByHand.buy(shown.slug, settings.hold_ms, people, effectiveTarget() === 'one' ? firstInstance() : null, draw));
}

function reset() {
  if (!runs.active && isReached) changeStock(() => purchaseByHand.reset(settings.count, reset));
}

/** Polls health, runs, stock and replays. */
async function refresh() {
  const answer = await healthLights.fetchHealth(health);
  [health, isReached, isAsked] = [answer ?? health, answer != null, true];
  if (isReached) await Promise.allSettled([runs.refresh(), purchaseByHand.refresh(healthLights.pathOfLiving(health)), race.joinRunning()]);
  draw();
}

/** `oversell course` may have run while this page was hidden. */
async function askVerdicts() {
  const [last, stored] = await Promise.all([api.verdicts().catch(() => null), verdicts ? null : api.storedRun().catch(() => null)]);
  verdicts = verdictViews.merged(last?.lessons ? last : null, stored ?? verdicts?.stored ?? null);
}

/** Polls while the page is visible. */
async function poll() {
  if (!document.hidden) await refresh();
  setTimeout(poll, POLL_MS);
}

function listen() {
  settingsForm.listen(draw, (field) => {
    if (field === 'target') settings = { ...settings, target: settingsForm.selectedTarget() };
    const now = address.settingsOf(settings.target, settingsForm.typedValues());
    if (now) goTo(now, field === 'target');
    else draw();
  });
  $('run').onclick = pressRun;
  opening.listen(() => runs.start(opening.PLAN).catch((error) => admin.askForToken(error, $('opening-admin'), () => $('opening-run').click())));
  race.listen(() => { lastFrame = ''; draw(); });
  lessonList.listen();
  routeButtons.listen();
  faultPanel.listen(refresh);
  comparison.listen(draw);
  rateComparison.listen(draw);
  keyboard.listen({ step, run, cancel, other: race.keyAction, help: help.open, search: lessonList.openSearch, projector: projector.toggle, language: () => switchLanguage(lang.currentLanguage() === 'zh' ? 'en' : 'zh') });
  addEventListener('hashchange', () => { lessonList.setOpen(false); showAddress(); });
  addEventListener('popstate', showAddress);
  document.addEventListener('visibilitychange', async () => {
    if (document.hidden) return;
    await askVerdicts();
    await refresh();
  });
  $('zh').onclick = () => switchLanguage('zh');
  $('en').onclick = () => switchLanguage('en');
  $('theme').onclick = () => { theme.next(); draw(); };
  $('projector').onclick = projector.press;
  $('help-open').onclick = help.open;
  $('skip').onclick = () => $('main').focus();
  $('fold').onclick = () => lessonList.setOpen($('fold').getAttribute('aria-expanded') !== 'true');
  $('reset').onclick = reset;
  $('buy').onclick = () => buy(1);
  $('buy-two').onclick = () => buy(2);
}

/** Loads the lessons, then shows the page. @param {() => HTMLElement | null} pressed the button that was pressed in the first view */
export async function begin(pressed) {
  lang.translate();
  projector.show();
  try {
    const [all, course] = await Promise.all([api.strategies(), api.course().catch(() => null), race.loadRaces()]);
    strategies = all;
    chapters = chaptersOf(course?.chapters ? course : null, strategies);
  } catch {
    healthLights.draw(null, false);
    setTimeout(begin, POLL_MS, pressed);
    return;
  }
  // A reload without an address shows the active run.
  const polls = Promise.all([refresh(), askVerdicts()]);
  if (!location.hash) await polls;
  if (!location.hash && runs.active) {
    history.replaceState(null, '', addressOfPlan(runs.active.plan) ?? '#/');
  }
  listen();
  showAddress();
  delete document.body.dataset.first;
  const early = pressed();
  // A run waits until the service is known to answer.
  const needsAnswer = early?.id === 'opening-run';
  if (!needsAnswer) early?.click();
  await polls;
  draw();
  if (needsAnswer) early?.click();
  presence.start(() => lesson.id, followCall);
  setTimeout(poll, POLL_MS);
}
