/**
 * A race at times of one's own: where A stands still and for how long, how long the leases are, and when B comes. The handle of each
 * lies on the time axis of the pictures below it; let go, and it is played so on the servers.
 */

import { $, put } from '../shared/dom.js';
import { t } from '../shared/language.js';

/** What the service takes. @typedef {{at: string, pause_ms: number, lease_ms: number, after_ms: number}} Timing */

/** The time axis, in microseconds: as long as the longest handle. */
export const SPAN_US = 6e6;
/** @type {readonly ('pause' | 'lease' | 'after')[]} */
const TIMES = ['pause', 'lease', 'after'];

let open = false;
/** Something was moved, and is not played yet. */
let moved = false;
/** @type {(timing: Timing) => void} */
let play = () => {};

export const isOpen = () => open;

/** Another race, or another way to play it. */
export function leave() {
  open = false;
  moved = false;
}

/** No lease is shorter. */
const LEAST_LEASE_MS = 100;

/** @param {'pause' | 'lease' | 'after'} name */
const ms = (name) => Math.max(name === 'lease' ? LEAST_LEASE_MS : 0, Number($(`timing-${name}`).value));

/** @returns {Timing} */
const timing = () => ({
  at: /** @type {HTMLInputElement} */ (document.querySelector('[name="timing-at"]:checked')).value,
  pause_ms: ms('pause'), lease_ms: ms('lease'), after_ms: ms('after'),
});

/** The button that opens it, and the times as they stand. @param {import('./race.js').Race} race @param {boolean} busy one is being played @param {boolean} cannot */
export function frame(race, busy, cannot) {
  $('race-timing').hidden = !race.timed;
  $('race-timing').setAttribute('aria-disabled', String(cannot || (busy && !open)));
  $('race-timing').setAttribute('aria-expanded', String(open));
  put($('race-timing'), t(open ? 'orderClose' : 'timingOpen'));
  $('times').hidden = !open;
  for (const name of TIMES) put($(`timing-${name}-is`), t('timingIs', ms(name) / 1000));
  if (open && moved && !busy && !cannot) {
    moved = false;
    play(timing());
  }
}

/** @param {() => void} changed @param {(timing: Timing) => void} how it is played @param {() => void} stop what is being played */
export function listen(changed, how, stop) {
  play = how;
  $('race-timing').onclick = () => {
    if ($('race-timing').getAttribute('aria-disabled') === 'true') return;
    open = !open;
    moved = open;
    changed();
  };
  $('times').addEventListener('input', changed);
  $('times').addEventListener('change', () => {
    moved = true;
    stop();
    changed();
  });
}
