/** Asks for the admin token where a request needs it, and then repeats the request. */

import { setToken } from './api.js';
import { el } from './dom.js';
import { t } from './language.js';

/** The open form; there is at most one. @type {Element | null} */
let openForm = null;

/**
 *
 * @param {any} error the refusal @param {Element} where the form's place
 * @param {() => void} retry repeats the request
 * @returns {boolean} whether the token was missing
 */
export function askForToken(error, where, retry) {
  if (error.status !== 401) return false;
  const token = el('input', { id: 'token', type: 'password', 'aria-label': t('token'), placeholder: t('token'), autocomplete: 'current-password' });
  const form = el('form', { class: 'admin' }, el('input', { type: 'text', autocomplete: 'username', value: 'admin', hidden: true }), token);
  form.addEventListener('submit', (event) => event.preventDefault());
  token.addEventListener('change', () => {
    setToken(/** @type {HTMLInputElement} */ (token).value);
    form.remove();
    retry();
  });
  openForm?.remove();
  where.append(form);
  openForm = form;
  token.focus();
  return true;
}
