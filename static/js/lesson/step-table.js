/** The typed lines of a lesson as a table: who asks which server for what, what came back, and what that means. */

import { $, el } from '../shared/dom.js';
import { t } from '../shared/language.js';
import { answerOf, meaningOf, rowOf } from './line-meaning.js';

/** @typedef {import('./course.js').Line} Line */

/** @param {Line[]} lines @param {(number: number) => {printed: string, busy: boolean} | undefined} resultOf */
export function draw(lines, resultOf) {
  $('step-rows').replaceChildren(...lines.map((line, i) => {
    const { terminal, who, where, does } = rowOf(line);
    return el('tr', { 'data-step': String(i + 1) }, el('td', { class: 'n' }, String(i + 1)),
      el('td', {}, who || (where ? t('terminal', terminal) : '')), el('td', {}, where),
      el('td', {}, ...(does.length ? does : [{ text: line.run, typed: true }]).flatMap(({ text, typed }, n) => [n ? el('br') : '', typed ? el('code', {}, text) : text])),
      el('td', {}, el('code', { class: 'answer' })), el('td', { class: 'means' }));
  }));
  lines.forEach((line, i) => drawAnswer(line, i + 1, resultOf(i + 1)));
}

/** Until a line was run it has the answer that it will have. @param {Line} line @param {number} number @param {{printed: string, busy: boolean} | undefined} result */
export function drawAnswer(line, number, result) {
  const row = $('step-rows').querySelector(`[data-step="${number}"]`);
  if (!row) return;
  const isRun = result != null && !result.busy;
  const text = isRun ? result.printed : line.expect;
  const { text: means, wrong } = meaningOf(line, text);
  const [answer, meaning] = [row.querySelector('.answer'), row.querySelector('.means')];
  row.classList.toggle('ran', isRun);
  row.classList.toggle('busy', result?.busy ?? false);
  row.classList.toggle('red', wrong);
  if (answer) answer.textContent = result?.busy ? '…' : answerOf(text);
  if (meaning) meaning.textContent = means;
}
