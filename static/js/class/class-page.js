/**
 * The class's page: a lane for each person, the instances' consoles, buttons that send people; and the same for a phone
 * (`#/2.10.6?me`), where one comes by oneself and one's own lane is marked. A phone follows the lesson that the desk shows; of a race,
 * which has no visits, it asks for a guess.
 */

import * as api from '../shared/api.js';
import * as breaking from '../shared/fault-panel.js';
import { $, el, put } from '../shared/dom.js';
import { always } from '../shared/storage.js';
import * as lang from '../shared/language.js';
import * as lights from '../shared/health.js';
import * as guessing from './phone-guess.js';
import * as herd from './herd.js';
import { nowIn, shownOf, timesOf } from './visit-lanes.js';
import { come, send } from './visitors.js';
import { draw as drawLanes } from './lanes-drawing.js';
import * as scan from './qr-code.js';
import { follow } from './class-stream.js';
import { HERD, LESSONS, MEMBERS, VIEWS, viewOf } from './class-lessons.js';
import { Visits } from './visits.js';
import { languages } from '../words/all.js';

lang.learn(languages);

/** @typedef {import('./class-lessons.js').Action} Action */
/** @typedef {import('./visit-lanes.js').Shown} Shown */

const { t } = lang;
const TICK_MS = 100;
/** How often the servers are asked, and how soon after something has happened. */
const [LOOK_MS, SOON_MS] = [1000, 150];
const MICRO = 1000;
/** How often everybody is asked how they are. */
const ASK_MS = 3000;
/** A node's name, of which the beginning is enough to know it again. */
const UUID = /\b([0-9a-f]{8})-[0-9a-f-]{27}\b/g;
/** Seconds, with one digit. @param {number} us */
const seconds = (us) => (us / 1e6).toFixed(1);

let visits = new Visits();
let [id, isMine] = address();
/** The course's own words for the lessons. @type {Map<string, import('../lesson/course.js').Lesson>} */
let titles = new Map();
/** What the servers say of semaphore, latch and barrier; null where it is not known. @type {{semaphore?: number | null, latch?: number | null, barrier?: boolean | null}} */
let objects = {};
/** When they were asked, by the instances' clock; and when they are to be asked again, by the browser's. */
let [lookedAt, lookAt, looking] = [0, 0, false];
/** Permits that were lost, when that was last known. */
let missing = 0;
/** Something was told that is not drawn yet. */
let fresh = true;
let [drawnAt, spokenAt, drawnSize] = [-1, 0, 0];
/** How everybody was when last asked; and whether somebody has answered since. @type {lights.Health | null} */
let health = null;
let reached = true;
/** When the page was opened, by the instances' clock. @type {number | undefined} */
let openedAt;
/** What a phone has asked and has no answer to. @type {Set<string>} */
const asked = new Set();

/** @returns {[string, boolean]} */
function address() {
  const [, lesson, rest = ''] = /^#\/([^?]*)(\?.*)?$/.exec(location.hash) ?? [];
  const query = new URLSearchParams(rest);
  // A phone is no desk, unless it says so.
  const isPhone = query.has('me') || (matchMedia('(pointer: coarse) and (max-width: 40rem)').matches && !query.has('desk'));
  return [LESSONS.includes(lesson) || (isPhone && /^\d/.test(lesson ?? '')) ? lesson : '2.10.6', isPhone];
}

/** Nobody visits this lesson: its race is guessed. */
const isGuessed = () => !LESSONS.includes(id);
const view = () => viewOf(id) ?? VIEWS[0];
const own = () => $('who').value.trim();
const browser = () => Date.now() * MICRO;
/** What time it is for the instances. */
const clock = () => browser() - (Number.isFinite(visits.ahead) ? visits.ahead : 0);

// ---- what is on show -------------------------------------------------------------------------------------------

/** All that does not change with time. */
function frame() {
  const lesson = titles.get(id);
  const words = lang.current();
  lang.translate();
  put($('chapter'), id);
  put($('title'), lesson?.title[words] ?? '');
  put($('claim'), lesson?.claim?.[words] ?? '');
  document.title = `${id} ${lesson?.title[words] ?? ''} · ${t('classTitle')}`;
  for (const each of ['zh', 'en']) $(each).setAttribute('aria-pressed', String(words === each));
  $('lessons').replaceChildren(...[...(isGuessed() ? [id] : []), ...LESSONS].map((each) => el('option', { value: each, selected: each === id }, `${each} ${titles.get(each)?.title[words] ?? ''}`)));
  $('back').href = `./#/${id}`;
  document.documentElement.toggleAttribute('data-me', isMine);
  for (const part of ['phone', 'back', 'claim', 'consoles', 'lights']) $(part).hidden = isMine;
  $('own-name').hidden = !isMine;
  const isHerd = id === HERD;
  for (const part of ['actions', 'state', 'lanes', 'in-words']) $(part).hidden = isHerd || isGuessed();
  $('guessing').hidden = !isGuessed();
  if (isGuessed()) {
    $('empty').hidden = true;
    put($('mine'), '');
    guessing.draw(id, own, say);
  }
  $('consoles').hidden = isHerd || isMine;
  $('herd').hidden = !isHerd;
  if (isHerd) herd.draw();
  buttons();
  wellbeing();
  fresh = true;
  draw();
}

let shownButtons = '';

/** Made anew only where they are others: one that is being pressed stays. */
function buttons() {
  const which = JSON.stringify([id, isMine, lang.current()]);
  if (shownButtons === which) return;
  shownButtons = which;
  const actions = view().actions.filter((action) => !isMine || action.only !== 'desk');
  $('actions').replaceChildren(...actions.map((action) => {
    const button = el('button', { class: 'big', 'data-act': action.name }, t(isMine ? 'classMine' : 'classAct', action.name));
    button.addEventListener('click', () => press(action, button));
    return button;
  }));
}

/** @param {Action} action @param {Element} button */
async function press(action, button) {
  if (!isMine) return say(await send(action, visits.of(view().key)));
  if (!own()) {
    $('who').focus();
    return say(t('classNameWanted'));
  }
  if (asked.has(action.name)) return;
  asked.add(action.name);
  button.setAttribute('aria-disabled', 'true');
  say('');
  say(await come(action, own(), visits.of(view().key)));
  asked.delete(action.name);
  button.setAttribute('aria-disabled', 'false');
}

/** @param {string} text */
const say = (text) => put($('notice'), text);

/** How instances and servers are, for whoever stands at the desk. */
function wellbeing() {
  lights.draw(health, reached);
  breaking.draw(lights.instances(health));
  const trouble = isMine || !health ? '' : lights.trouble(health, reached, '');
  $('trouble').hidden = !trouble;
  put($('trouble'), trouble);
}

/** What is there now; drawn anew where time goes on, or something was told. */
function draw() {
  if (id === HERD || isGuessed()) return;
  const { key } = view();
  const now = clock();
  const all = visits.of(key);
  const shown = shownOf(all, view(), now, (n) => t('classVisitor', n));
  const at = shown.from + shown.now;
  const size = $('lanes').clientWidth;
  if (!fresh && drawnAt === at && drawnSize === size) return;
  const told = fresh;
  [fresh, drawnAt, drawnSize] = [false, at, size];
  state(all, shown);
  $('empty').hidden = all.length > 0;
  put($('empty'), t(isMine ? 'classEmptyMine' : 'classEmpty'));
  drawLanes($('lanes'), shown, isMine ? own() : '');
  if (isMine) mine(all, now);
  else if (told) consoles(shown.from, key);
  if ($('in-words').open && (told || now - spokenAt > 1e6)) inWords(shown, all, now);
}

/** @param {import('./visits.js').Visit[]} all @param {Shown} shown */
function state(all, shown) {
  const { crowded, ...counts } = nowIn(shown);
  const since = all.filter((visit) => visit.from > visits.reset);
  const counted = since.flatMap((visit) => visit.count ?? []).toSorted((a, b) => a.at - b.at).at(-1);
  const room = view().state === 'meeting' ? MEMBERS : view().room;
  // It is set, or removed, when who did it leaves.
  const gate = since.filter((visit) => /\/(set|remove)$/.test(visit.route) && visit.entered != null && visit.left != null).toSorted((a, b) => Number(a.left) - Number(b.left)).at(-1);
  // What the servers said before the last thing happened is no longer so: until they are asked again, it is what was seen.
  const known = lookedAt > Math.max(0, ...since.map((visit) => visit.left ?? visit.entered ?? visit.from));
  const isPermits = view().key === 'semaphore' && objects.semaphore != null;
  // A permit is lost with an instance that is killed; one that is told to end gives it back.
  const gone = since.filter((visit) => visit.lost && visit.entered != null).length;
  if (known || !isPermits) missing = isPermits && room - Number(objects.semaphore) - counts.inside === gone ? gone : 0;
  const free = !isPermits ? null : known ? objects.semaphore : Math.max(0, room - counts.inside - missing);
  // An open latch: all are out, or nobody has begun.
  const count = known && objects.latch != null ? objects.latch || (counted ? 0 : null) : counted?.n ?? null;
  const closed = gate && !known ? /set$/.test(gate.route) : objects.barrier ?? null;
  const text = t('classState', view().state, { ...counts, room, free, missing, count, closed });
  put($('state'), crowded ? `${text}${t('space')} ${t('classCrowded')}` : text);
  $('state').classList.toggle('red', crowded);
}

/** How long this phone's own visit takes. @param {import('./visits.js').Visit[]} all @param {number} now */
function mine(all, now) {
  const times = timesOf(all.findLast((visit) => visit.who !== '' && visit.who === own()), now, all, view());
  put($('mine'), times ? inTimes(times) : '');
}

/** @param {NonNullable<ReturnType<typeof timesOf>>} times */
const inTimes = ({ waited, inside, ...how }) => t('classTimes', { waited: seconds(waited), inside: inside == null ? null : seconds(inside), ...how });

/** @param {number} from @param {string} key */
function consoles(from, key) {
  const names = [...visits.instances.keys()].toSorted();
  const there = new Map([...$('consoles').children].map((section) => [/** @type {HTMLElement} */ (section).dataset.instance, section]));
  const lines = visits.linesOf(key).filter((line) => line.at >= from - 1e6);
  const all = names.map((name) => {
    const section = there.get(name) ?? el('section', { 'data-instance': name, tabindex: 0, role: 'group' }, el('h2', {}), el('ol', {}));
    const its = lines.filter((line) => line.instance === name);
    const down = visits.instances.get(name) === false || lights.instances(health).some((i) => i.name === name && !i.up);
    section.setAttribute('aria-label', t('classConsole', name));
    put(/** @type {Element} */ (section.firstElementChild), `${name}${down ? ` ${t('classDown')}` : ''}`);
    section.lastElementChild?.replaceChildren(...(its.length ? its.map((line) => el('li', {},
      el('span', { class: 'dim' }, `${seconds(Math.max(0, line.at - from))} s`), ` ${line.who} ${line.text.replace(UUID, '$1…')}`)) : [el('li', { class: 'dim' }, t('classQuiet'))]));
    return section;
  });
  if (all.length !== there.size) $('consoles').replaceChildren(...all);
  for (const section of all) section.scrollTop = section.scrollHeight;
}

/** @param {Shown} shown @param {import('./visits.js').Visit[]} all @param {number} now */
function inWords(shown, all, now) {
  spokenAt = now;
  $('words').replaceChildren(...shown.lanes.map((lane) => {
    const times = timesOf(lane.visits.at(-1), now, all, view());
    return el('li', {}, t('classSaid', lane.name, times ? inTimes(times) : ''));
  }));
}

// ---- what is done ------------------------------------------------------------------------------------------------

/** @param {'zh' | 'en'} to */
function speak(to) {
  lang.speak(to);
  frame();
}

for (const to of /** @type {const} */ (['zh', 'en'])) $(to).addEventListener('click', () => speak(to));
$('lessons').addEventListener('change', () => {
  location.hash = `#/${$('lessons').value}${isMine ? '?me' : ''}`;
  if (!isMine) api.showLesson($('lessons').value).catch((error) => say(lang.reason(error)));
});
addEventListener('hashchange', () => {
  [id, isMine] = address();
  say('');
  frame();
});
$('phone').addEventListener('click', () => {
  scan.open(id);
  // Who comes now, and who has come, is to be where the desk is.
  api.showLesson(id).catch(() => {});
});
$('in-words').addEventListener('toggle', () => { fresh = true; });
$('who').value = always.get('who') ?? '';
$('who').addEventListener('input', () => {
  always.set('who', own());
  fresh = true;
});
/** What is seen is not all: a permit may be lost with its instance. */
async function look() {
  looking = true;
  const begun = clock();
  const seen = await api.objects().catch(() => ({}));
  [objects, lookedAt, lookAt, looking] = [seen, begun, Date.now() + LOOK_MS, false];
  // What was told is drawn already.
  drawnAt = -1;
}

/** Asks how everybody is. */
async function ask() {
  const answer = await lights.ask(health);
  [health, reached, fresh] = [answer ?? health, answer != null, true];
  wellbeing();
}

/** Again and again; not on a phone, and not while nobody looks. */
async function askForEver() {
  if (!document.hidden && !isMine) await ask();
  setTimeout(askForEver, ASK_MS);
}

function tick() {
  if (!looking && Date.now() >= lookAt && !document.hidden && id !== HERD) look();
  draw();
}
scan.listen();
breaking.listen(ask);
frame();
askForEver();
follow({
  begin() {
    visits = new Visits();
    if ($('notice').textContent === t('classLost')) say('');
    fresh = true;
  },
  told(event) {
    if (event.event === 'up') openedAt ??= event.t_us;
    // From now on: what was on show before is not what this phone was given.
    if (event.event === 'lesson' && isMine && event.key && event.t_us > (openedAt ?? Infinity)) location.hash = `#/${event.key}?me`;
    visits.take(event, browser());
    fresh = true;
    if (!isMine) lookAt = Math.min(lookAt, Date.now() + SOON_MS);
  },
  lost: () => say(t('classLost')),
});
setInterval(tick, TICK_MS);

/** The lessons' own words; their numbers must do until they are there. */
async function learn() {
  const course = await api.course().catch(() => null);
  if (!course) return void setTimeout(learn, LOOK_MS);
  const lessons = course.chapters.flatMap((/** @type {any} */ chapter) => chapter.lessons);
  titles = new Map(lessons.map((/** @type {any} */ lesson) => [lesson.id, lesson]));
  frame();
}
learn();
