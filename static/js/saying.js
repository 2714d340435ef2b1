/** One sentence that says how things stand: before, during and after a run. */

import { announce } from './announce.js';
import { $, el, put } from './dom.js';
import { figures, secondsLeft, willOversell } from './figures.js';
import { number, t } from './lang.js';
import { servers } from './lesson.js';

/** @typedef {import('./api.js').Run} Run */

/**
 * @param {{lesson: import('./api.js').Lesson, settings: import('./api.js').Settings, run: Run | null, down: string[]}} now
 * @returns {string}
 */
export function sentence({ lesson, settings, run, down }) {
  if (run?.state === 'starting') return t('starting');
  if (run?.state === 'running') return t(run.lost ? 'lost' : 'running', ...progress(run));
  if (down.length) return t('waitsFor', servers(down));
  if (run) return ended(run);
  const n = number(Math.min(settings.threads * settings.loops, settings.count));
  return t(willOversell(lesson.promise, settings) ? 'willOversell' : 'willBeExact', n);
}

let quiet = true;

/** Says how this lesson stands; aloud at the start and the end of a run, between them seldom. @param {string} text @param {boolean} running */
export function say(text, running) {
  put($('say'), text);
  if (running || !quiet) announce(text, running === quiet);
  quiet = !running;
}

/** Says whose run is in the way and how long it still takes, with the way there. @param {Run} other @param {string | null} href */
export function busy(other, href) {
  const who = [other.plan.strategy, t(other.plan.target), other.by].filter(Boolean).join(' · ');
  const text = t('busy', who, ...progress(other), secondsLeft(other.snapshot));
  const link = $('say').querySelector('a');
  // The link stays the same one while the numbers change, or it could not be pressed.
  if (link?.getAttribute('href') === href) link.previousSibling.textContent = `${text} `;
  else $('say').replaceChildren(`${text} `, href ? el('a', { href }, t('watch')) : '');
}

const progress = (/** @type {Run} */ { snapshot }) => [number(snapshot.samples), number(snapshot.planned)];

/** @param {Run} run @returns {string} */
function ended(run) {
  if (run.state === 'failed') return t('failed', run.vanished ? t('vanished') : run.detail || t('disconnected'));
  if (run.state === 'cancelled') return t('cancelled', ...progress(run));
  const over = figures(run).over ?? 0;
  if (over > 0) return t('oversold', number(over));
  if (run.row?.verdict === 'errors') return t('failing', number(run.snapshot.errors));
  return t(over < 0 ? 'apart' : 'exact');
}
