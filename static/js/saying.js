/** One sentence that says how things stand: before, during and after a run. */

import { figures, secondsLeft, willOversell } from './figures.js';
import { number, t } from './lang.js';
import { servers } from './lesson.js';

/** @returns {string} */
export function sentence({ lesson, settings, run, down }) {
  if (run?.state === 'starting') return t('starting');
  if (run?.state === 'running') return t(run.lost ? 'lost' : 'running', ...progress(run));
  if (down.length) return t('waitsFor', servers(down));
  if (run) return ended(run);
  const n = number(Math.min(settings.threads * settings.loops, settings.count));
  return t(willOversell(lesson.promise, settings) ? 'willOversell' : 'willBeExact', n);
}

/** @returns {string} whose run it is, and how long it still takes */
export function busy(other) {
  const who = `${other.plan.strategy} · ${t(other.plan.target)}`;
  return t('busy', who, ...progress(other), secondsLeft(other.snapshot));
}

const progress = ({ snapshot }) => [number(snapshot.samples), number(snapshot.planned)];

function ended(run) {
  if (run.state === 'failed') return t('failed', run.vanished ? t('vanished') : run.detail || t('disconnected'));
  if (run.state === 'cancelled') return t('cancelled', ...progress(run));
  const { over } = figures(run);
  if (over > 0) return t('oversold', number(over));
  if (run.row?.verdict === 'errors') return t('failing', number(run.snapshot.errors));
  return t(over < 0 ? 'apart' : 'exact');
}
