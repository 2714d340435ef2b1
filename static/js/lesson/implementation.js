/** How a strategy works: its steps, what they survive and what breaks them, the course's Java and the statements; its Rust on demand. */

import * as api from '../shared/api.js';
import { $, el, markChinese } from '../shared/dom.js';
import { currentLanguage, errorText, t } from '../shared/language.js';
import { javaOf } from './course-java.js';
import { functionsOf, highlight, pollIntervalOf, sqlStatements } from './rust-source.js';

/** Requests that were made, by name. @type {Map<string, Promise<any>>} */
const cache = new Map();
let lastDrawn = '';
/** The step of the seckill that is selected. */
let selectedStage = '';

const FOLDERS = { stock: 'src/stock/strategies', seckill: 'src/seckill/steps' };

/** Lines of the replay and of the timeline, which decide nothing. */
const IN_PASSING = /\b(?:reach(?:_with)?|report_locked)\(/;

/** @param {string} slug @param {'stock' | 'seckill'} of */
const fileOf = (slug, of) => `${FOLDERS[of]}/${slug.replaceAll('-', '_')}.rs`;

/** @template T @param {string} name @param {() => Promise<T>} ask @returns {Promise<T>} */
function cached(name, ask) {
  const answer = cache.get(name) ?? ask();
  cache.set(name, answer);
  // A failed request is made again the next time.
  answer.catch(() => cache.delete(name));
  return answer;
}

/** A strategy's Rust file. @param {string} slug @param {'stock' | 'seckill'} [of] @returns {Promise<string>} */
export const strategySource = (slug, of = 'stock') => cached(fileOf(slug, of), () => api.strategySource(slug, of));

/** @param {string} slug @param {'stock' | 'seckill'} [of] */
const strategyText = (slug, of = 'stock') => cached(`${of} ${slug}`, () => api.strategyText(slug, of));

/** How often a strategy's waiters poll, in ms; null where they are notified, or it is unknown. @param {string} slug @returns {Promise<number | null>} */
export const pollInterval = (slug) => Promise.all([strategyText(slug), strategySource(slug)]).then(([{ en }, file]) => pollIntervalOf(en.steps, file), () => null);

/** @param {string | null} strategy @param {string[]} stages of the seckill, where there is no strategy */
export async function draw(strategy, stages) {
  const slug = strategy ?? (stages.includes(selectedStage) ? selectedStage : stages[0]);
  $('how').hidden = !slug;
  if (!slug) return;
  const of = strategy ? 'stock' : 'seckill';
  const now = JSON.stringify([of, slug, stages, currentLanguage()]);
  if (lastDrawn === now) return;
  lastDrawn = now;
  $('stages').hidden = strategy != null || stages.length < 2;
  $('stages').replaceChildren(...stages.map((name) => {
    const button = el('button', { type: 'button', 'aria-pressed': String(name === slug) }, name);
    button.addEventListener('click', () => {
      selectedStage = name;
      draw(strategy, stages);
      $('stages').querySelector('[aria-pressed="true"]').focus();
    });
    return button;
  }));
  $('code-name').textContent = fileOf(slug, of);
  const java = strategy && javaOf(strategy);
  $('java-part').hidden = !java;
  $('java').textContent = java ? java[currentLanguage()] : '';
  try {
    const [texts, file] = await Promise.all([strategyText(slug, of), strategySource(slug, of)]);
    if (lastDrawn !== now) return;
    const { steps, survives, breaks } = texts[currentLanguage()];
    $('steps').replaceChildren(...steps.map((step) => el('li', {}, ...withCode(step))));
    $('survives').replaceChildren(...withHeading('survives', survives));
    // Where nothing breaks it, the sentence says so itself.
    $('breaks-how').replaceChildren(...withHeading(breaks.startsWith('不会') ? '' : 'breaksIt', breaks));
    const sql = sqlStatements(file);
    for (const [id, lines] of /** @type {[string, string[]][]} */ ([['statements', sql], ['lines', functionsOf(file)]])) $(id).replaceChildren(...lines.map((line) => el('span', { class: IN_PASSING.test(line) && 'noise' }, ...breakableLine(line), '\n')));
    $('statements').hidden = !sql.length;
    $('source').replaceChildren(...highlight(file));
  } catch (error) {
    lastDrawn = '';
    $('statements').hidden = false;
    $('statements').textContent = t('failed', errorText(/** @type {any} */ (error)));
  }
}

/** Allows a line break before each call; comments are dimmed. @param {string} line */
function breakableLine(line) {
  const at = /(^|\s)\/\//.exec(line)?.index ?? line.length;
  const code = line.slice(0, at).split(/(?=\.\w+\()/).flatMap((part) => [el('wbr'), part]).slice(1);
  return at < line.length ? [...code, el('em', {}, line.slice(at))] : code;
}

/** @param {string} head @param {string} text */
const withHeading = (head, text) => (text ? [...(head ? [el('b', {}, t(head)), ' '] : []), ...withCode(text)] : []);

/** A sentence with `…` as code, without rustdoc's links and emphasis. @param {string} text @returns {(string | Element)[]} */
const withCode = (text) => text.replaceAll(/\[(`[^`]+`)\]|\*(\w+)\*/g, '$1$2').split('`')
  .flatMap((part, i) => (i % 2 ? [el('code', {}, part)] : currentLanguage() === 'zh' ? [part] : markChinese(part)));
