/** One sentence on the state: before, during and after a run. */

import { announce } from '../shared/screen-reader.js';
import { $, el, setText } from '../shared/dom.js';
import { figuresOf, secondsLeft, stalledRequests } from './run-figures.js';
import { formatNumber, t } from '../shared/language.js';
import { serverNames } from '../lesson/lesson-head.js';
import { expectedSeconds, prediction } from './prediction.js';

/** @typedef {import('./runs.js').Run} Run */
/** @typedef {import('../lesson/course.js').Strategy} Strategy */
/** @typedef {import('../page/address.js').Settings} Settings */

/**
 *
 * @param {{strategy: Strategy, settings: Settings | null, run: Run | null, stale: boolean, down: string[], dead: string, showsClaim?: boolean}} about
 *   `settings`: null if a field is wrong; `stale`: the run has other settings; `dead`: instances that do not answer; `showsClaim`: the lesson claims what a run shows
 * @returns {string}
 */
export function statusSentence({ strategy, settings, run, stale, down, dead, showsClaim = true }) {
  if (run?.state === 'starting') return t('starting');
  if (run?.state === 'waiting') return t('queued', run.position ?? 1, Math.ceil((run.starts_in_ms ?? 0) / 1000));
  if (run?.state === 'running') return runningSentence(run, dead);
  if (!settings) return t('wrongField');
  if (down.length) return t('waitsFor', serverNames(down));
  if (run && !stale) return endSentence(run, showsClaim);
  const [name, ...about] = prediction(strategy, settings);
  const seconds = expectedSeconds(strategy, settings, run?.row?.throughput);
  const predicted = t(name, ...about.map((a) => (a >= 1000 ? formatNumber(a) : a)));
  return [t(stale ? 'otherSettings' : 'notRunYet'), predicted, seconds && seconds > 5 ? t('willTake', formatNumber(seconds)) : ''].filter(Boolean).join(t('space'));
}

/** @param {Run} run @param {string} dead */
function runningSentence(run, dead) {
  if (run.instance && dead.split(' ').includes(run.instance)) return t('senderStill', ...progressOf(run), run.instance);
  if (run.lost) return t('lost', ...progressOf(run));
  const stuck = stalledRequests(run.snapshot);
  if (stuck?.name) return t('stuck', ...progressOf(run), stuck.waiting, stuck.all, stuck.name);
  if (stuck) return t('stalled', ...progressOf(run), stuck.all, dead);
  const left = secondsLeft(run.snapshot);
  return t('running', ...progressOf(run), left > 2 ? left : 0);
}

let wasIdle = true;

/** Shows the sentence; a screen reader hears it at the start and the end of a run, and seldom in between. @param {string} text @param {boolean} running */
export function say(text, running) {
  setText($('say'), text);
  if (running || !wasIdle) announce(text, running === wasIdle);
  wasIdle = !running;
}

/** Says whose run is active and how long it still takes, with a link to it. @param {Run} other @param {string | null} href */
export function sayOtherRun(other, href) {
  const who = [other.plan.strategy, t(other.plan.target), other.by].filter(Boolean).join(' · ');
  const text = t('busy', who, ...progressOf(other), secondsLeft(other.snapshot));
  const link = $('say').querySelector('a');
  // Keep the link while the numbers change, so that it can be pressed.
  if (link && link.getAttribute('href') === href) link.previousSibling.textContent = `${text} `;
  else $('say').replaceChildren(`${text} `, href ? el('a', { href }, t('watch')) : '');
}

/** @param {Run} run */
const progressOf = ({ snapshot }) => [formatNumber(snapshot.samples), formatNumber(snapshot.planned)];

/** What the difference means: who has one, and what the stock still says. @param {Run} run */
export function oversoldSentence({ plan, row }) {
  const { sold, after, oversold } = /** @type {Record<string, any>} */ (row);
  return t('oversold', formatNumber(sold), formatNumber(after), formatNumber(oversold), sold > plan.count);
}

/** @param {Run} run @param {boolean} showsClaim */
function endSentence(run, showsClaim) {
  if (run.state === 'failed') return t('failed', run.vanished ? t('vanished') : run.detail || t('disconnected'));
  if (run.state === 'cancelled') return t('cancelled', ...progressOf(run));
  const { over } = figuresOf(run);
  if ((over ?? 0) > 0) return oversoldSentence(run);
  if (run.row?.verdict === 'errors') return run.snapshot.errors ? t('failing', formatNumber(run.snapshot.errors)) : t('apart');
  return t((over ?? 0) < 0 ? 'apart' : showsClaim ? 'exact' : 'exactOnly');
}
