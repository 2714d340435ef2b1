/** The way for phones: a QR code of this page's address. A loopback address leads a phone to itself: the lab knows another one, or it is asked for. */

import * as api from '../shared/api.js';
import { $, put } from '../shared/dom.js';
import { always } from '../shared/storage.js';

const KEY = 'address';
const LOOPBACK = /^(localhost|127\.|\[?::1)/;
/** Another way to write the same: the scheme may be left out. @param {string} typed */
const whole = (typed) => (typed === '' || /^https?:\/\//.test(typed) ? typed : `http://${typed}`).replace(/\/+$/, '');

let id = '';

/** @param {string} lesson */
export function open(lesson) {
  id = lesson;
  $('scan-ask').hidden = !LOOPBACK.test(location.hostname);
  $('address').value = always.get(KEY) ?? '';
  draw();
  api.lab('').then(({ phones }) => {
    if (!phones || $('address').value) return;
    $('address').value = phones;
    draw();
  }, () => {});
  $('scan').showModal();
}

function draw() {
  const base = $('scan-ask').hidden ? location.origin : whole($('address').value.trim());
  const url = base ? `${base}${location.pathname}#/${id}?me` : '';
  $('code').hidden = url === '';
  if (url) $('code').src = `classroom/qr.svg?${new URLSearchParams({ url })}`;
  $('code').alt = url;
  put($('link'), url);
}

export function listen() {
  $('address').oninput = () => {
    always.set(KEY, $('address').value.trim());
    draw();
  };
}
