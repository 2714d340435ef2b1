/**
 * The panel that opens from the lights and breaks servers and instances, where a lab has started them.
 *
 * A paused instance cannot answer, so a fault is sent to one that runs and is not its target. What can be broken, and how it is now, the
 * lab says (GET /lab).
 */

import * as admin from './admin-token.js';
import * as api from './api.js';
import { $, el, setText, replaceKeepingFocus } from './dom.js';
import { currentLanguage, errorText, t } from './language.js';

/** @typedef {{name: string, instance: boolean, state: 'running' | 'paused' | 'killed', can: string[]}} Member */
/** @typedef {{name: string, instance: string, server: string, state: 'open' | 'cut' | 'slow'}} Link */
/** @typedef {{owned: boolean, why: import('../lesson/course.js').Title | null, members: Member[], links: Link[], phones: string | null}} Lab */
/** @typedef {{action: string, member: string}} Fault */

const REFRESH_MS = 2000;
/** An instance has a button to be cut off from each of these. */
const MAIN_SERVERS = ['mysql', 'redis', 'zookeeper', 'etcd'];

/** @type {Lab | null} */
let lab = null;
/** The names of the instances that are up. @type {string[]} */
let runningInstances = [];
/** The member on show; empty: the panel is closed. */
let openMember = '';
/** The last message, in the current language. */
let message = () => '';
const noMessage = message;
const nobodyAnswered = () => t('breakingNone');
let isBusy = false;
let lastDrawn = '';
// Every page with lights has an empty box for these.
const [membersBox, actionBox, tokenBox, messageBox] = [
  el('ul', { id: 'breaking-members', class: 'breaking-members' }), el('div', { id: 'breaking-acts', class: 'breaking-acts' }),
  el('div', {}), el('p', { id: 'breaking-said', role: 'status' })];
/** @type {number | undefined} */
let refreshTimer;
/** Called after a fault or repair: health has changed. */
let onChange = () => {};

// ---- requests --------------------------------------------------------------------------------------------------------

/** The addresses to try, best first: instances by name, then the page's own. @param {string} but */
function addressesFor(but) {
  const stopped = lab?.members.filter((m) => m.state !== 'running').map((m) => m.name) ?? [];
  return [...runningInstances.filter((name) => name !== but && !stopped.includes(name)).map((name) => `instances/${name}/`), ''];
}

/** Asks the first instance that answers what the lab's state is; faults go to it. @param {string} but @returns {Promise<string | null>} */
async function fetchLab(but) {
  for (const at of addressesFor(but)) {
    try {
      lab = await api.labState(at);
      return at;
    } catch {
      // It is paused, or unknown at this address: try the next.
    }
  }
  return null;
}

async function refresh() {
  const at = await fetchLab('');
  if (at == null) message = nobodyAnswered;
  else if (message === nobodyAnswered) message = noMessage;
  redraw();
}

/** @param {() => Fault[]} nextFaults called again after each round, until nothing new is left @param {() => string} doneMessage the message at the end */
async function inject(nextFaults, doneMessage) {
  if (isBusy) return;
  [isBusy, message] = [true, () => t('breakingGoing')];
  redraw();
  try {
    for (let faults = nextFaults(), before = ''; faults.length && JSON.stringify(faults) !== before; faults = nextFaults()) {
      before = JSON.stringify(faults);
      for (const fault of faults) {
        const at = await fetchLab(fault.member);
        if (at == null) throw new Error(nobodyAnswered());
        lab = await api.injectFault(at, fault);
      }
    }
    message = doneMessage;
  } catch (error) {
    const isRefused = admin.askForToken(error, tokenBox, () => inject(nextFaults, doneMessage));
    message = () => (isRefused ? t('tokenWanted') : errorText(/** @type {any} */ (error)));
  }
  isBusy = false;
  redraw();
  onChange();
}

// ---- faults ----------------------------------------------------------------------------------------------------------

/** The faults of a member, with their labels. @param {Lab} all @param {Member} member @returns {{label: string, fault: Fault}[]} */
function faultsOf(all, member) {
  const own = member.can.map((action) => ({ label: t('fault', action), fault: { action, member: member.name } }));
  // A paused or killed instance reaches nobody anyway.
  const its = all.links.filter((way) => way.instance === member.name && MAIN_SERVERS.includes(way.server) && (member.state === 'running' || way.state !== 'open'));
  const from = its.map(({ name, server, state }) => {
    const action = state === 'open' ? 'cut' : 'mend';
    return { label: t('faultWay', action, server), fault: { action, member: name } };
  });
  const to = all.links.filter((way) => way.server === member.name && all.members.some((m) => m.instance && m.name === way.instance));
  const actions = !to.length ? [] : to.every((way) => way.state === 'open') ? ['cut', 'slow'] : ['mend'];
  return [...own, ...from, ...actions.map((action) => ({ label: t('fault', action), fault: { action, member: member.name } }))];
}

/** What repairs everything. A restarted Redis may follow another, and is then promoted. @param {Lab} all @returns {Fault[]} */
function repairsOf(all) {
  const [first] = all.members.filter((m) => m.name === 'redis' && m.can.includes('promote'));
  return [
    ...all.links.filter((way) => way.state !== 'open').map((way) => ({ action: 'mend', member: way.name })),
    ...all.members.filter((m) => m.state !== 'running').map((m) => ({ action: m.state === 'paused' ? 'resume' : 'start', member: m.name })),
    ...all.members.filter((m) => m.can.includes('mend')).map((m) => ({ action: 'mend', member: m.name })),
    ...(first ? [{ action: 'promote', member: 'redis' }] : []),
  ];
}

// ---- drawing ---------------------------------------------------------------------------------------------------------

/** @param {{name: string, up: boolean}[]} instances */
export function draw(instances) {
  runningInstances = instances.filter((i) => i.up).map((i) => i.name);
  redraw();
}

function redraw() {
  for (const light of lightButtons()) light.setAttribute('aria-expanded', String(light.dataset.key === openMember));
  const now = JSON.stringify([currentLanguage(), openMember, lab, message(), isBusy]);
  if (now === lastDrawn) return;
  lastDrawn = now;
  $('breaking').hidden = !openMember;
  if (!openMember) return;
  setText(messageBox, message() || (lab ? '' : t('breakingAsk')));
  const close = button('close', t('breakingClose'), closePanel);
  if (!lab?.owned) {
    replaceKeepingFocus(membersBox, []);
    replaceKeepingFocus(actionBox, [el('span', {}, lab?.why?.[currentLanguage()] ?? ''), close]);
    return;
  }
  const all = lab;
  const instancesFirst = [...all.members].sort((a, b) => Number(b.instance) - Number(a.instance));
  replaceKeepingFocus(membersBox, instancesFirst.map((m) => el('li', { 'data-state': m.state },
    button(m.name, m.state === 'running' ? m.name : `${m.name} ${t('memberState', m.state)}`, () => openPanel(m.name), m.name === openMember))));
  const member = all.members.find((m) => m.name === openMember);
  const broken = all.links.filter((way) => way.state !== 'open' && way.instance === openMember);
  const explanation = member ? `${member.name}${t('colon')}${t('memberMeans', member.state, member.instance)}${broken.map((way) => t('wayMeans', way.server, way.state)).join('')}` : '';
  const repairs = repairsOf(all);
  replaceKeepingFocus(actionBox, [
    el('span', {}, explanation),
    ...(member ? faultsOf(all, member) : []).map(({ label, fault }) => button(`${fault.action} ${fault.member}`, label, () => inject(() => [fault], () => t('faultDone', fault.member, fault.action)))),
    ...(repairs.length ? [button('all', t('breakingAll'), () => inject(() => (lab ? repairsOf(lab) : []), () => t(lab && repairsOf(lab).length ? 'faultLeft' : 'faultAll')))] : []), close]);
}

/** @param {string} key @param {string} label @param {() => void} act @param {boolean} [pressed] */
function button(key, label, act, pressed) {
  const one = el('button', { type: 'button', 'data-key': key, 'aria-disabled': String(isBusy), 'aria-pressed': pressed == null ? null : String(pressed) }, label);
  one.addEventListener('click', act);
  return one;
}

// ---- opening and closing ---------------------------------------------------------------------------------------------

/** @returns {HTMLElement[]} */
const lightButtons = () => [...$('lights').querySelectorAll('button')];

/** @param {string} name */
function openPanel(name) {
  openMember = name;
  if (!isBusy) message = noMessage;
  redraw();
}

function closePanel() {
  const was = openMember;
  clearInterval(refreshTimer);
  [openMember, message, refreshTimer] = ['', noMessage, undefined];
  redraw();
  lightButtons().find((light) => light.dataset.key === was)?.focus();
}

/** @param {() => void} ask polls health */
export function listen(ask) {
  onChange = ask;
  $('breaking').replaceChildren(membersBox, actionBox, tokenBox, messageBox);
  $('lights').addEventListener('click', async (/** @type {Event} */ event) => {
    const name = /** @type {HTMLElement} */ (event.target).closest('button')?.dataset.key;
    if (!name) return;
    if (name === openMember) {
      closePanel();
      return;
    }
    openPanel(name);
    $('breaking').focus();
    refreshTimer ??= setInterval(() => document.hidden || isBusy || refresh(), REFRESH_MS);
    await refresh();
  });
  $('breaking').addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape') return;
    // Escape closes the panel and cancels no run.
    event.stopPropagation();
    closePanel();
  });
}
