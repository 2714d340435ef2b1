/**
 * A race at times of one's own: where and for how long A pauses, how long the leases are, when B comes.
 *
 * Each handle lies on the time axis of the pictures below; released, it plays the race so on the servers.
 */

import { $, setText } from '../shared/dom.js';
import { t } from '../shared/language.js';

/** The parameters of the request. @typedef {{at: string, pause_ms: number, lease_ms: number, after_ms: number}} Timing */

/** The time axis, in microseconds: as long as the longest handle. */
export const SPAN_US = 6e6;
/** @type {readonly ('pause' | 'lease' | 'after')[]} */
const HANDLES = ['pause', 'lease', 'after'];

let open = false;
/** A handle has moved and the race is not played yet. */
let isChanged = false;
/** @type {(timing: Timing) => void} */
let playRace = () => {};

export const isOpen = () => open;

export function closePanel() {
  open = false;
  isChanged = false;
}

/** The shortest lease. */
const LEAST_LEASE_MS = 100;

/** @param {'pause' | 'lease' | 'after'} name */
const handleMs = (name) => Math.max(name === 'lease' ? LEAST_LEASE_MS : 0, Number($(`timing-${name}`).value));

/** @returns {Timing} */
const timingOfHandles = () => ({
  at: /** @type {HTMLInputElement} */ (document.querySelector('[name="timing-at"]:checked')).value,
  pause_ms: handleMs('pause'), lease_ms: handleMs('lease'), after_ms: handleMs('after'),
});

/** Draws the button and the handles. @param {import('./race.js').Race} race @param {boolean} isBusy a race is being played @param {boolean} isDisabled */
export function frame(race, isBusy, isDisabled) {
  $('race-timing').hidden = !race.timed;
  $('race-timing').setAttribute('aria-disabled', String(isDisabled || (isBusy && !open)));
  $('race-timing').setAttribute('aria-expanded', String(open));
  setText($('race-timing'), t(open ? 'scheduleClose' : 'timingOpen'));
  $('times').hidden = !open;
  for (const name of HANDLES) setText($(`timing-${name}-is`), t('timingIs', handleMs(name) / 1000));
  if (open && isChanged && !isBusy && !isDisabled) {
    isChanged = false;
    playRace(timingOfHandles());
  }
}

/** @param {() => void} changed @param {(timing: Timing) => void} how plays a race @param {() => void} stop cancels it */
export function listen(changed, how, stop) {
  playRace = how;
  $('race-timing').onclick = () => {
    if ($('race-timing').getAttribute('aria-disabled') === 'true') return;
    open = !open;
    isChanged = open;
    changed();
  };
  $('times').addEventListener('input', changed);
  $('times').addEventListener('change', () => {
    isChanged = true;
    stop();
    changed();
  });
}
