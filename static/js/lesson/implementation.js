/** How a lesson does it: its steps, what they survive and what breaks them, the lines of code that matter, and the whole file on demand. */

import * as api from '../shared/api.js';
import { colour } from './code-colours.js';
import { $, el, quoting } from '../shared/dom.js';
import { current, reason, t } from '../shared/language.js';
import { polledEvery, statements } from './sql-statements.js';
import { excerpt } from './rust-functions.js';

/** What was asked for, by its name. @type {Map<string, Promise<any>>} */
const asked = new Map();
let shown = '';
/** The one of the seckill that was chosen. */
let stage = '';

const FOLDERS = { stock: 'src/stock/strategies', seckill: 'src/seckill/steps' };

/** The name of its Rust file. @param {string} slug @param {'stock' | 'seckill'} of */
const fileOf = (slug, of) => `${FOLDERS[of]}/${slug.replaceAll('-', '_')}.rs`;

/** @template T @param {string} name @param {() => Promise<T>} ask @returns {Promise<T>} */
function once(name, ask) {
  const known = asked.get(name) ?? ask();
  asked.set(name, known);
  // What failed is asked for again the next time.
  known.catch(() => asked.delete(name));
  return known;
}

/** A strategy's file. @param {string} slug @param {'stock' | 'seckill'} [of] @returns {Promise<string>} */
export const source = (slug, of = 'stock') => once(fileOf(slug, of), () => api.source(slug, of));

/** How a strategy does it. @param {string} slug @param {'stock' | 'seckill'} [of] */
const text = (slug, of = 'stock') => once(`${of} ${slug}`, () => api.text(slug, of));

/** How often a strategy's waiters look again, in ms; null where they are told, or it is not known. @param {string} slug @returns {Promise<number | null>} */
export const polled = (slug) => Promise.all([text(slug), source(slug)]).then(([{ en }, file]) => polledEvery(en.steps, file), () => null);

/** @param {string | null} strategy @param {string[]} stages of the seckill, where there is no strategy; without any there is no code to show */
export async function draw(strategy, stages) {
  const slug = strategy ?? (stages.includes(stage) ? stage : stages[0]);
  $('how').hidden = !slug;
  if (!slug) return;
  const of = strategy ? 'stock' : 'seckill';
  const now = JSON.stringify([of, slug, stages, current()]);
  if (shown === now) return;
  shown = now;
  $('stages').hidden = strategy != null || stages.length < 2;
  $('stages').replaceChildren(...stages.map((name) => {
    const button = el('button', { type: 'button', 'aria-pressed': String(name === slug) }, name);
    button.addEventListener('click', () => {
      stage = name;
      draw(strategy, stages);
      $('stages').querySelector('[aria-pressed="true"]').focus();
    });
    return button;
  }));
  $('code-name').textContent = fileOf(slug, of);
  try {
    const [said, file] = await Promise.all([text(slug, of), source(slug, of)]);
    if (shown !== now) return;
    const { steps, survives, breaks } = said[current()];
    $('steps').replaceChildren(...steps.map((step) => el('li', {}, ...spoken(step))));
    $('survives').replaceChildren(...headed('survives', survives));
    // Of what nothing breaks, the sentence says so itself.
    $('breaks-how').replaceChildren(...headed(breaks.startsWith('不会') ? '' : 'breaksIt', breaks));
    const sql = statements(file);
    const lines = sql.length ? [...sql, '', ...excerpt(file)] : excerpt(file);
    $('lines').replaceChildren(...lines.map((line) => el('span', {}, ...calls(line), '\n')));
    $('source').replaceChildren(...colour(file));
  } catch (error) {
    shown = '';
    $('lines').textContent = t('failed', reason(/** @type {any} */ (error)));
  }
}

/** A line that is too long is broken before a call; a comment stands back. @param {string} line */
function calls(line) {
  const at = /(^|\s)\/\//.exec(line)?.index ?? line.length;
  const code = line.slice(0, at).split(/(?=\.\w+\()/).flatMap((part) => [el('wbr'), part]).slice(1);
  return at < line.length ? [...code, el('em', {}, line.slice(at))] : code;
}

/** @param {string} head @param {string} text */
const headed = (head, text) => (text ? [...(head ? [el('b', {}, t(head)), ' '] : []), ...spoken(text)] : []);

/** A sentence of the file, with what stands in `…` as code; without rustdoc's marks. @param {string} text @returns {(string | Element)[]} */
const spoken = (text) => text.replaceAll(/\[(`[^`]+`)\]|\*(\w+)\*/g, '$1$2').split('`')
  .flatMap((part, i) => (i % 2 ? [el('code', {}, part)] : current() === 'zh' ? [part] : quoting(part)));
