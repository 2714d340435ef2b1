/**
 * Breaking servers and instances by hand, where a lab has started them: the lights of a page open a line with what can be done.
 *
 * An instance that stands still cannot answer, so an order goes to one that runs and is not meant by it. What there is, what can
 * be done to it and how it is, is what the lab says (GET /lab); nothing of it is known here.
 */

import * as admin from './admin-token.js';
import * as api from './api.js';
import { $, el, put, refill } from './dom.js';
import { current, reason, t } from './language.js';

/** @typedef {{name: string, instance: boolean, state: 'running' | 'paused' | 'killed', can: string[]}} Member */
/** @typedef {{name: string, instance: string, server: string, state: 'open' | 'cut' | 'slow'}} Way */
/** @typedef {{owned: boolean, why: import('../lesson/course.js').Title | null, members: Member[], ways: Way[], phones: string | null}} Lab */
/** @typedef {{action: string, member: string}} Fault */

const AGAIN_MS = 2000;
/** The servers that an instance is cut off from by a button of its own. */
const MAIN = ['mysql', 'redis', 'zookeeper'];

/** @type {Lab | null} */
let lab = null;
/** The instances, as far as they are known to be up. @type {string[]} */
let up = [];
/** The member on show; nothing: the line is closed. */
let chosen = '';
/** What is said of what was done, or of why not; in the language of the moment. */
let said = () => '';
const nothing = said;
const nobody = () => t('breakingNone');
let busy = false;
let drawn = '';
// Every page with lights has an empty box for it.
const [members, acting, asking, saying] = [
  el('ul', { id: 'breaking-members', class: 'breaking-members' }), el('div', { id: 'breaking-acts', class: 'breaking-acts' }),
  el('div', {}), el('p', { id: 'breaking-said', role: 'status' })];
/** @type {number | undefined} */
let ticking;
/** Somebody was broken or mended: how everybody is, is to be asked anew. */
let changed = () => {};

// ---- asking ----------------------------------------------------------------------------------------------------------

/** Those who can be asked, the best first: by name, and at last whoever this page comes from. @param {string} but */
function ways(but) {
  const stopped = lab?.members.filter((m) => m.state !== 'running').map((m) => m.name) ?? [];
  return [...up.filter((name) => name !== but && !stopped.includes(name)).map((name) => `instances/${name}/`), ''];
}

/** The first who answers how all is, and may be given orders. @param {string} but @returns {Promise<string | null>} */
async function answering(but) {
  for (const at of ways(but)) {
    try {
      lab = await api.lab(at);
      return at;
    } catch {
      // It stands still, or is unknown at this address: the next one is asked.
    }
  }
  return null;
}

async function refresh() {
  const at = await answering('');
  if (at == null) said = nobody;
  else if (said === nobody) said = nothing;
  redraw();
}

/** @param {() => Fault[]} wanted asked again once they are done, until nothing else is left to do @param {() => string} done what is said at their end */
async function give(wanted, done) {
  if (busy) return;
  [busy, said] = [true, () => t('breakingGoing')];
  redraw();
  try {
    for (let faults = wanted(), before = ''; faults.length && JSON.stringify(faults) !== before; faults = wanted()) {
      before = JSON.stringify(faults);
      for (const fault of faults) {
        const at = await answering(fault.member);
        if (at == null) throw new Error(nobody());
        lab = await api.order(at, fault);
      }
    }
    said = done;
  } catch (error) {
    const isRefused = admin.isWanted(error, asking, () => give(wanted, done));
    said = () => (isRefused ? t('tokenWanted') : reason(/** @type {any} */ (error)));
  }
  busy = false;
  redraw();
  changed();
}

// ---- what can be done ------------------------------------------------------------------------------------------------

/** The buttons of a member, with what each does. @param {Lab} all @param {Member} member @returns {{label: string, fault: Fault}[]} */
function acts(all, member) {
  const own = member.can.map((action) => ({ label: t('fault', action), fault: { action, member: member.name } }));
  // One that stands still or is gone reaches nobody anyway.
  const its = all.ways.filter((way) => way.instance === member.name && MAIN.includes(way.server) && (member.state === 'running' || way.state !== 'open'));
  const from = its.map(({ name, server, state }) => {
    const action = state === 'open' ? 'cut' : 'mend';
    return { label: t('faultWay', action, server), fault: { action, member: name } };
  });
  const to = all.ways.filter((way) => way.server === member.name && all.members.some((m) => m.instance && m.name === way.instance));
  const actions = !to.length ? [] : to.every((way) => way.state === 'open') ? ['cut', 'slow'] : ['mend'];
  return [...own, ...from, ...actions.map((action) => ({ label: t('fault', action), fault: { action, member: member.name } }))];
}

/** What puts all back; one that was killed may follow another once it is started, and is then promoted. @param {Lab} all @returns {Fault[]} */
function repairs(all) {
  const [first] = all.members.filter((m) => m.name === 'redis' && m.can.includes('promote'));
  return [
    ...all.ways.filter((way) => way.state !== 'open').map((way) => ({ action: 'mend', member: way.name })),
    ...all.members.filter((m) => m.state !== 'running').map((m) => ({ action: m.state === 'paused' ? 'resume' : 'start', member: m.name })),
    ...all.members.filter((m) => m.can.includes('mend')).map((m) => ({ action: 'mend', member: m.name })),
    ...(first ? [{ action: 'promote', member: 'redis' }] : []),
  ];
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** @param {{name: string, up: boolean}[]} instances */
export function draw(instances) {
  up = instances.filter((i) => i.up).map((i) => i.name);
  redraw();
}

function redraw() {
  for (const light of lights()) light.setAttribute('aria-expanded', String(light.dataset.key === chosen));
  const now = JSON.stringify([current(), chosen, lab, said(), busy]);
  if (now === drawn) return;
  drawn = now;
  $('breaking').hidden = !chosen;
  if (!chosen) return;
  put(saying, said() || (lab ? '' : t('breakingAsk')));
  const close = button('close', t('breakingClose'), shut);
  if (!lab?.owned) {
    refill(members, []);
    refill(acting, [el('span', {}, lab?.why?.[current()] ?? ''), close]);
    return;
  }
  const all = lab;
  const inOrder = all.members.toSorted((a, b) => Number(b.instance) - Number(a.instance));
  refill(members, inOrder.map((m) => el('li', { 'data-state': m.state },
    button(m.name, m.state === 'running' ? m.name : `${m.name} ${t('memberState', m.state)}`, () => show(m.name), m.name === chosen))));
  const member = all.members.find((m) => m.name === chosen);
  const broken = all.ways.filter((way) => way.state !== 'open' && way.instance === chosen);
  const means = member ? `${member.name}${t('colon')}${t('memberMeans', member.state, member.instance)}${broken.map((way) => t('wayMeans', way.server, way.state)).join('')}` : '';
  const back = repairs(all);
  refill(acting, [
    el('span', {}, means),
    ...(member ? acts(all, member) : []).map(({ label, fault }) => button(`${fault.action} ${fault.member}`, label, () => give(() => [fault], () => t('faultDone', fault.member, fault.action)))),
    ...(back.length ? [button('all', t('breakingAll'), () => give(() => (lab ? repairs(lab) : []), () => t(lab && repairs(lab).length ? 'faultLeft' : 'faultAll')))] : []), close]);
}

/** @param {string} key @param {string} label @param {() => void} act @param {boolean} [pressed] */
function button(key, label, act, pressed) {
  const one = el('button', { type: 'button', 'data-key': key, 'aria-disabled': String(busy), 'aria-pressed': pressed == null ? null : String(pressed) }, label);
  one.addEventListener('click', act);
  return one;
}

// ---- opening and closing ---------------------------------------------------------------------------------------------

/** @returns {HTMLElement[]} */
const lights = () => [...$('lights').querySelectorAll('button')];

/** @param {string} name */
function show(name) {
  chosen = name;
  if (!busy) said = nothing;
  redraw();
}

function shut() {
  const was = chosen;
  clearInterval(ticking);
  [chosen, said, ticking] = ['', nothing, undefined];
  redraw();
  lights().find((light) => light.dataset.key === was)?.focus();
}

/** @param {() => void} ask how everybody is */
export function listen(ask) {
  changed = ask;
  $('breaking').replaceChildren(members, acting, asking, saying);
  $('lights').addEventListener('click', async (/** @type {Event} */ event) => {
    const name = /** @type {HTMLElement} */ (event.target).closest('button')?.dataset.key;
    if (!name) return;
    if (name === chosen) {
      shut();
      return;
    }
    show(name);
    $('breaking').focus();
    ticking ??= setInterval(() => document.hidden || busy || refresh(), AGAIN_MS);
    await refresh();
  });
  $('breaking').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    // Here it closes this, and ends no run.
    event.stopPropagation();
    shut();
  });
}
