/** The page of limits. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { levelsAt } from '../../static/js/limits/fill-level.js';
import { PHONE, lab, waitUntil } from './support.mjs';

/** The seconds that a mark covers, those that are cut off, and those that are small. @param {string} limiter */
function coveredWords(limiter) {
  const box = (/** @type {Element} */ one) => one.getBoundingClientRect();
  const marks = [...document.querySelectorAll(`#${limiter} .strip :is(.through, .refused)`)].map(box);
  const picture = box(document.querySelector(`#${limiter} .strip`));
  return [...document.querySelectorAll(`#${limiter} .strip text`)].filter((text) => {
    const { left, right, top, bottom, height } = box(text);
    return height < 12 || bottom > picture.bottom + 1 || marks.some((mark) => mark.right > left && mark.left < right && mark.bottom > top + 2 && mark.top < bottom);
  }).map((text) => text.textContent);
}

/** How many requests the page sends at a time. */
const BURST = 150;

describe('the level of a limiter', () => {
  const through = (/** @type {number} */ at, instance = '') => ({ sent: at, at, status: 200, instance });
  const full = (kind, answers, now) => levelsAt(kind, answers, now).map((vessel) => vessel.full);

  it('follows the answers and stays within its capacity', () => {
    const ten = Array.from({ length: 10 }, () => through(0, '8000'));
    for (const [kind, answers, now, is] of /** @type {const} */ ([
      ['bucket', ten, 0, [0]], ['bucket', ten, 520, [5]], ['bucket', ten, 9000, [10]], ['bucket', [...ten, through(50, '8100')], 50, [0, 9]],
      ['shared', ten, 999, [10]], ['shared', ten, 1000, [0]],
      ['nodelay', ten.slice(0, 6), 0, [5]], ['nodelay', ten.slice(0, 6), 1100, [4]], ['nodelay', ten.slice(0, 1), 0, [0]],
      ['queued', [{ sent: 0, at: Infinity, status: 0, instance: '' }], 500, [1]], ['queued', [through(0)], 500, [0]],
      ['address', [{ ...through(2500), sent: 0 }], 100, [1]], ['address', [{ ...through(2500), sent: 0 }], 2600, [0]],
    ])) assert.deepEqual(full(kind, answers, now), is, `${kind} at ${now}`);
  });
});

describe('the page of limits', () => {
  const suite = lab(['--instances=0']);

  it('draws the answers, the queue and the level of a burst', async () => {
    const tab = await suite.openTab('limits.html');
    const limits = [{ limiter: 'bucket', path: '/seckill/limited?' }, { limiter: 'nodelay', path: '/nginx/leaky/nodelay?' }];
    for (const { limiter } of limits) await tab.press(`#${limiter} .send`);
    for (const { limiter, path } of limits) {
      await tab.waitForCount(`#${limiter} .strip :is(.through, .refused)`, BURST);
      await waitUntil(() => tab.statusesOf(path).length >= BURST, 'each has its answer');
      const answers = tab.statusesOf(path);
      const through = await tab.count(`#${limiter} .strip .through`);
      assert.equal(through, answers.filter((status) => status === 200).length);
      assert.ok(through >= 1 && through < BURST, `${through} were let through`);
      // Each second has its count: together all of them.
      const seconds = await tab.page.$$eval(`#${limiter} .strip text`, (texts) => texts.map((text) => Number(text.textContent.split('· ')[1])));
      assert.equal(seconds.reduce((a, b) => a + b), through);
      assert.equal(await tab.count(`#${limiter} .strip .waited`), 0, 'nobody waits where none may');
      assert.deepEqual(await tab.evaluate(coveredWords, limiter), [], 'a mark covers no words');
    }
    await tab.press('#queued .send');
    await tab.waitForCount('#queued .place.full', 5);
    await tab.waitForText('#queued .rates', /等着 5/);
    await tab.screenshot('limits-queued');
    await tab.waitForCount('#queued .strip :is(.through, .refused)', BURST);
    assert.ok((await tab.count('#queued .strip .waited')) > 0);

    await tab.press('#address .send');
    await tab.waitForCount('#address .place.full', 20);
    await tab.waitForText('#address output', /放行 20，拒绝 10/);
    await tab.waitForCount('#address .place.full', 0);
    await tab.assertAccessible();
    tab.assertNoErrors();
  });

  it('is read on a phone', async () => {
    const tab = await suite.openTab('limits.html', PHONE);
    await tab.press('#bucket .send');
    await tab.waitForCount('#bucket .strip :is(.through, .refused)', BURST);
    assert.deepEqual(await tab.evaluate(coveredWords, 'bucket'), []);
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.assertAccessible();
  });

  it("says on a lone instance that a limiter is nginx's", async () => {
    const tab = await suite.openTab('limits.html', undefined, suite.at.instances[0].url);
    await tab.press('#queued .send');
    await tab.waitForCount('#queued .strip .refused', BURST);
    assert.match(await tab.text('#queued output'), /nginx/);
  });
});
