/**
 * A lock of one's own: three scripts, sold with on three instances and graded. Each failure shows the timeline of its race.
 *
 * Scripts are saved before they are graded or sold with. The course's own locks come from the service.
 */

import * as api from '../shared/api.js';
import { $, el, setText, replaceKeepingFocus } from '../shared/dom.js';
import { figuresOf } from '../run/run-figures.js';
import { addWords, currentLanguage, errorText, t } from '../shared/language.js';
import * as requestLanes from '../run/request-lanes.js';
import { Runs } from '../run/runs.js';
import * as statusLine from '../run/status-line.js';
import { startPage } from '../shared/small-page.js';
import { parseEvent } from '../timeline/events.js';
import { modelOf } from '../timeline/model.js';
import { Picture, sentences } from '../timeline/picture.js';
import { addEvent, emptyRecording } from '../timeline/player.js';
import * as ownLockWords from '../words/own-lock.js';

addWords(ownLockWords);

/** @typedef {Record<'acquire' | 'release' | 'renew', string>} Scripts */
/** @typedef {{name: string, verdict: 'passed' | 'failed' | 'untried', seen: {zh: string, en: string}, error?: string, events: any[]}} Grade */

const FIELDS = /** @type {const} */ (['acquire', 'release', 'renew']);
const TRIALS = ['exclusion', 'holder-dies', 'late-release', 'foreign-release', 're-entry', 'long-job', 'fairness'];
/** Long enough inside for two to meet; few enough that each has a lane. @type {import('../run/runs.js').Plan} */
const PLAN = { strategy: 'mine', target: 'three', threads: 10, loops: 2, hold_ms: 20, count: 5000 };
/** Whoever is inside at the end of a race stays a little longer in the picture. */
const TIME_AFTER_LAST_US = 700_000;

/** @type {{section: string, scripts: Scripts}[]} */
let stages = [];
/** @type {Grade[]} */
let grades = [];
let isBusy = false;
/** The last message, in the current language. */
let statusText = () => '';

const runs = new Runs(drawRun, () => {});

const isSelling = () => runs.active != null && !runs.otherRun('mine', 'three');

/** @param {string} name @returns {HTMLTextAreaElement} */
const field = (name) => /** @type {any} */ (document.querySelector(`[name="${name}"]`));

/** @returns {Scripts} */
const typedScripts = () => ({ acquire: field('acquire').value, release: field('release').value, renew: field('renew').value });

/** @param {Scripts} a @param {Scripts} b */
const isSame = (a, b) => FIELDS.every((name) => a[name] === b[name]);

/** @param {() => string} words */
function setStatus(words) {
  statusText = words;
  setText($('said'), statusText());
}

/** @param {string} [name] the script that is wrong @param {string} [rule] */
function markWrong(name, rule = '') {
  for (const each of FIELDS) {
    setText($(`${each}-wrong`), each === name ? rule : '');
    field(each).setAttribute('aria-invalid', String(each === name));
  }
  if (name) field(name).focus();
}

/** Saves the scripts as typed, then does this with them. @param {(scripts: Scripts) => Promise<void>} does */
async function saveThen(does) {
  if (isBusy) return;
  isBusy = true;
  drawButtons();
  markWrong();
  try {
    await does(await api.saveOwnLock(typedScripts()));
  } catch (caught) {
    const error = /** @type {any} */ (caught);
    const name = FIELDS.find((each) => each === error.problem?.field);
    if (name) markWrong(name, t('reason', error.problem.detail));
    setStatus(() => (name ? t('mineRefused') : t('failed', errorText(error))));
  }
  isBusy = false;
  drawButtons();
}

function drawButtons() {
  for (const id of ['save', 'grade']) $(id).setAttribute('aria-disabled', String(isBusy));
  setText($('sell'), t(isSelling() ? 'cancel' : 'mineSell'));
  $('sell').classList.toggle('cancel', isSelling());
  $('sell').setAttribute('aria-disabled', String(isBusy));
  replaceKeepingFocus($('fill'), stages.map((stage) => {
    const button = el('button', { type: 'button', 'data-key': stage.section, 'aria-pressed': String(isSame(stage.scripts, typedScripts())) }, t('mineStage', stage.section));
    button.addEventListener('click', () => fill(stage.scripts));
    return button;
  }));
}

/** @param {Scripts} scripts */
function fill(scripts) {
  for (const name of FIELDS) field(name).value = scripts[name];
  markWrong();
  drawButtons();
}

function drawRun() {
  const run = runs.runOf('mine', 'three');
  const other = runs.otherRun('mine', 'three');
  $('sold').hidden = !run && !other;
  if (other) statusLine.sayOtherRun(other, null);
  else if (run) statusLine.say(statusLine.statusSentence({ strategy: /** @type {any} */ (null), settings: PLAN, run, stale: false, down: [], dead: '' }), run === runs.active);
  const { sold, gone } = run ? figuresOf(run) : { sold: 0, gone: null };
  setText($('of'), run?.row && gone != null ? `${t('plan', run.plan)} · ${t('replaySold', { sold, gone })}` : '');
  requestLanes.draw(run, 'mine', false);
  drawButtons();
}

/** Spreads events evenly: microseconds become visible, and a lease does not fill the picture. @param {any[]} events */
function spreadEvenly(events) {
  const recording = { ...emptyRecording(), stepped: true };
  events.map(parseEvent).forEach((event, i) => addEvent(recording, event, events[i - 1]?.t_us ?? 0));
  return recording.events;
}

/** @param {string} name @param {boolean} open */
function drawGrade(name, open) {
  const grade = grades.find((one) => one.name === name);
  const verdict = grade?.verdict ?? 'none';
  const head = [el('strong', {}, t('mineVerdict', verdict)), el('h3', {}, t('mineTrial', name)), el('span', { class: 'seen' }, grade?.seen[currentLanguage()] ?? '')];
  if (!grade?.events.length) return el('li', { id: name, class: verdict }, el('p', {}, ...head));
  const events = spreadEvenly(grade.events);
  const host = el('div', { class: 'lanes', role: 'group', tabindex: '0', 'aria-label': t('mineRace', name) });
  const fold = el('details', { open }, el('summary', {}, ...head), ...(grade.error ? [el('pre', {}, grade.error)] : []), host,
    el('details', {}, el('summary', {}, t('asSentences')), el('ol', { class: 'told' }, ...sentences(events))));
  const picture = new Picture(/** @type {HTMLElement} */ (host));
  const paint = () => {
    const model = modelOf(events, (events.at(-1)?.t_us ?? 0) + TIME_AFTER_LAST_US);
    // A closed fold has no width to draw in.
    if (/** @type {HTMLDetailsElement} */ (fold).open) picture.draw(model, model.end, { live: false, moves: false, scaled: false });
  };
  fold.addEventListener('toggle', paint);
  return el('li', { id: name, class: verdict }, fold);
}

/** @param {boolean} isNew open only the first failure */
function drawGrades(isNew) {
  const first = grades.find(({ verdict }) => verdict === 'failed')?.name;
  const opened = [...document.querySelectorAll('.grades > li:has(> details[open])')].map(({ id }) => id);
  $('grades').replaceChildren(...TRIALS.map((name) => drawGrade(name, isNew ? name === first : opened.includes(name))));
}

$('scripts').addEventListener('submit', (/** @type {Event} */ event) => event.preventDefault());
$('scripts').addEventListener('input', drawButtons);
$('save').addEventListener('click', () => saveThen(async () => setStatus(() => t('mineSaved'))));
$('sell').addEventListener('click', () => {
  if (isSelling()) runs.cancel().catch((error) => setStatus(() => t('failed', errorText(error))));
  else {
    saveThen(async () => {
      setStatus(() => '');
      await runs.start(PLAN);
    });
  }
});
$('grade').addEventListener('click', () => saveThen(async (scripts) => {
  setStatus(() => t('mineGrading'));
  const graded = await api.gradeOwnLock();
  grades = graded.grades;
  drawGrades(true);
  const count = (/** @type {string} */ of) => grades.filter(({ verdict }) => verdict === of).length;
  setStatus(() => (isSame(graded.scripts, scripts) ? t('mineGraded', count('passed'), count('failed'), count('untried')) : t('mineOther')));
}));
addEventListener('resize', () => drawGrades(false));

startPage(() => {
  setText($('said'), statusText());
  drawRun();
  drawGrades(false);
});

try {
  const saved = await api.ownLock();
  stages = saved.stages;
  fill(saved.scripts);
  await runs.refresh();
} catch (error) {
  setStatus(() => t('failed', errorText(error)));
}
