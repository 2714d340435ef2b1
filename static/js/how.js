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

/** A strategy's file. @param {string} slug @param {'stock' | 'seckill'} [of] @returns {Promise<string>} */
export function source(slug, of = 'stock') {
  const file = `src/${of}/${slug.replaceAll('-', '_')}.rs`;
  const known = files.get(file) ?? api.source(slug, of);
  files.set(file, known);
  // What failed is asked for again the next time.
  known.catch(() => files.delete(file));
  return known;
}

/** @param {string | null} strategy @param {string | null} step of the seckill, where there is no strategy; null: there is no code to show */
export async function draw(strategy, step) {
  const slug = strategy ?? step;
  $('how').hidden = !slug;
  if (!slug) return;
  const of = strategy ? 'stock' : 'seckill';
  const now = `${of} ${slug} ${t('language')}`;
  if (shown === now) return;
  shown = now;
  $('code-name').textContent = `src/${of}/${slug.replaceAll('-', '_')}.rs`;
  try {
    const text = await source(slug, of);
    if (shown !== now) return;
    const { steps, survives } = opening(text);
    $('steps').replaceChildren(...steps.map((step) => el('li', {}, ...spoken(step))));
    $('survives').replaceChildren(...(survives ? [el('b', {}, t('survives')), ' ', ...spoken(survives)] : []));
    $('lines').replaceChildren(...excerpt(text).map((line) => el('span', {}, `${line}\n`)));
    $('source').replaceChildren(...colour(text));
  } catch (error) {
    shown = '';
    $('lines').textContent = t('failed', reason(/** @type {any} */ (error)));
  }
}

/** A sentence of the file, with what stands in `…` as code. @param {string} text @returns {(string | Element)[]} */
const spoken = (text) => text.split('`').map((part, i) => (i % 2 ? el('code', {}, part) : part));
