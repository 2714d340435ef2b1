/** A QR code of this page's address, for phones. A loopback address does not work on a phone: the lab proposes another, or it is typed. */

import * as api from '../shared/api.js';
import { $, setText } from '../shared/dom.js';
import { localStore } from '../shared/storage.js';

const KEY = 'address';
const LOOPBACK = /^(localhost|127\.|\[?::1)/;
/** Adds the scheme where it is left out. @param {string} typed */
const withScheme = (typed) => (typed === '' || /^https?:\/\//.test(typed) ? typed : `http://${typed}`).replace(/\/+$/, '');

let lessonId = '';

/** @param {string} lesson */
export function open(lesson) {
  lessonId = lesson;
  const isLoopback = LOOPBACK.test(location.hostname);
  [$('scan-ask').hidden, $('loopback').hidden] = [!isLoopback, !isLoopback];
  $('address').value = localStore.get(KEY) ?? '';
  draw();
  api.labState('').then(({ phones }) => {
    $('loopback').hidden ||= phones != null;
    if (!phones || $('address').value) return;
    $('address').value = phones;
    draw();
  }, () => {});
  $('scan').showModal();
}

function draw() {
  const base = $('scan-ask').hidden ? location.origin : withScheme($('address').value.trim());
  const url = base ? `${base}${location.pathname}#/${lessonId}?me` : '';
  $('code').hidden = url === '';
  if (url) $('code').src = `classroom/qr.svg?${new URLSearchParams({ url })}`;
  $('code').alt = url;
  setText($('link'), url);
}

export function listen() {
  $('address').oninput = () => {
    localStore.set(KEY, $('address').value.trim());
    draw();
  };
}
