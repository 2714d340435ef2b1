/** The course's own figures beside those that a lesson measures here. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lab } from './support.mjs';

describe('the course’s figures', () => {
  const suite = lab();
  /** @param {import('./support.mjs').Tab} tab @param {string} table */
  const cells = (tab, table) => tab.page.$$eval(`${table} tbody tr`, (rows) => rows.map((row) => [...row.children].slice(1).map((cell) => cell.textContent)));

  it('of 1.4 stand beside a run of the same settings', async () => {
    const tab = await suite.openTab('#/1.4?target=one&threads=100&loops=50&hold_ms=0&count=5000');
    await tab.waitForLesson('1.4');
    assert.deepEqual(await cells(tab, '#load-figures'), [['37 ms', '–'], ['36 ms', '–'], ['2,568.1/s', '–'], ['4,870', '–']]);
    await tab.screenshot('course-figures-1.4');
    // A run of these settings has them; what was run with others cannot be compared.
    const row = { average: 41.2, median: 39, throughput: 2310.46, after: 4899 };
    const here = (/** @type {object} */ other) => tab.evaluate(`import('/js/lesson/course-figures.js').then(({ loadFigures }) =>
      loadFigures('1.4', ${JSON.stringify({ row, plan: { target: 'one', threads: 100, loops: 50, hold_ms: 0, count: 5000, ...other } })}).map((figure) => figure.here))`);
    assert.deepEqual(await here({}), ['41 ms', '39 ms', '2,310.5/s', '4,899']);
    assert.deepEqual(await here({ target: 'three' }), ['–', '–', '–', '–']);
    await tab.go('1.5');
    await tab.waitFor(() => document.getElementById('load-figures').hidden);
    tab.assertNoErrors();
  });

  it('of 2.10.6 stand beside the batches that come here', async () => {
    const tab = await suite.openTab('#/2.10.6');
    await tab.waitForLesson('2.10.6');
    assert.deepEqual(await cells(tab, '#answer-figures'), [['3 / 3 / 3 / 1', '–']]);
    for (let i = 0; i < 4; i += 1) await tab.press('#try-buttons button');
    await tab.waitForText('#answer-figures td:last-child', /^3 \/ 1$/);
    await tab.go('2.10.5');
    await tab.waitForText('#answer-figures tbody td', /^约 10 s$/);
    tab.assertNoErrors();
  });

  it('batches are told apart by the pause between them', async () => {
    const tab = await suite.openTab('#/2.10.6');
    const batches = (/** @type {number[]} */ times) => tab.evaluate(`import('/js/lesson/course-figures.js').then(({ batchesOf }) => batchesOf(${JSON.stringify(times)}))`);
    assert.deepEqual(await batches([0, 100, 99, 5000, 5100, 4990, 10_000]), [3, 3, 1]);
    assert.deepEqual(await batches([]), []);
  });
});
