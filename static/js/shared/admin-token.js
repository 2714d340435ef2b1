/** The admin token, asked for where it is wanted; what was refused for want of it is done again with it. */

import { setToken } from './api.js';
import { el } from './dom.js';
import { t } from './language.js';

/** The field, while it is open: there is one, wherever it was last wanted. @type {Element | null} */
let openForm = null;

/**
 * @param {any} error why something was refused @param {Element} where the field is to stand
 * @param {() => void} retry does it once more
 * @returns {boolean} was it refused for want of the token?
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
