/** The page of limits. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lab, until } from './support.mjs';

/** How many requests the page sends at a time. */
const SENT = 150;

describe('the page of limits', () => {
  const suite = lab(['--instances=0']);

  for (const { limiter, path } of [{ limiter: 'bucket', path: '/seckill/limited?' }, { limiter: 'nodelay', path: '/nginx/leaky/nodelay?' }]) {
    it(`draws each request of a burst at the ${limiter} as it was answered`, async () => {
      const tab = await suite.tab('limits.html');
      await tab.press(`#${limiter} .send`);
      await tab.counts(`#${limiter} svg :is(.through, .refused)`, SENT);
      await until(() => tab.answers(path).length >= SENT, 'each has its answer');
      const answers = tab.answers(path);
      const through = await tab.count(`#${limiter} svg .through`);
      assert.equal(through, answers.filter((status) => status === 200).length);
      assert.ok(through >= 1 && through < SENT, `${through} were let through`);
      // Beside each second stands how many: together all of them.
      const seconds = await tab.page.$$eval(`#${limiter} svg text`, (texts) => texts.map((text) => Number(text.textContent.split('· ')[1])));
      assert.equal(seconds.reduce((a, b) => a + b), through);
    });
  }

  it('draws how long those have waited who stood in the queue, and nobody waits where none may', async () => {
    const tab = await suite.tab('limits.html');
    for (const [limiter, waits] of /** @type {const} */ ([['queued', true], ['nodelay', false]])) {
      await tab.press(`#${limiter} .send`);
      await tab.counts(`#${limiter} svg :is(.through, .refused)`, SENT);
      assert.equal((await tab.count(`#${limiter} svg .waited`)) > 0, waits, limiter);
    }
  });

  it("says of a limit that a lone instance does not have that it is nginx's", async () => {
    const tab = await suite.tab('limits.html', undefined, suite.at.instances[0].url);
    await tab.press('#queued .send');
    await tab.counts('#queued svg .refused', SENT);
    assert.match(await tab.text('#queued output'), /nginx/);
  });
});
