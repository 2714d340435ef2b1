/** Asks for the admin token where a request needs it, and then repeats the request; and says what became of a request. */

import { setToken } from './api.js';
import { el } from './dom.js';
import { errorText, t } from './language.js';

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
  const form = el('form', { class: 'admin' }, el('input', { type: 'text', autocomplete: 'username', value: 'admin', hidden: true }), token, el('span', { class: 'dim' }, t('tokenAt')));
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

/** Why it was not done; a missing token is no failure. @param {any} error the refusal @param {Element} where @param {() => void} retry @returns {string} */
export const refusalText = (error, where, retry) => (askForToken(error, where, retry) ? t('tokenWanted') : t('failed', errorText(error)));
