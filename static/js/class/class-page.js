/**
 * The class's page: a lane for each visitor, the consoles of the instances, and buttons that send visitors.
 *
 * On a phone (`#/2.10.6?me`) one visits under one's own name, and the own lane is marked. A phone follows the lesson on the desk's screen;
 * for a race, which has no visits, it asks for a guess.
 */

import * as api from '../shared/api.js';
import { follow } from '../shared/event-stream.js';
import * as faultPanel from '../shared/fault-panel.js';
import { $, el, setText } from '../shared/dom.js';
import { localStore, sessionStore } from '../shared/storage.js';
import * as lang from '../shared/language.js';
import * as healthLights from '../shared/health.js';
import * as desk from './desk.js';
import * as phoneGuess from './phone-guess.js';
import * as presence from './presence.js';
import * as herd from './herd.js';
import { countsNow, classPictureOf, timesOf } from './visit-lanes.js';
import { visitFromPhone, sendFromDesk } from './visitors.js';
import { draw as drawLanes } from './lanes-drawing.js';
import * as qrCode from './qr-code.js';
import { HERD, LESSON_IDS, MEMBERS, CLASS_LESSONS, classLessonOf } from './class-lessons.js';
import { numberOf } from '../lesson/lesson-number.js';
import { Visits } from './visits.js';
import { startPage } from '../shared/small-page.js';
import * as classWords from '../words/class.js';

/** @typedef {import('./class-lessons.js').Action} Action */
/** @typedef {import('./visit-lanes.js').ClassPicture} ClassPicture */

lang.addWords(classWords);

const { t } = lang;
const TICK_MS = 100;
/** How often the servers' objects are read, and how soon after an event. */
const [OBJECTS_MS, OBJECTS_SOON_MS] = [1000, 150];
const US_PER_MS = 1000;
const HEALTH_MS = 3000;
/** A UUID in a node's name; its beginning is enough. */
const UUID = /\b([0-9a-f]{8})-[0-9a-f-]{27}\b/g;
/** The course prints its clock. */
const MILLIS = /^\d{13}$/;
/** Seconds with one digit. @param {number} us */
const seconds = (us) => (us / 1e6).toFixed(1);

let visits = new Visits();
let [lessonId, isPhone] = parseAddress();
/** This page was opened at a lesson. */
const isLed = addressedLesson() != null;
/** Titles and claims by lesson. @type {Map<string, import('../lesson/course.js').Lesson>} */
let titles = new Map();
/** The servers' own counts of semaphore, latch and barrier; null where they are not known. @type {{semaphore?: number | null, latch?: number | null, barrier?: boolean | null}} */
let objects = {};
/** When they were read, by the instances' clock; when they will be read next, by the browser's. */
let [objectsAskedAt, nextLookAt, isLooking] = [0, 0, false];
/** Permits lost at the last time that this was known. */
let lostPermits = 0;
/** An event has come that is not drawn yet. */
let hasNews = true;
let [lastDrawnAt, lastSentencesAt, lastDrawnSize] = [-1, 0, 0];
/** The last answer about health, and whether the latest request was answered. @type {healthLights.Health | null} */
let health = null;
let isReached = true;
/** When the page was opened, by the instances' clock. @type {number | undefined} */
let openedAt;
/** Actions of a phone that are not answered yet. @type {Set<string>} */
const pendingActions = new Set();

/** The lesson that the address names. */
function addressedLesson() {
  return /^#\/(\d[^?]*)/.exec(location.hash)?.[1];
}

/** @returns {[string, boolean]} */
function parseAddress() {
  const query = new URLSearchParams(location.hash.replace(/^[^?]*/, ''));
  // A phone is a desk only where its address says so.
  const opensOnPhone = query.has('me') || (matchMedia('(pointer: coarse) and (max-width: 40rem)').matches && !query.has('desk'));
  const lesson = addressedLesson() ?? '';
  return [LESSON_IDS.includes(lesson) || (opensOnPhone && lesson) ? lesson : '2.10.6', opensOnPhone];
}

/** This lesson has no visits: its race is guessed. */
const isGuessLesson = () => !LESSON_IDS.includes(lessonId);
const view = () => classLessonOf(lessonId) ?? CLASS_LESSONS[0];
const ownName = () => $('who').value.trim();
const browserClock = () => Date.now() * US_PER_MS;
/** The time by the instances' clock. */
const clock = () => browserClock() - (Number.isFinite(visits.clockAhead) ? visits.clockAhead : 0);

// ---- what is on show -------------------------------------------------------------------------------------------

/** What does not change with time. */
function frame() {
  const lesson = titles.get(lessonId);
  const words = lang.currentLanguage();
  $('chapter').dataset.lesson = lessonId;
  setText($('chapter'), numberOf(lessonId));
  setText($('title'), lesson?.title[words] ?? '');
  setText($('claim'), lesson?.claim?.[words] ?? '');
  document.title = `${numberOf(lessonId)} ${lesson?.title[words] ?? ''} · ${t('classTitle')}`;
  $('lessons').replaceChildren(...[...(isGuessLesson() ? [lessonId] : []), ...LESSON_IDS].map((each) => el('option', { value: each, selected: each === lessonId }, `${numberOf(each)} ${titles.get(each)?.title[words] ?? ''}`)));
  $('back').href = `./#/${lessonId}`;
  document.documentElement.toggleAttribute('data-me', isPhone);
  for (const part of ['phone', 'back', 'claim', 'consoles', 'lights', 'desk']) $(part).hidden = isPhone;
  $('own-name').hidden = !isPhone;
  const isHerd = lessonId === HERD;
  for (const part of ['actions', 'state', 'lanes', 'in-words']) $(part).hidden = isHerd || isGuessLesson();
  $('guessing').hidden = !isGuessLesson();
  if (isGuessLesson()) {
    $('empty').hidden = true;
    setText($('mine'), '');
    phoneGuess.draw(lessonId, ownName, say);
  }
  $('consoles').hidden = isHerd || isPhone;
  $('herd').hidden = !isHerd;
  if (isHerd) herd.draw();
  drawButtons();
  drawHealth();
  desk.drawLessons(titles, lessonId);
  hasNews = true;
  draw();
}

let lastButtons = '';

/** New buttons only for another lesson or language: one that is being pressed must stay. */
function drawButtons() {
  const which = JSON.stringify([lessonId, isPhone, lang.currentLanguage()]);
  if (lastButtons === which) return;
  lastButtons = which;
  const actions = view().actions.filter((action) => !isPhone || action.only !== 'desk');
  $('actions').replaceChildren(...actions.map((action) => {
    const button = el('button', { class: 'big', 'data-act': action.name }, t(isPhone ? 'classMine' : 'classAct', action.name));
    button.addEventListener('click', () => press(action, button));
    return button;
  }));
}

/** @param {Action} action @param {Element} button */
async function press(action, button) {
  if (!isPhone) return say(await sendFromDesk(action, visits.visitsOf(view().key)));
  if (!ownName()) {
    $('who').focus();
    return say(t('classNameWanted'));
  }
  if (pendingActions.has(action.name)) return;
  pendingActions.add(action.name);
  button.setAttribute('aria-disabled', 'true');
  say('');
  say(await visitFromPhone(action, ownName(), visits.visitsOf(view().key)));
  pendingActions.delete(action.name);
  button.setAttribute('aria-disabled', 'false');
}

/** @param {string} text */
const say = (text) => setText($('notice'), text);

/** The health of instances and servers, for the desk. */
function drawHealth() {
  healthLights.draw(health, isReached);
  faultPanel.draw(healthLights.instances(health));
  const trouble = isPhone || !health ? '' : healthLights.troubles(health, isReached).join(t('space'));
  $('trouble').hidden = !trouble;
  setText($('trouble'), trouble);
}

/** Draws when time has passed or an event has come. */
function draw() {
  if (lessonId === HERD || isGuessLesson()) return;
  const { key } = view();
  const now = clock();
  const all = visits.visitsOf(key);
  const shown = classPictureOf(all, view(), now, (n) => t('classVisitor', n));
  const at = shown.from + shown.now;
  const size = $('lanes').clientWidth;
  if (!hasNews && lastDrawnAt === at && lastDrawnSize === size) return;
  const hadNews = hasNews;
  [hasNews, lastDrawnAt, lastDrawnSize] = [false, at, size];
  drawState(all, shown);
  $('empty').hidden = all.length > 0;
  setText($('empty'), t(isPhone ? 'classEmptyMine' : 'classEmpty'));
  drawLanes($('lanes'), shown, isPhone ? ownName() : '');
  if (isPhone) drawOwnTimes(all, now);
  else if (hadNews) drawConsoles(shown.from, key);
  if ($('in-words').open && (hadNews || now - lastSentencesAt > 1e6)) drawSentences(shown, all, now);
}

/** @param {import('./visits.js').Visit[]} all @param {ClassPicture} shown */
function drawState(all, shown) {
  const { crowded, ...counts } = countsNow(shown);
  const since = all.filter((visit) => visit.from > visits.reset);
  const counted = since.flatMap((visit) => visit.count ?? []).sort((a, b) => a.at - b.at).at(-1);
  const room = view().state === 'meeting' ? MEMBERS : view().room;
  // The barrier is set, or removed, when the visit that does it ends.
  const gate = since.filter((visit) => /\/(set|remove)$/.test(visit.route) && visit.entered != null && visit.left != null).sort((a, b) => Number(a.left) - Number(b.left)).at(-1);
  // A reading older than the last event is out of date: until the next one the events decide.
  const isFresh = objectsAskedAt > Math.max(0, ...since.map((visit) => visit.left ?? visit.entered ?? visit.from));
  const isPermits = view().key === 'semaphore' && objects.semaphore != null;
  // A killed instance loses its permits; one that is stopped releases them.
  const gone = since.filter((visit) => visit.lost && visit.entered != null).length;
  if (isFresh || !isPermits) lostPermits = isPermits && room - Number(objects.semaphore) - counts.inside === gone ? gone : 0;
  const free = !isPermits ? null : isFresh ? objects.semaphore : Math.max(0, room - counts.inside - lostPermits);
  // A latch at 0: all have counted down, or nobody has begun.
  const count = isFresh && objects.latch != null ? objects.latch || (counted ? 0 : null) : counted?.n ?? null;
  const closed = gate && !isFresh ? /set$/.test(gate.route) : objects.barrier ?? null;
  // A number and its unit stay in one line.
  const text = t('classState', view().state, { ...counts, room, free, missing: lostPermits, count, closed }).replaceAll(/(\d) (?=[人个位])/g, '$1\u00a0');
  setText($('state'), crowded ? `${text}${t('space')} ${t('classCrowded')}` : text);
  $('state').classList.toggle('red', crowded);
}

/** How long this phone's own visit has taken. @param {import('./visits.js').Visit[]} all @param {number} now */
function drawOwnTimes(all, now) {
  const times = timesOf(all.findLast((visit) => visit.who !== '' && visit.who === ownName()), now, all, view());
  setText($('mine'), times ? timesText(times) : '');
}

/** @param {NonNullable<ReturnType<typeof timesOf>>} times */
const timesText = ({ waited, inside, ...how }) => t('classTimes', { waited: seconds(waited), inside: inside == null ? null : seconds(inside), ...how });

/** @param {number} from @param {string} key */
function drawConsoles(from, key) {
  const names = [...visits.instances.keys()].sort();
  const there = new Map([...$('consoles').children].map((section) => [/** @type {HTMLElement} */ (section).dataset.instance, section]));
  const lines = visits.linesOf(key).filter((line) => line.at >= from - 1e6);
  const all = names.map((name) => {
    const section = there.get(name) ?? el('section', { 'data-instance': name, tabindex: 0, role: 'group' }, el('h2', {}), el('ol', {}));
    const its = lines.filter((line) => line.instance === name);
    const down = visits.instances.get(name) === false || healthLights.instances(health).some((i) => i.name === name && !i.up);
    section.setAttribute('aria-label', t('classConsole', name));
    setText(/** @type {Element} */ (section.firstElementChild), `${name}${down ? ` ${t('classDown')}` : ''}`);
    section.lastElementChild?.replaceChildren(...(its.length ? its.map((line) => el('li', {},
      el('span', { class: 'dim' }, `${seconds(Math.max(0, line.at - from))} s`), ` ${line.who} ${line.text.replace(UUID, '$1…').replace(MILLIS, 'currentTimeMillis: $&')}`)) : [el('li', { class: 'dim' }, t('classQuiet'))]));
    return section;
  });
  if (all.length !== there.size) $('consoles').replaceChildren(...all);
  for (const section of all) section.scrollTop = section.scrollHeight;
}

/** @param {ClassPicture} shown @param {import('./visits.js').Visit[]} all @param {number} now */
function drawSentences(shown, all, now) {
  lastSentencesAt = now;
  $('words').replaceChildren(...shown.lanes.map((lane) => {
    const times = timesOf(lane.visits.at(-1), now, all, view());
    return el('li', {}, t('classSaid', lane.name, times ? timesText(times) : ''));
  }));
}

// ---- events and requests ----------------------------------------------------------------------------------------

$('lessons').addEventListener('change', () => {
  location.hash = `#/${$('lessons').value}${isPhone ? '?me' : ''}`;
  if (!isPhone) api.showLesson($('lessons').value).catch((error) => say(lang.errorText(error)));
});
addEventListener('hashchange', () => {
  [lessonId, isPhone] = parseAddress();
  say('');
  frame();
});
$('phone').addEventListener('click', () => {
  // The address may name a race, which phones guess.
  const lesson = addressedLesson() ?? lessonId;
  qrCode.open(lesson);
  // Phones follow the desk to this lesson.
  api.showLesson(lesson).catch(() => {});
});
$('in-words').addEventListener('toggle', () => { hasNews = true; });
$('who').value = localStore.get('who') ?? '';
$('who').addEventListener('input', () => {
  localStore.set('who', ownName());
  hasNews = true;
});
/** The events do not tell everything: a permit may be lost with its instance. */
async function askObjects() {
  isLooking = true;
  const askedAt = clock();
  const seen = await api.classroomObjects().catch(() => ({}));
  [objects, objectsAskedAt, nextLookAt, isLooking] = [seen, askedAt, Date.now() + OBJECTS_MS, false];
  // Draw even if no time has passed.
  lastDrawnAt = -1;
}

async function askHealth() {
  const answer = await healthLights.fetchHealth(health);
  [health, isReached, hasNews] = [answer ?? health, answer != null, true];
  drawHealth();
}

/** The desk asks while its page is visible; a phone does not. */
async function pollHealth() {
  if (!document.hidden && !isPhone) await askHealth();
  setTimeout(pollHealth, HEALTH_MS);
}

function tick() {
  if (!isLooking && Date.now() >= nextLookAt && !document.hidden && lessonId !== HERD) askObjects();
  draw();
}
/** A lesson is shown here, a race on the main page. @param {import('./presence.js').Call} call */
function followCall({ lesson, replays }) {
  if (!replays.length) {
    location.hash = `#/${lesson}?me`;
    return;
  }
  presence.leaveToNextPage();
  location.href = `./#/${lesson}`;
}

qrCode.listen();
desk.listen(() => !isPhone);
// A desk is no student.
if (isPhone) {
  sessionStore.set('phone', true);
  presence.start(() => lessonId, followCall);
}
faultPanel.listen(askHealth);
startPage(frame);
pollHealth();
follow('classroom/events', {
  message(event) {
    if (event.event === 'up') openedAt ??= event.t_us;
    // An earlier lesson may be another than this phone's QR code led to.
    if (event.event === 'lesson' && isPhone && event.key && (!isLed || event.t_us > (openedAt ?? Infinity))) location.hash = `#/${event.key}?me`;
    if (['lesson', 'ended'].includes(event.event) && isPhone && event.key === lessonId && isGuessLesson()) {
      if (phoneGuess.hear(event)) say('');
      phoneGuess.draw(lessonId, ownName, say);
    }
    visits.record(event, browserClock());
    hasNews = true;
    if (!isPhone) nextLookAt = Math.min(nextLookAt, Date.now() + OBJECTS_SOON_MS);
  },
}, {
  // The service sends all that it keeps on each connection.
  opened() {
    visits = new Visits();
    if ($('notice').textContent === t('classLost')) say('');
    hasNews = true;
  },
  lost: () => say(t('classLost')),
});
setInterval(tick, TICK_MS);

/** Loads titles and claims; until then the lesson has only its number. */
async function loadCourse() {
  const course = await api.course().catch(() => null);
  if (!course) return void setTimeout(loadCourse, OBJECTS_MS);
  const lessons = course.chapters.flatMap((/** @type {any} */ chapter) => chapter.lessons);
  titles = new Map(lessons.map((/** @type {any} */ lesson) => [lesson.id, lesson]));
  frame();
}
loadCourse();
