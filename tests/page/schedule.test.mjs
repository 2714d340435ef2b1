/** The scheduler: each press is a step of an actor on the real servers; and all schedules, tried one after the other. */

import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, it } from 'node:test';
import { PHONE, lab } from './support.mjs';

const SOAK = process.env.OVERSELL_SOAK === '1';

describe('a schedule of one’s own', () => {
  const suite = lab();

  it('oversells by keyboard alone', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    await tab.press('#race-schedule');
    for (const actor of ['A', 'B', 'A', 'B']) {
      const button = `#schedule-buttons [data-key=${actor}][aria-disabled=false]`;
      await tab.waitForText(button, actor === 'B' ? /SELECT|UPDATE|收尾/ : /./);
      // By keyboard.
      await tab.evaluate((at) => document.querySelector(at).focus(), button);
      await tab.page.keyboard.press('Enter');
    }
    // The write that loses something wins, before anybody has been answered, and it is lit with its read.
    await tab.waitForText('#schedule-say', /^B 用读到的旧值.*按了 4 次，做到了。/);
    await tab.waitForCount('#schedule-lines .guilty', 2);
    await tab.screenshot('schedule-1.1-1280');
    await tab.assertAccessible();
    tab.assertNoErrors();
    await tab.page.close();
  });

  it('oversells in some schedule, and in none with the row lock', async () => {
    const tab = await suite.openTab('#/1.7.2');
    await tab.waitForLesson('1.7.2');
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.press('#schedule-all');
    await tab.waitForText('#schedule-say', /^所有 20 种顺序都试过了：12 种超卖，最少按 4 次。/);
    // All of them are a list, and the first is the shortest that loses: it plays again.
    await tab.waitForCount('#schedule-tried li', 20);
    await tab.waitForCount('#schedule-tried .red', 12);
    await tab.press('#schedule-tried button');
    await tab.waitForText('#schedule-say', /做到了/);

    await tab.click('[name=schedule-cured][value=true]');
    // Whoever comes second waits in the server, and the page says so.
    for (const actor of ['A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.waitForText('#schedule-buttons [data-key=B]', /等/);
    await tab.press('#schedule-all');
    await tab.waitForText('#schedule-say', /所有 \d+ 种顺序都试过了：没有一种超卖。/);
    tab.assertNoErrors();
  });

  // The outcome of the right schedule, and of no schedule on the cure. All schedules of all races with `OVERSELL_SOAK=1`.
  for (const { lesson, presses, says, seen } of [
    { lesson: '2.2', presses: ['A', 'death', 'B'], says: /^谁也无法继续：锁在 A 手里，没有人会还。按了 3 次，做到了。/, seen: '卡死' },
    { lesson: '2.6', presses: ['A'], says: /^谁也无法继续：锁在 A 手里.*按了 1 次，做到了。/, seen: '卡死' },
    { lesson: '3.6', presses: ['A', 'B', 'A', 'C', 'C', 'B', 'B'], says: /^进去的顺序：A C B。按了 7 次，做到了。/, seen: '插队' },
    { lesson: '2.10.2', presses: ['A', 'B', 'A', 'C', 'C', 'B', 'B'], says: /^进去的顺序：A C B。按了 7 次，做到了。/, seen: '插队' },
    { lesson: '4.3.2', presses: ['A', 'death', 'B'], says: /^谁也无法继续：锁在 A 手里.*按了 3 次，做到了。/, seen: '卡死' },
    { lesson: '003.deadlock.opposite-order', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.shared-to-exclusive', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.full-scan', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.gap', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.lock-wait', presses: ['A', 'B', 'A'], says: /^错误 1205，1 个提交。/, seen: '报错' },
  ]) {
    it(`goes wrong in ${lesson}, and in no schedule on its cure`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-schedule');
      for (const actor of presses) {
        await tab.waitForElement(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
        await tab.press(`#schedule-buttons [data-key=${actor}]`);
      }
      // The others go on to the end.
      await tab.waitFor(() => {
        /** @type {HTMLButtonElement | null} */
        const next = document.querySelector('#schedule-buttons [aria-disabled=false]');
        next?.click();
        return !next && document.getElementById('schedule-say').textContent;
      });
      await tab.waitForText('#schedule-say', says);
      await tab.screenshot(`schedule-${lesson}`);
      await tab.assertAccessible();
      tab.assertNoErrors();
      if (!SOAK && !['2.2', '003.deadlock.opposite-order'].includes(lesson)) return;
      await tab.press('#schedule-all');
      await tab.waitForText('#schedule-say', new RegExp(`^所有 \\d+ 种顺序都试过了：\\d+ 种${seen}，最少按 \\d+ 次。`));
      await tab.click('[name=schedule-cured][value=true]');
      await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
      await tab.press('#schedule-all');
      await tab.waitForText('#schedule-say', new RegExp(`所有 \\d+ 种顺序都试过了：没有一种${seen}。`));
      tab.assertNoErrors();
    });
  }

  it('says who has the lock when nobody can go on', async () => {
    const tab = await suite.openTab('#/2.6');
    await tab.waitForLesson('2.6');
    // The lock's state comes long after the news of those who want it.
    await tab.evaluate(() => {
      globalThis.EventSource = class extends EventSource {
        set onmessage(/** @type {(message: MessageEvent) => void} */ tell) {
          super.onmessage = (message) => setTimeout(tell, JSON.parse(message.data).actor === 'lock' ? 3000 : 0, message);
        }
      };
    });
    await tab.press('#race-schedule');
    await tab.press('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.waitFor(() => document.getElementById('schedule-say').textContent);
    assert.match((await tab.text('#schedule-say')) ?? '', /^谁也无法继续：锁在 A 手里/);
    tab.assertNoErrors();
  });

  it('oversells where the clock ends the lease, on a phone', async () => {
    const tab = await suite.openTab('#/003.pause', PHONE);
    await tab.waitForLesson('003.pause');
    await tab.press('#race-schedule');
    for (const actor of ['A', 'clock', 'B', 'B', 'B', 'A', 'A']) {
      await tab.waitForElement(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.press(`#schedule-buttons [data-key=${actor}]`);
    }
    await tab.waitForText('#schedule-say', /做到了/);
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.assertAccessible();
    tab.assertNoErrors();
  });
});
