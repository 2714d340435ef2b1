/** How a lesson does it: its steps, the lines of code that matter, and the whole file on demand. */

import * as api from './api.js';
import { colour } from './code.js';
import { $, el } from './dom.js';
import { reason, t } from './lang.js';
import { opening } from './source-file.js';
import { excerpt } from './timeline/source.js';

/** Files that were asked for. @type {Map<string, Promise<string>>} */
const files = new Map();
let shown = '';

/** A strategy's file. @param {string} slug @returns {Promise<string>} */
export function source(slug) {
  const known = files.get(slug) ?? api.source(slug);
  files.set(slug, known);
  // What failed is asked for again the next time.
  known.catch(() => files.delete(slug));
  return known;
}

/** @param {string | null} slug null: there is no code to show */
export async function draw(slug) {
  $('how').hidden = !slug;
  if (!slug) return;
  const now = `${slug} ${t('language')}`;
  if (shown === now) return;
  shown = now;
  const file = `src/stock/${slug.replaceAll('-', '_')}.rs`;
  $('code-name').textContent = file;
  try {
    const text = await source(slug);
    if (shown !== now) return;
    const { steps, survives } = opening(text);
    $('steps').replaceChildren(...steps.map((step) => el('li', {}, ...spoken(step))));
    $('survives').replaceChildren(...(survives ? [el('b', {}, t('survives')), ' ', ...spoken(survives)] : []));
    $('lines').textContent = excerpt(text).join('\n');
    $('source').replaceChildren(...colour(text));
  } catch (error) {
    shown = '';
    $('lines').textContent = t('failed', reason(/** @type {any} */ (error)));
  }
}

/** A sentence of the file, with what stands in `…` as code. @param {string} text @returns {(string | Element)[]} */
const spoken = (text) => text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));
