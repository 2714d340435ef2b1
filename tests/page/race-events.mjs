/** What is true of the events of every race: its commands have their answers, its locks their commands, and its captions come with their events. */

import assert from 'node:assert/strict';
import { TRANSPORT, isActor, parseEvent } from '../../static/js/timeline/events.js';
import { modelOf } from '../../static/js/timeline/model.js';
import { sendJson, waitUntil } from './support.mjs';

/** Races that were played, by lesson and half. @type {Map<string, Promise<Played>>} */
const played = new Map();

/** The events of a race at full speed, and how it ended: each is played once. @param {string} http @param {string} lesson @param {boolean} cured @returns {Promise<Played>} */
export function play(http, lesson, cured) {
  const key = `${lesson} ${cured}`;
  const its = played.get(key) ?? playOnServers(http, lesson, cured);
  played.set(key, its);
  return its;
}

/** @typedef {{events: any[], ending: any}} Played */
/** @param {string} http @param {string} lesson @param {boolean} cured @returns {Promise<Played>} */
async function playOnServers(http, lesson, cured) {
  /** @type {Response} */
  let started;
  // The race before may still be mending what it has stopped.
  await waitUntil(async () => {
    started = await sendJson(`${http}/replays/${lesson}?pace=fast&cured=${cured}`, {});
    return started.status !== 409;
  }, `the turn of ${lesson}`);
  assert.equal(started.status, 202, `${lesson}: ${await started.clone().text()}`);
  const { events } = await started.json();
  const text = await (await fetch(new URL(events, `${http}/`))).text();
  const all = text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6)));
  return { events: all.filter(({ actor }) => actor), ending: all.findLast(({ actor }) => !actor) };
}

/** What English verbs name, apart from the words of the page. @type {Record<string, string[]>} */
const ENGLISH = {
  reads: ['read'], writes: ['written', 'committed', 'refused-by-row', 'conflict', 'failed'], commits: ['committed'], 'gets in': ['locked', 'taken'],
  releases: ['released', 'deleted', 'lost', 'done', 'sold'], unlocks: ['released', 'deleted', 'lost', 'done', 'sold'], wakes: ['continued'],
};

/** The captions that do not come with their event: later, or before it. @param {any[]} events @returns {string[]} */
export function wrongCaptions(events) {
  const all = events.map(parseEvent);
  const { captions } = modelOf(all);
  const steps = all.flatMap(({ actor }, i) => (actor === 'step' ? [i] : []));
  return steps.flatMap((from, n) => {
    const next = steps[n + 1] ?? all.length;
    const { at, zh, en } = captions[n];
    const does = all.slice(from + 1, next).filter((e) => isActor(e) && !['start', 'renew', ...TRANSPORT].includes(e.event));
    const toldAt = all.findIndex((e, k) => k >= from && k < next && modelOf(all.slice(0, k + 1), e.t_us, 1, { live: true }).captions.length > n);
    // An actor that only begins to wait does nothing that is seen.
    if (toldAt < 0) return does.length ? [`${zh}: told after ${does.map(({ actor, event }) => `${actor} ${event}`)}`] : [];
    const passed = does.filter((e) => e.t_us > at && e.t_us < all[toldAt].t_us);
    if (passed.length) return [`${zh}: it stands before ${passed[0].event}, and comes later`];
    // "A reads, and writes", "A writes, and so does B".
    const named = [...en.matchAll(/\b([ABC]) (.*?)(?=[,:;] |$)/g)].flatMap(([, who, what]) => Object.keys(ENGLISH).filter((verb) => what.startsWith(verb)).map((verb) => ({ who, verb })));
    const [first] = named;
    if (first) {
      for (const [, verb] of en.matchAll(/ and (reads|writes|commits|releases|unlocks)\b/g)) named.push({ who: first.who, verb });
      for (const [, who] of en.matchAll(/so does ([ABC])/g)) named.push({ who, verb: first.verb });
    }
    return named.filter(({ who, verb }) => does.some((e) => e.actor === who && ENGLISH[verb].includes(e.event) && !does.some((other) => other !== e && other.t_us < e.t_us && other.actor === who && ENGLISH[verb].includes(other.event)) && e.t_us > at))
      .map(({ who, verb }) => `${zh}: it comes before ${who} ${verb}`);
  });
}

/** The commands that take a lock. */
const TAKES = /^(SET|SETNX|HSET|EVAL|EVALSHA|create|INSERT|txn)\b/i;
/** The look at a server may be told before the command whose effect it has seen. */
const SEEN_BEFORE_TOLD_US = 50_000;

/** What is untrue or missing of what was sent. @param {any[]} events @returns {string[]} */
export function problemsOf(events) {
  const problems = [];
  const ended = new Set(events.filter(({ event }) => ['sold', 'done'].includes(event)).map(({ actor }) => actor));
  for (const actor of ended) {
    const mine = events.filter((e) => e.actor === actor);
    // One of several nodes may be dead, or too slow for the client to wait for it.
    const isCommand = (e) => e.event === 'sent' && !/^(SELECT|START|\/\*|\[)/i.test(e.value);
    const toNodes = (event, of) => mine.filter((e) => e.event === event && of(e).startsWith('[')).length;
    if (toNodes('sent', ({ value }) => value) && !toNodes('answered', ({ key }) => key)) problems.push(`${actor}: no answer of any node`);
    for (const e of mine.filter(isCommand)) {
      const [command] = e.value.split('\n');
      const count = (event, of) => mine.filter((one) => one.event === event && of(one) === command).length;
      if (count('answered', ({ key }) => key) < count('sent', ({ value }) => value.split('\n')[0])) problems.push(`${actor}: no answer to ${command}`);
    }
    const scripts = mine.filter((e) => e.event === 'sent' && e.value.includes('EVALSHA'));
    const digests = new Set(scripts.map(({ value }) => /EVALSHA (\S+)/.exec(value)[1]));
    for (const digest of digests) if (!scripts.some(({ value }) => value.includes(digest) && value.includes('\n'))) problems.push(`${actor}: no text of ${digest}`);
  }
  // A lock in a server is there by a command of its owner that takes it; in a row of tb_lock the name is one of the values.
  for (const { owner, key, t_us } of events.filter((e) => e.actor === 'lock' && e.event === 'held' && /^[A-Z]$/.test(e.owner))) {
    const [, node, name] = /^(?:(redis(?:-\d+)?) )?(.*)$/.exec(key);
    const takes = (e) => {
      const [, to, command] = /^(?:\[(\S+)\] )?(.*)/.exec(e.value);
      return TAKES.test(command) && to === node && (command.includes(name) || command.includes('tb_lock'));
    };
    if (!events.some((e) => e.actor === owner && e.event === 'sent' && takes(e) && e.t_us <= t_us + SEEN_BEFORE_TOLD_US)) problems.push(`${owner}: no command that takes ${key}`);
  }
  return problems;
}

/** The lines of a race in the page, as `sent-commands.js` has them. @param {import('./support.mjs').Tab} tab @param {any[]} events @returns {Promise<{actor: string, text: string, came: string, script: string}[]>} */
export const linesIn = (tab, events) => tab.evaluate(async (given) => {
  const [{ linesOf }, words, own] = await Promise.all(['race/sent-commands', 'words/all', 'shared/language'].map((name) => import(`${location.origin}/js/${name}.js`)));
  own.addWords(words.languages);
  return linesOf(given);
}, events.map(parseEvent));

/** Says of a line that the lock's library has sent something that is not listed. */
export const UNLISTED = /没有逐条列出/;

/** In the page: the marks of pictures that their legend lacks, and those that it has too many. @param {string} pictures @param {string} legend */
export function unlikeLegend(pictures, legend) {
  const all = [...document.querySelectorAll(pictures)];
  const has = (/** @type {string} */ at) => all.some((one) => one.querySelector(at));
  const words = all.flatMap((one) => [...one.querySelectorAll('text.label')]);
  const says = (/** @type {RegExp} */ like, /** @type {boolean} */ isOwner) => words.some((word) => word.classList.contains('owner') === isOwner && like.test(word.textContent));
  const shown = new Set(all.flatMap((one) => [...one.querySelectorAll('[data-kind]')].map((mark) => mark.getAttribute('data-kind'))));
  const others = { open: has('circle.dot-open'), full: has('circle.dot-full'), red: has('circle.red'), place: has('rect.place'), times: says(/×\d/, true), repeated: says(/× \d/, false), bang: says(/ !$/, false) };
  for (const [mark, isShown] of Object.entries(others)) if (isShown) shown.add(mark);
  const explained = [...document.querySelectorAll(`${legend} [data-mark]`)].map((one) => one.getAttribute('data-mark'));
  return [...[...shown].filter((mark) => !explained.includes(mark)).map((mark) => `without ${mark}`), ...explained.filter((mark) => !shown.has(mark)).map((mark) => `${mark} too many`)];
}

/** What a lab without options cannot play. */
export const NEEDS_OPTIONS = ['003.master', '003.redlock.answers', '003.redlock.clock', '003.redlock.restart', '2.10.4', '2.8', '2.9', '2.9.nodes', 'beyond.etcd-still'];
/** Ten seconds each where a session of ZooKeeper must time out; at once where its link can be cut. */
export const QUICK_WITH_OPTIONS = ['003.pause.zk', '003.session', '3.2'];
