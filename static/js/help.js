/** The help: keys and marks. */

import { $, el } from './dom.js';
import { t } from './lang.js';
import { mark } from './marks.js';

export function open() {
  $('keys').replaceChildren(...t('keys').flatMap((/** @type {[string, string]} */ [key, does]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, does)]));
  $('marks').replaceChildren(...['unsafe', 'one-process', 'lease', 'safe']
    .flatMap((promise) => [el('dt', {}, mark(promise)), el('dd', {}, t('mark', promise))]));
  $('help').showModal();
}
