/** The page of limits. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { levelsAt } from '../../static/js/limits/fill-level.js';
import { lab, until } from './support.mjs';

/** How many requests the page sends at a time. */
const SENT = 150;

describe('how full a limit is', () => {
  const through = (/** @type {number} */ at, instance = '') => ({ sent: at, at, status: 200, instance });
  const full = (kind, answers, now) => levelsAt(kind, answers, now).map((vessel) => vessel.full);

  it('is told by who was let through, and no fuller than it can be', () => {
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

  it('draws each request of a burst as it was answered, who waits in the queue, and who is inside at once', async () => {
    const tab = await suite.tab('limits.html');
    const limits = [{ limiter: 'bucket', path: '/seckill/limited?' }, { limiter: 'nodelay', path: '/nginx/leaky/nodelay?' }];
    for (const { limiter } of limits) await tab.press(`#${limiter} .send`);
    for (const { limiter, path } of limits) {
      await tab.counts(`#${limiter} .strip :is(.through, .refused)`, SENT);
      await until(() => tab.answers(path).length >= SENT, 'each has its answer');
      const answers = tab.answers(path);
      const through = await tab.count(`#${limiter} .strip .through`);
      assert.equal(through, answers.filter((status) => status === 200).length);
      assert.ok(through >= 1 && through < SENT, `${through} were let through`);
      // Beside each second stands how many: together all of them.
      const seconds = await tab.page.$$eval(`#${limiter} .strip text`, (texts) => texts.map((text) => Number(text.textContent.split('· ')[1])));
      assert.equal(seconds.reduce((a, b) => a + b), through);
      assert.equal(await tab.count(`#${limiter} .strip .waited`), 0, 'nobody waits where none may');
    }
    await tab.press('#queued .send');
    await tab.counts('#queued .place.full', 5);
    await tab.reads('#queued .rates', /等着 5/);
    await tab.screenshot('limits-queued');
    await tab.counts('#queued .strip :is(.through, .refused)', SENT);
    assert.ok((await tab.count('#queued .strip .waited')) > 0);

    await tab.press('#address .send');
    await tab.counts('#address .place.full', 20);
    await tab.reads('#address output', /放行 20，拒绝 10/);
    await tab.counts('#address .place.full', 0);
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });

  it("says of a limit that a lone instance does not have that it is nginx's", async () => {
    const tab = await suite.tab('limits.html', undefined, suite.at.instances[0].url);
    await tab.press('#queued .send');
    await tab.counts('#queued .strip .refused', SENT);
    assert.match(await tab.text('#queued output'), /nginx/);
  });
});
