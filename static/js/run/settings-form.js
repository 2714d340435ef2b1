/** The form with the settings of the next run. A wrong number stays, with the rule below it, and is never run. */

import { $, setText } from '../shared/dom.js';
import { formatNumber, t } from '../shared/language.js';
import { FIELDS, checkSettings } from './setting-limits.js';

/** @typedef {import('../page/address.js').Typed} Typed */

const form = $('settings');

/** The fields' text. @returns {Typed} */
export function typedValues() {
  const all = { threads: '', loops: '', hold_ms: '', count: '' };
  for (const name of FIELDS) all[name] = form.elements[name].value;
  return all;
}

/** @returns {'one' | 'three'} */
export const selectedTarget = () => form.elements.target.value;

/** Fills the fields from the address, right or wrong. @param {Typed} all */
export function fill(all) {
  for (const name of FIELDS) if (form.elements[name].value !== all[name]) form.elements[name].value = all[name];
}

/**
 *
 * @param {'one' | 'three'} chosen @param {boolean} alone there is one instance only
 * @param {string} first the first instance
 * @param {number} times how many runs there will be
 */
export function draw(chosen, alone, first, times) {
  form.elements.target.value = chosen;
  form.elements.target[1].disabled = alone;
  setText($('one'), first ? `${t('one')} ${first}` : t('one'));
  const { numbers, wrong } = checkSettings(typedValues());
  for (const name of FIELDS) {
    const broken = wrong[name];
    setText($(`${name}-wrong`), broken ? t(...broken) : '');
    form.elements[name].setAttribute('aria-invalid', String(broken != null));
  }
  setText($('planned'), Object.keys(wrong).length ? '' : t('planned', formatNumber(numbers.threads * numbers.loops), times));
  $('alone').hidden = !alone;
}

/** Focuses the first wrong field. @returns {boolean} whether there is one */
export function focusFirstWrong() {
  const wrong = FIELDS.find((name) => checkSettings(typedValues()).wrong[name]);
  if (wrong) form.elements[wrong].focus();
  return wrong != null;
}

/** @param {string} what @param {boolean} isEnabled @param {boolean} cancels */
export function drawButton(what, isEnabled, cancels) {
  setText($('run'), t(what));
  $('run').classList.toggle('cancel', cancels);
  $('run').setAttribute('aria-disabled', String(!isEnabled));
}

/** @param {() => void} typing called while a field is edited @param {(field: string) => void} changed called when a field has changed */
export function listen(typing, changed) {
  form.addEventListener('input', (/** @type {Event} */ event) => {
    if (/** @type {HTMLInputElement} */ (event.target).type !== 'radio') typing();
  });
  form.addEventListener('change', (/** @type {Event} */ event) => changed(/** @type {HTMLInputElement} */ (event.target).name));
  form.addEventListener('submit', (/** @type {Event} */ event) => event.preventDefault());
}
