/**
 * The order of a race, decided by whoever watches: each press is a step of one of them, on the real servers; and all orders, tried
 * one after the other.
 */

import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, it } from 'node:test';
import { PHONE, lab } from './support.mjs';

const SOAK = process.env.OVERSELL_SOAK === '1';

describe('an order of one’s own', () => {
  const suite = lab();

  it('oversells in an order of one’s own, by the keyboard', async () => {
    const tab = await suite.tab('#/1.3');
    await tab.shows('1.3');
    await tab.press('#race-schedule');
    for (const actor of ['A', 'B', 'A', 'B', 'A', 'B']) {
      const button = `#schedule-buttons [data-key=${actor}][aria-disabled=false]`;
      await tab.reads(button, actor === 'B' ? /SELECT|UPDATE|收尾/ : /./);
      // As a keyboard does.
      await tab.evaluate((at) => document.querySelector(at).focus(), button);
      await tab.page.keyboard.press('Enter');
    }
    await tab.reads('#schedule-say', /^卖出 2，少了 1：超卖 1。按了 6 次，做到了。/);
    await tab.screenshot('schedule-1.3-1280');
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });

  it('oversells in no order under the lock of the row, and without it in some', async () => {
    const tab = await suite.tab('#/1.7.2');
    await tab.shows('1.7.2');
    await tab.press('#race-schedule');
    await tab.has('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.press('#schedule-all');
    await tab.reads('#schedule-say', /所有 20 种顺序都试过了：12 种超卖。/);

    await tab.click('[name=schedule-cured][value=true]');
    // Whoever comes second waits in the server, and says so.
    for (const actor of ['A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.reads('#schedule-buttons [data-key=B]', /等/);
    await tab.press('#schedule-all');
    await tab.reads('#schedule-say', /所有 \d+ 种顺序都试过了：没有一种超卖。/);
    tab.nothingWentWrong();
  });

  // What the right order brings about, and no order on the cure. All orders of all of them with `OVERSELL_SOAK=1`.
  for (const { lesson, presses, says, seen } of [
    { lesson: '2.2', presses: ['A', 'death', 'B'], says: /^谁也走不动了：锁在 A 手里，没有人会还。按了 3 次，做到了。/, seen: '卡死' },
    { lesson: '2.6', presses: ['A'], says: /^谁也走不动了：锁在 A 手里.*按了 1 次，做到了。/, seen: '卡死' },
    { lesson: '3.4.2', presses: ['A', 'B', 'A', 'C', 'C', 'B', 'B'], says: /^进去的顺序：A C B。按了 7 次，做到了。/, seen: '插队' },
    { lesson: '2.10.2', presses: ['A', 'B', 'A', 'C', 'C', 'B', 'B'], says: /^进去的顺序：A C B。按了 7 次，做到了。/, seen: '插队' },
    { lesson: '4.2', presses: ['A', 'death', 'B'], says: /^谁也走不动了：锁在 A 手里.*按了 3 次，做到了。/, seen: '卡死' },
    { lesson: '003.deadlock.opposite-order', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.shared-to-exclusive', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.full-scan', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.gap', presses: ['A', 'B', 'A', 'B'], says: /^错误 1213，1 个提交。/, seen: '报错' },
    { lesson: '003.deadlock.lock-wait', presses: ['A', 'B', 'A'], says: /^错误 1205，1 个提交。/, seen: '报错' },
  ]) {
    it(`comes to what ${lesson} warns of in an order of one’s own, and on its cure in none`, async () => {
      const tab = await suite.tab(`#/${lesson}`);
      await tab.shows(lesson);
      await tab.press('#race-schedule');
      for (const actor of presses) {
        await tab.has(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
        await tab.press(`#schedule-buttons [data-key=${actor}]`);
      }
      // Who is left goes to its end.
      await tab.holds(() => {
        /** @type {HTMLButtonElement | null} */
        const next = document.querySelector('#schedule-buttons [aria-disabled=false]');
        next?.click();
        return !next && document.getElementById('schedule-say').textContent;
      });
      await tab.reads('#schedule-say', says);
      await tab.screenshot(`schedule-${lesson}`);
      await tab.everybodyCanUseIt();
      tab.nothingWentWrong();
      if (!SOAK && !['2.2', '003.deadlock.opposite-order'].includes(lesson)) return;
      await tab.press('#schedule-all');
      await tab.reads('#schedule-say', new RegExp(`所有 \\d+ 种顺序都试过了：\\d+ 种${seen}。`));
      await tab.click('[name=schedule-cured][value=true]');
      await tab.has('#schedule-buttons [data-key=A][aria-disabled=false]');
      await tab.press('#schedule-all');
      await tab.reads('#schedule-say', new RegExp(`所有 \\d+ 种顺序都试过了：没有一种${seen}。`));
      tab.nothingWentWrong();
    });
  }

  it('says that nobody can go on only once it knows who has the lock', async () => {
    const tab = await suite.tab('#/2.6');
    await tab.shows('2.6');
    // What is seen of the lock comes long after what is heard of those who want it.
    await tab.evaluate(() => {
      globalThis.EventSource = class extends EventSource {
        set onmessage(/** @type {(message: MessageEvent) => void} */ tell) {
          super.onmessage = (message) => setTimeout(tell, JSON.parse(message.data).actor === 'lock' ? 3000 : 0, message);
        }
      };
    });
    await tab.press('#race-schedule');
    await tab.press('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.holds(() => document.getElementById('schedule-say').textContent);
    assert.match((await tab.text('#schedule-say')) ?? '', /^谁也走不动了：锁在 A 手里/);
    tab.nothingWentWrong();
  });

  it('oversells where the clock ends the lease, on a phone', async () => {
    const tab = await suite.tab('#/003.pause', PHONE);
    await tab.shows('003.pause');
    await tab.press('#race-schedule');
    for (const actor of ['A', 'clock', 'B', 'B', 'B', 'A', 'A']) {
      await tab.has(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.press(`#schedule-buttons [data-key=${actor}]`);
    }
    await tab.reads('#schedule-say', /^卖出 2，少了 1：超卖 1。/);
    assert.ok(!(await tab.isWide()));
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });
});
