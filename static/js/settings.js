/** The form: how the next run is to be. What it says goes into the address, and comes from there. */

import { $, put } from './dom.js';
import { number, t } from './lang.js';
import { DEFAULTS, NUMBERS } from './state.js';

const form = $('settings');

/** What the form says; null while a field is empty or out of its range. @returns {typeof DEFAULTS | null} */
export function read() {
  if (!form.checkValidity()) return null;
  const settings = { ...DEFAULTS, target: form.elements.target.value };
  for (const name of NUMBERS) settings[name] = form.elements[name].valueAsNumber;
  return settings;
}

/** @param {typeof DEFAULTS} settings @param {boolean} alone one instance only: three cannot be had */
export function draw(settings, alone) {
  form.elements.target.value = settings.target;
  form.elements.target[1].disabled = alone;
  for (const name of NUMBERS) {
    const field = form.elements[name];
    // Not under the fingers of somebody who types.
    if (field !== document.activeElement) field.value = settings[name];
  }
  put($('planned'), t('planned', number(settings.threads * settings.loops)));
  $('alone').hidden = !alone;
}

/** @param {'run' | 'cancel'} what @param {boolean} able */
export function button(what, able) {
  put($('run'), t(what));
  $('run').classList.toggle('cancel', what === 'cancel');
  $('run').setAttribute('aria-disabled', !able);
}

/** @param {(settings: typeof DEFAULTS, field: string) => void} changed @param {() => void} left a field was left */
export function listen(changed, left) {
  form.addEventListener('input', (/** @type {any} */ event) => {
    const settings = read();
    if (settings) changed(settings, event.target.name);
  });
  form.addEventListener('focusout', left);
}
