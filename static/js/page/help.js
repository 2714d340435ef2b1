
import { $, el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { promiseMark } from '../lesson/promise-mark.js';

export function open() {
  $('keys').replaceChildren(...t('keys').flatMap((/** @type {[string, string]} */ [key, does]) => [el('dt', {}, el('kbd', {}, key)), el('dd', {}, does)]));
  $('marks').replaceChildren(...['unsafe', 'one-process', 'lease', 'safe']
    .flatMap((promise) => [el('dt', {}, promiseMark(promise)), el('dd', {}, t('mark', promise))]));
  $('help').showModal();
}
