/**
 * The view of a replay (`#/replay/2.3?cured=true`): plays one race on the real servers and draws it as a timeline.
 *
 * What was played stays, the flaw beside its cure, until the page is left. Read on in: timeline/model.js.
 */

import { announce } from './announce.js';
import * as api from './api.js';
import * as both from './replay-both.js';
import { $, el, put } from './dom.js';
import { current, reason, t } from './lang.js';
import { follow } from './replay-stream.js';
import { isActor } from './timeline/events.js';
import { modelOf } from './timeline/model.js';
import { Picture, sentences } from './timeline/picture.js';
import { Player, add, empty } from './timeline/player.js';
import { excerpt, lineOf } from './timeline/source.js';
import * as woken from './timeline/woken.js';

/** @typedef {{zh: string, en: string}} Title */
/** @typedef {{lesson: string, title: Title, breaks: Title, cure: Title, runs: string, cured_runs: string, ends: Meant, cured_ends: Meant, cannot: Title | null}} Replay */
/** How it must end, and what was seen then besides. @typedef {import('./timeline/events.js').Ending & {said: Title}} Meant */
/** What the service says of one. @typedef {{id: string, lesson: string, cured: boolean, pace: string, state: string, events: string}} Playing */
/** @typedef {{id: string, lesson: string, cured: boolean, pace: string, close: () => void}} Live */
/** @typedef {import('./timeline/player.js').Recording} Recording */
/** @typedef {import('./timeline/model.js').Model} Model */

const SLOWER = [1, 2, 10];
const DOUBLE_MS = 500;

/** @type {Replay[]} */
let all = [];
/** @type {Replay | null} */
let replay = null;
let cured = false;
/** What keeps the list of replays from being shown, if anything. */
let off = '';
/** What the address asked for and is not there. */
let unknown = '';
/** The one under way. @type {Live | null} */
let live = null;
/** By lesson and cured. @type {Map<string, Recording>} */
const recordings = new Map();
/** @type {string[]} */
let withFile = [];
/** Of files that were asked for: their functions. @type {Map<string, string[]>} */
const sources = new Map();
/** @type {Model} */
let model = modelOf([]);
/** Are flaw and cure on show, one above the other? */
let together = false;
let startedAt = 0;
let modelled = '';
let drawn = '';

const player = new Player(draw);
const picture = new Picture($('replay-lanes'));
const key = (/** @type {string} */ lesson, /** @type {boolean} */ mended) => `${lesson} ${mended}`;
const recorded = () => (replay ? recordings.get(key(replay.lesson, cured)) : undefined);
/** Both, where both have been played to their end. @returns {Recording[]} */
function pair() {
  const played = replay ? [false, true].map((mended) => recordings.get(key(replay?.lesson ?? '', mended))) : [];
  return played.every((one) => one?.ending) ? /** @type {Recording[]} */ (played) : [];
}
const playsThis = () => live != null && live.lesson === replay?.lesson && live.cured === cured;

/** Asks which races can be replayed here. @param {string[]} slugs of the strategies: another act has no file to show */
export async function load(slugs) {
  withFile = slugs;
  try {
    const list = await api.replays();
    off = list.enabled ? '' : 'replayOff';
    all = list.replays;
    join(list.playing);
  } catch {
    off = 'replayOff';
  }
}

/** Joins the one that is under way, whoever has started it: after a reload, and beside the window that plays it. */
export async function look() {
  if (live || off) return;
  const { playing } = await api.replays();
  join(playing);
}

/** @param {Playing | null | undefined} playing */
function join(playing) {
  if (live || playing?.state !== 'running') return;
  const recording = { ...empty(), stepped: playing.pace === 'step' };
  recordings.set(key(playing.lesson, playing.cured), recording);
  live = { ...playing, close: () => {} };
  listenTo(live, recording, playing);
  if (!$('replay').hidden) show(location.hash);
}

/** The replay that shows this strategy, as the flaw or as the cure; null where there is none. @param {string} slug */
export function of(slug) {
  const flaw = all.find((r) => r.runs === slug);
  const found = flaw ?? all.find((r) => r.cured_runs === slug);
  return found ? address(found.lesson, !flaw) : null;
}

/** Can this lesson be replayed here? @param {string} id */
export const has = (id) => all.some((r) => r.lesson === id);

/** @param {string} lesson @param {boolean} mended */
const address = (lesson, mended) => `#/replay/${lesson}${mended ? '?cured=true' : ''}`;

/** Does this address name a replay? @param {string} hash */
export const isAddress = (hash) => /^#\/replay(\/|$)/.test(hash);

/** Shows what the address names. @param {string} hash */
export function show(hash) {
  const [, lesson = '', query = ''] = /^#\/replay\/?([^?]*)\??(.*)$/.exec(hash) ?? [];
  const named = decodeURIComponent(lesson);
  const found = all.find((r) => r.lesson === named);
  unknown = named && !found && all.length > 0 ? named : '';
  replay = found ?? all[0] ?? null;
  cured = new URLSearchParams(query).get('cured') === 'true';
  together = false;
  loadSource();
  player.load(recorded() ?? { ...empty(), live: false });
  modelled = '';
  draw();
}

/** Flaw and cure together, or one of them again. */
function toggle() {
  const [flaw, cure] = pair();
  if (together) show(location.hash);
  else if (flaw) {
    const last = (/** @type {Recording} */ one) => one.events.at(-1)?.t_us ?? 0;
    player.load(last(cure) > last(flaw) ? cure : flaw);
    together = true;
    draw();
    // So that as much as possible of both is in sight.
    $('both').scrollIntoView({ block: 'start' });
  }
}

export function leave() {
  player.load({ ...empty(), live: false });
}

// ---- playing ---------------------------------------------------------------------------------------------------------

/** The button: plays what is on show, goes on to its next step, or ends it. A double click is no wish to end it. */
function pressed() {
  if (!live || live.pace === 'step') run();
  else if (playsThis() && performance.now() - startedAt > DOUBLE_MS) cancel();
}

/** Plays what is on show, or goes on to its next step. */
export async function run() {
  if (live?.pace === 'step') api.stepReplay(live.id).catch(() => {});
  if (live) return;
  if (!replay || off) return;
  const [{ lesson }, mended, pace] = [replay, cured, $('replay-pace').value];
  const recording = { ...empty(), stepped: pace === 'step' };
  const started = { id: '', lesson, cured: mended, pace, close: () => {} };
  live = started;
  startedAt = performance.now();
  recordings.set(key(lesson, mended), recording);
  show(location.hash);
  try {
    listenTo(started, recording, await api.startReplay(lesson, mended, pace));
    draw();
  } catch (error) {
    end(recording, null, reason(/** @type {any} */ (error)));
    // Another one plays: that is what there is to see.
    if (/** @type {any} */ (error).status === 409) await look().catch(() => {});
  }
}

/** @param {Live} started @param {Recording} recording @param {{id: string, events?: string}} playing */
function listenTo(started, recording, { id, events }) {
  let before = 0;
  const close = follow(events ?? `replays/${id}/events`, {
    begin: () => {
      recording.events = [];
      before = 0;
    },
    event: (event) => {
      told(add(recording, event, before));
      before = event.t_us;
    },
    over: (name, ending) => end(recording, name === 'done' ? ending : null, ending.detail ?? t('vanished')),
  });
  Object.assign(started, { id, close });
}

/** @param {Recording} recording @param {import('./timeline/events.js').Ending | null} ending @param {string} why */
function end(recording, ending, why) {
  Object.assign(recording, { live: false, ending, failed: ending ? '' : why });
  live = null;
  told();
  announce($('replay-end').textContent, true);
}

/** @param {import('./timeline/events.js').ReplayEvent} [event] */
function told(event) {
  modelled = '';
  player.told(event);
}

export function cancel() {
  if (live?.id) api.cancelReplay(live.id).catch(() => {});
}

/** The next moment; of one that waits for its next step, that. @param {1 | -1} by */
function step(by) {
  if (by > 0 && playsThis() && live?.pace === 'step' && player.cursor >= player.end - 1) run();
  else player.step(by, together ? both.moments() : model.moments);
}

/** Another replay of the list. @param {1 | -1} by */
export function another(by) {
  const next = replay && all[all.indexOf(replay) + by];
  if (next) location.hash = address(next.lesson, false);
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** Draws what changes with each frame; the rest only where it did change. */
function draw() {
  if ($('replay').hidden) return;
  const { recording } = player;
  const now = JSON.stringify([recording.events.length, recording.live && player.end]);
  if (now !== modelled) {
    modelled = now;
    model = modelOf(recording.events, player.end, room(recording.events));
  }
  frame();
  document.title = `${replay?.lesson ?? ''} ${t('replay')} · oversell`;
  if (together) both.draw(pair(), player.cursor, player.playing, room, said);
  else picture.draw(model, player.cursor, { live: recording.live, moves: player.playing || player.follows, scaled: !recording.stepped });
  put($('replay-at'), recording.stepped ? '' : t('at', (player.cursor / 1e6).toFixed(2)));
  put($('replay-play'), player.playing ? '❚❚' : '▶');
  $('replay-play').setAttribute('aria-label', t(player.playing ? 'pause' : 'play'));
  const caption = model.captions.findLast((c) => c.at <= player.cursor)?.[current()];
  put($('replay-caption'), caption ?? (replay ? `${t(cured ? 'cured' : 'flaw')}${t('colon')}${(cured ? replay.cure : replay.breaks)[current()]}` : ''));
  light();
}

/** @param {Recording} recording @param {boolean} mended @returns {import('./replay-both.js').Said} */
function said({ ending }, mended) {
  const what = replay ? (mended ? replay.cure : replay.breaks)[current()] : '';
  return { text: `${t(mended ? 'cured' : 'flaw')}${t('colon')}${what}${t('stop')}${t('space')}${ended(ending ?? {}, mended)}`, red: (ending?.sold ?? 0) > (ending?.gone ?? 0) };
}

/** How many may be inside: of what is not sold, as many as the cure lets in. @param {import('./timeline/events.js').ReplayEvent[]} events */
function room(events) {
  const sells = events.some((e) => e.actor === 'stock' || e.event === 'sold');
  return sells ? 1 : Math.max(1, replay?.cured_ends.inside ?? 1);
}

/** Title, list, buttons and verdict. */
function frame() {
  const { recording } = player;
  const now = JSON.stringify([current(), together, replay?.lesson, cured, off, unknown, live?.id, live?.lesson, recording.live, recording.ending, recording.failed, recording.events.length, player.slower, all.length]);
  if (now === drawn) return;
  drawn = now;
  const lang = current();
  $('replay-all').replaceChildren(...all.map((r) => el('option', { value: r.lesson, selected: r === replay }, `${r.lesson} ${r.title[lang]}`)));
  put($('replay-chapter'), replay?.lesson ?? '');
  put($('replay-title'), replay?.title[lang] ?? t('replay'));
  const slug = replay && (cured ? replay.cured_runs : replay.runs);
  $('replay-back').hidden = !slug;
  $('replay-back').href = `#/${slug}`;
  for (const radio of document.querySelectorAll('[name="cured"]')) {
    if (radio instanceof HTMLInputElement) radio.checked = (radio.value === 'true') === cured;
  }
  const stepping = playsThis() && live?.pace === 'step';
  put($('replay-run'), t(stepping ? 'replayNext' : playsThis() ? 'cancel' : 'replay'));
  $('replay-run').classList.toggle('cancel', playsThis() && !stepping);
  $('replay-run').setAttribute('aria-disabled', String(Boolean(off) || (live != null && !playsThis()) || replay?.cannot != null));
  $('replay-slower').replaceChildren(...SLOWER.map((n) => el('option', { value: String(n), selected: n === player.slower }, t('slower', n))));
  const { ending } = recording;
  for (const id of ['replay-lanes', 'replay-caption', 'replay-end']) $(id).hidden = together;
  $('both').hidden = !together;
  $('replay-both').setAttribute('aria-pressed', String(together));
  $('replay-both').setAttribute('aria-disabled', String(!pair().length));
  put($('replay-end'), verdict(recording));
  $('replay-watch').hidden = !live || playsThis();
  if (live) $('replay-watch').href = address(live.lesson, live.cured);
  $('replay-end').classList.toggle('red', (ending?.sold ?? 0) > (ending?.gone ?? 0));
  $('replay-told').replaceChildren(...sentences(recording.events));
  woken.draw(recording.events);
}

/** @param {Recording} recording @returns {string} */
function verdict(recording) {
  if (unknown) return t('replayNone', unknown);
  if (off) return t(off);
  if (recording.failed) return t('failed', recording.failed);
  if (recording.ending) return ended(recording.ending, cured);
  if (recording.live) return t('replayLive');
  if (live) return t('replayOther', live.lesson, t(live.cured ? 'cured' : 'flaw'));
  return replay?.cannot ? t('replayCannot', replay.cannot[current()]) : t('replayIdle');
}

/** What it came to: of a race that sells nothing, what was seen. @param {import('./timeline/events.js').Ending} ending @param {boolean} mended @returns {string} */
function ended(ending, mended) {
  const { sold = 0, gone = 0, inside = 0 } = ending;
  const meant = ending.as_meant && (mended ? replay?.cured_ends : replay?.ends);
  const saw = meant ? meant.said[current()] : ending.saw;
  // One that commits after its unlock was followed by another before: then to say that there was one alone explains nothing.
  const alone = inside === 1 && sold === gone;
  const parts = [sold || gone || model.shelf.length ? t('replaySold', ending) : '', inside > 1 || alone ? t('replayInside', inside) : '',
    saw ? `${saw}${t('stop')}` : '', ending.as_meant === false ? t('replayApart') : ''];
  return parts.join('').trim();
}

/** Where each actor is in the lesson's code at the cursor; the line of who acted last is lit. */
function light() {
  const lines = (replay && sources.get(cured ? replay.cured_runs : replay.runs)) ?? [];
  $('replay-source').hidden = together || lines.length === 0;
  const past = player.recording.events.filter((e) => isActor(e) && e.t_us <= player.cursor);
  /** @type {Map<string, number>} */
  const at = new Map();
  for (const e of past) if (lineOf(lines, e.event) >= 0) at.set(e.actor, lineOf(lines, e.event));
  const over = past.filter((e) => e.event === 'sold' || e.event === 'failed').map((e) => e.actor);
  const last = past.findLast((e) => lineOf(lines, e.event) >= 0);
  const lit = last ? lineOf(lines, last.event) : -1;
  const who = (/** @type {number} */ n) => [...at].filter(([actor, line]) => line === n && !over.includes(actor)).map(([actor]) => actor).toSorted().join('');
  const now = JSON.stringify([replay?.lesson, cured, lines.length, lit, lines.map((_, n) => who(n))]);
  if ($('replay-source').dataset.now === now) return;
  $('replay-source').dataset.now = now;
  $('replay-source').replaceChildren(...lines.map((line, n) => el('span', { class: n === lit ? 'line lit' : 'line' },
    el('span', { class: 'at' }, who(n).padEnd(3)), ` ${line}\n`)));
  const [box, shown] = [$('replay-source'), $('replay-source').querySelector('.lit')];
  if (shown) box.scrollTop = shown.offsetTop - box.offsetTop - (box.clientHeight - shown.offsetHeight) / 2;
}

async function loadSource() {
  const slug = replay && (cured ? replay.cured_runs : replay.runs);
  if (!slug || !withFile.includes(slug) || sources.has(slug)) return;
  sources.set(slug, []);
  sources.set(slug, excerpt(await api.source(slug).catch(() => '')));
  draw();
}

// ---- buttons and keys ------------------------------------------------------------------------------------------------

export function listen() {
  $('replay-run').onclick = pressed;
  $('replay-both').onclick = toggle;
  both.listen((at) => player.seek(at));
  $('replay-all').onchange = () => { location.hash = address($('replay-all').value, false); };
  $('replay-play').onclick = () => player.toggle();
  $('replay-back-step').onclick = () => step(-1);
  $('replay-step').onclick = () => step(1);
  $('replay-slower').onchange = () => player.slow(Number($('replay-slower').value));
  $('replay').addEventListener('change', (/** @type {Event} */ event) => {
    const field = /** @type {HTMLInputElement} */ (event.target);
    if (field.name === 'cured' && replay) location.hash = address(replay.lesson, field.value === 'true');
  });
  $('replay-lanes').onpointerdown = (/** @type {PointerEvent} */ event) => {
    if (event.pointerType === 'mouse') player.seek(picture.at(event.clientX));
  };
  addEventListener('resize', draw);
}

/** Space plays and pauses, ← and → step. @param {string} name @param {Element} at @returns {(() => void) | null} */
export function keyed(name, at) {
  if (at.matches('input, select, summary') || (name === ' ' && at.matches('button'))) return null;
  switch (name) {
    case ' ': return () => player.toggle();
    case 'ArrowLeft': return () => step(-1);
    case 'ArrowRight': return () => step(1);
    default: return null;
  }
}

/** The language has changed. */
export const redraw = draw;
