/**
 * The page: one state, drawn whole whenever something changed.
 *
 * The address says which lesson and settings; `runs` knows the run under way and the results; every three seconds
 * the service is asked how everybody is. Read on in: state.js, runs.js, stream.js, numbers.js.
 */

import * as api from './api.js';
import { $, put } from './dom.js';
import * as help from './help.js';
import * as keys from './keys.js';
import * as lang from './lang.js';
import * as lessonHead from './lesson.js';
import * as lessons from './lessons.js';
import * as lights from './lights.js';
import * as live from './live.js';
import * as numbers from './numbers.js';
import * as replay from './replay.js';
import { Runs } from './runs.js';
import * as saying from './saying.js';
import * as settingsForm from './settings.js';
import * as shelf from './shelf.js';
import * as state from './state.js';
import * as theme from './theme.js';

const ASK_MS = 3000;
/** A second press so soon is a double click, not a wish to cancel. */
const DOUBLE_MS = 500;

/** @typedef {import('./api.js').Lesson} Lesson */
/** @typedef {import('./api.js').Settings} Settings */

/** @type {Lesson[]} */
let all = [];
/** The one on show, once there are some. @type {Lesson} */
let lesson;
let settings = state.DEFAULTS;
/** @type {import('./api.js').Health | null} */
let health = null;
let reached = true;
let startedAt = 0;
let drawn = '';
/** Is a replay on show, and no lesson? */
let replaying = false;

const runs = new Runs(draw, () => atShelf(shelf.refresh));

// ---- what is on show -------------------------------------------------------------------------------------------

/** One instance has nobody to share with: three is not to be had, whatever the address says. */
const alone = () => health != null && lights.instances(health).length < 2;
const target = () => (alone() ? 'one' : settings.target);
const down = () => lights.down(health).filter((server) => lesson.needs.includes(server));

function draw() {
  if (!lesson) return;
  const mine = { ...settings, target: target() };
  const run = runs.of(lesson.slug, mine.target);
  const other = runs.other(lesson.slug, mine.target);
  const running = run === runs.live && run != null;

  frame();
  settingsForm.draw(mine, alone());
  settingsForm.button(running ? 'cancel' : 'run', running || !(other || down().length || !reached));
  numbers.draw(run);
  live.draw(run, mine.target === 'three' ? lights.instances(health).map((i) => i.name) : []);
  const store = all.find((l) => l.slug === runs.live?.plan.strategy)?.store;
  shelf.draw(lesson, settings.count, runs.live && { store, shelf: runs.live.shelf });
  if (other) saying.busy(other, whereIs(other.plan));
  else saying.say(saying.sentence({ lesson, settings: mine, run, down: down() }), running);
  put($('of'), run ? lang.t('plan', run.plan) : '');
  if (replaying) replay.redraw();
}

/** What changes seldom is drawn seldom: links and buttons under the pointer stay the same ones. */
function frame() {
  const now = JSON.stringify([lang.current(), lesson.slug, settings, health, reached, theme.current()]);
  if (now === drawn) return;
  drawn = now;
  lang.translate();
  lessons.draw(all, lesson, settings, health?.waiting ?? []);
  lessonHead.draw(lesson, replay.of(lesson.slug));
  lights.draw(health, reached);
  for (const name of ['zh', 'en']) $(name).setAttribute('aria-pressed', lang.current() === name);
  $('theme').title = lang.t('theme', theme.current());
  $('theme').setAttribute('aria-label', $('theme').title);
}

/** @param {Settings} settings @returns {Settings} */
const pick = ({ target, threads, loops, hold_ms, count }) => ({ target, threads, loops, hold_ms, count });

// ---- the address -----------------------------------------------------------------------------------------------

const address = (/** @type {Lesson} */ to, /** @type {Settings} */ as) => state.format(state.nameOf(all, to), as);

/** The address of the lesson that a plan runs; null for one that this page does not know. @param {import('./api.js').Plan} plan */
function whereIs(plan) {
  const there = state.find(all, plan.strategy);
  return there ? address(there, { ...settings, ...pick(plan) }) : null;
}

function fromAddress() {
  replaying = replay.isAddress(location.hash);
  $('lesson').hidden = $('lessons').hidden = replaying;
  $('replay').hidden = !replaying;
  document.querySelector('.frame')?.classList.toggle('wide', replaying);
  if (replaying) {
    lesson ??= all[0];
    replay.show(location.hash);
    draw();
    return;
  }
  replay.leave();
  const wanted = state.parse(location.hash);
  settings = wanted.settings;
  lesson = state.find(all, wanted.lesson) ?? lesson ?? all[0];
  // Without a lesson, or with one that is not there, the address is made to say what is on show.
  history.replaceState(null, '', address(lesson, settings));
  draw();
}

/** Another lesson or target is a step that "back" undoes; a number is not. @param {Lesson} to @param {Settings} as @param {boolean} isStep */
function goTo(to, as, isStep) {
  history[isStep ? 'pushState' : 'replaceState'](null, '', address(to, as));
  fromAddress();
}

/** @param {1 | -1} by */
function step(by) {
  if (replaying) return replay.another(by);
  const next = all[all.indexOf(lesson) + by];
  if (next) goTo(next, settings, true);
  return document.querySelector('#chapters [aria-current]')?.scrollIntoView({ block: 'nearest' });
}

// ---- acts ------------------------------------------------------------------------------------------------------

async function run() {
  if (replaying) {
    await replay.run();
    return;
  }
  const chosen = settingsForm.read();
  if (runs.live || down().length || !reached || !chosen) {
    $('settings').reportValidity();
    return;
  }
  startedAt = Date.now();
  await runs.start({ ...pick({ ...chosen, target: target() }), strategy: lesson.slug }).catch(shelf.wantToken);
}

function cancel() {
  if (replaying) replay.cancel();
  const mine = runs.live && !runs.other(lesson.slug, target());
  if (mine) runs.cancel().catch(() => {});
}

function pressed() {
  if (!runs.live) run();
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

async function ask() {
  try {
    health = await api.health();
    reached = true;
    await Promise.all([runs.look(), shelf.refresh()]);
  } catch (error) {
    // A refusal is an answer: the service is there.
    reached = error instanceof api.Refused;
  }
  draw();
}

/** Asks again and again; not while nobody looks. */
async function askForEver() {
  if (!document.hidden) await ask();
  setTimeout(askForEver, ASK_MS);
}

function listen() {
  settingsForm.listen((to, field) => goTo(lesson, to, field === 'target'), draw);
  $('run').onclick = pressed;
  replay.listen();
  keys.listen({ step, run, cancel, other: (name, at) => (replaying ? replay.keyed(name, at) : null), help: help.open, language: () => speak(lang.current() === 'zh' ? 'en' : 'zh') });
  addEventListener('hashchange', () => { lessons.unfold(false); fromAddress(); });
  addEventListener('popstate', fromAddress);
  document.addEventListener('visibilitychange', () => document.hidden || ask());
  $('zh').onclick = () => speak('zh');
  $('en').onclick = () => speak('en');
  $('theme').onclick = () => { theme.next(); draw(); };
  $('help-open').onclick = help.open;
  $('skip').onclick = () => $('main').focus();
  $('fold').onclick = () => lessons.unfold($('fold').getAttribute('aria-expanded') !== 'true');
  $('code-toggle').onclick = () => lessonHead.toggleCode(lesson.slug);
  $('reset').onclick = () => atShelf(() => shelf.reset(settings.count));
  $('token').onchange = () => { api.setToken($('token').value); atShelf(() => shelf.reset(settings.count)); };
  $('buy').onclick = () => atShelf(() => shelf.buy(lesson.slug, settings.hold_ms, 1, draw));
  $('buy-two').onclick = () => atShelf(() => shelf.buy(lesson.slug, settings.hold_ms, 2, draw));
}

/** The lessons come first: without them there is nothing to show. */
async function begin() {
  lang.translate();
  try {
    all = await api.strategies();
  } catch {
    lights.draw(null, false);
    setTimeout(begin, ASK_MS);
    return;
  }
  // A reload without an address joins the run under way.
  await Promise.all([ask(), replay.load()]);
  if (!location.hash && runs.live) {
    history.replaceState(null, '', whereIs(runs.live.plan) ?? '#/');
  }
  listen();
  fromAddress();
  setTimeout(askForEver, ASK_MS);
}

begin();
