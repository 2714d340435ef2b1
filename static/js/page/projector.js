/** For the last row: everything half as large again, no sidebar, settings in one line. The choice is stored. */

import { $ } from '../shared/dom.js';
import { localStore } from '../shared/storage.js';

const KEY = 'projector';

export function show() {
  const on = localStore.get(KEY) === true;
  document.documentElement.toggleAttribute('data-projector', on);
  $('projector').setAttribute('aria-pressed', String(on));
}

/** Pressed by a pointer it keeps no focus: Enter is for the lesson. @param {MouseEvent} event */
export function press(event) {
  toggle();
  if (event.detail) $('projector').blur();
}

export function toggle() {
  localStore.set(KEY, localStore.get(KEY) !== true);
  show();
  dispatchEvent(new Event('resize'));
}
