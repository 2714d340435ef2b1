/** The scheduler: each press is a step of an actor on the real servers; and all schedules, tried one after the other. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { fewestPresses } from '../../static/js/race/fewest-presses.js';
import { modelOf } from '../../static/js/timeline/model.js';
import { addEvent, emptyRecording } from '../../static/js/timeline/player.js';
import { unlikeLegend } from './race-events.mjs';
import { PHONE, PROJECTOR, SOAK, getJson, itInSoak, lab } from './support.mjs';

/** The lessons whose cure loses in some schedule, and why it does. @type {Record<string, string>} */
const LOSING_CURES = {
  '2.3': '它只在删锁以前看', '001.expire': '它只在删锁以前看', '2.3.gap': '它只保证不删', '2.5': '它只保证不删', '002.lock.lua': '它只保证不删', '001.renewal': '它只保证不给别人的锁续期',
};

describe('a schedule of one’s own', () => {
  const suite = lab();

  it('knows the fewest presses of every game', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const games = replays.filter(({ scheduled }) => scheduled);
    assert.ok(games.length > 30);
    assert.deepEqual(games.filter((race) => !fewestPresses(race)).map(({ lesson, runs }) => `${lesson} ${runs}`), []);
  });

  // Each was wrong before: no statement on the buttons of a race in which nobody sells, and the lock after what it protects.
  it('draws the lock where its holder gets it, and says what is sent', async () => {
    const tab = await suite.openTab('#/2.2');
    await tab.waitForLesson('2.2');
    await tab.press('#race-schedule');
    await tab.waitForText('#schedule-presses', /^按了 0 次，最少 3 次$/);
    await tab.waitForText('#schedule-buttons [data-key=A] code', /^SETNX lock:redis-setnx 111; GET stock$/);
    await tab.press('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.waitForElement('#schedule-buttons [data-key=B][aria-disabled=false]');
    await tab.waitForElement('#schedule-lanes .wedge');
    const { lock, inside, read } = await tab.evaluate(() => ({
      lock: Number(document.querySelector('#schedule-lanes .wedge').getAttribute('points').split(',')[0]),
      inside: Number(document.querySelector('#schedule-lanes [data-kind=inside]').getAttribute('x')),
      read: Number(document.querySelector('#schedule-lanes circle[data-event=read]').getAttribute('cx')),
    }));
    assert.ok(lock < inside + 1 && lock < read, JSON.stringify({ lock, inside, read }));
    // Who waits for whom is drawn, and a wait for who is dead is red.
    assert.equal(await tab.count('#schedule-waits [data-wait]'), 0);
    await tab.press('#schedule-buttons [data-key=B][aria-disabled=false]');
    await tab.waitForElement('#schedule-waits [data-wait="B A"]:not(.red)');
    await tab.press('#schedule-buttons [data-key=death][aria-disabled=false]');
    await tab.waitForElement('#schedule-waits [data-wait="B A"].red');
    await tab.waitForText('#schedule-say', /按了 3 次，做到了，不能更少。$/);
    await tab.waitForCount('#schedule-lines .guilty', 2);
    assert.deepEqual(await tab.evaluate(unlikeLegend, '#schedule-lanes', '#schedule-legend'), []);
    assert.ok((await tab.count('#schedule-legend li')) > 3);
    tab.assertNoErrors();
  });

  for (const lesson of ['2.6', '002.reentrant']) {
    it(`the first button of ${lesson} names its statements`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-schedule');
      await tab.waitForText('#schedule-buttons [data-key=A][aria-disabled=false]', /来买：抢锁SET lock:.*; SET lock:/);
      await tab.click('[name=schedule-cured][value=true]');
      await tab.waitForText('#schedule-buttons [data-key=A][aria-disabled=false] code', /^EVALSHA/);
      tab.assertNoErrors();
    });
  }

  it('plays two transactions with a word on each button', async () => {
    const tab = await suite.openTab('#/003.deadlock.opposite-order');
    await tab.waitForLesson('003.deadlock.opposite-order');
    await tab.press('#race-schedule');
    for (const actor of ['A', 'B']) await tab.waitForText(`#schedule-buttons [data-key=${actor}]`, /开启事务，发出UPDATE/);
    for (const actor of ['A', 'B', 'A']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.waitForElement('#schedule-waits [data-wait="A B"]:not(.red)');
    await tab.press('#schedule-buttons [data-key=B][aria-disabled=false]');
    // The error wins, although A could still commit; the circle that it was is red.
    await tab.waitForText('#schedule-say', /^MySQL 让 [AB] 出错：1213。按了 4 次，做到了，不能更少。$/);
    await tab.waitForCount('#schedule-waits .wait.red', 2);
    const labels = await tab.page.$$eval('#schedule-lanes text.label', (all) => all.map((one) => one.textContent));
    assert.ok(labels.includes('UPDATE id = 10') && !labels.some((text) => text.includes('goods')), labels.join());
    tab.assertNoErrors();
  });

  it('is a path of levels, and what was won is kept', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    await tab.press('#race-schedule');
    await tab.waitForText('#schedule-levels li:last-child', /^过了 0 \/ 1\d 关$/);
    const ids = await tab.page.$$eval('#schedule-levels a', (all) => all.map((a) => a.getAttribute('href').slice(2)));
    assert.deepEqual([ids[0], ids.at(-1)], ['1.1', '003.pause']);
    // A press more than needed is a win with an empty star; again, without it, the star is full.
    for (const { presses, won, star } of [{ presses: ['A', 'A', 'A', 'B'], won: '', star: '' }, { presses: ['A', 'B', 'A', 'B'], won: 'best', star: '★' }]) {
      await tab.press('#schedule-again');
      for (const actor of presses) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.waitForText('#schedule-buttons [data-key=B]', /./);
      if (won) await tab.waitForElement(`#schedule-levels li:first-child[data-won=${won}]`);
      assert.equal((await tab.text('#schedule-levels li:first-child a')).includes('★'), star === '★');
    }
    await tab.waitForText('#schedule-levels li:last-child', /^过了 1 \//);
    await tab.assertAccessible();
    await tab.screenshot('schedule-levels');
    // The next level opens as a game, and after a reload what was won is there.
    await tab.press('#schedule-next a');
    await tab.waitForLesson('1.6');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.page.reload();
    await tab.waitForLesson('1.6');
    await tab.waitForElement('#schedule[hidden]');
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-levels li:first-child[data-won=best]');
    tab.assertNoErrors();
  });

  for (const lesson of Object.keys(LOSING_CURES)) {
    (lesson === '2.3' ? it : itInSoak)(`says why the cure of ${lesson} still loses, with its pair`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-schedule');
      await tab.press('[name=schedule-cured][value=true]');
      for (const actor of ['A', 'clock', 'B', 'A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.waitForText('#schedule-say', new RegExp(`^B 用读到的旧值盖掉了别人的写：超卖。按了 5 次，做到了。为什么修正后也会：${LOSING_CURES[lesson]}`));
      await tab.waitForCount('#schedule-lines .guilty', 2);
      tab.assertNoErrors();
    });
  }

  for (const isProjected of [false, true]) {
    (isProjected ? it : itInSoak)(`shows game and reason on one screen, projected: ${isProjected}`, async () => {
      const tab = await suite.openTab('#/2.3', PROJECTOR);
      await tab.waitForLesson('2.3');
      if (isProjected) await tab.click('#projector');
      await tab.press('#race-schedule');
      await tab.press('[name=schedule-cured][value=true]');
      for (const actor of ['A', 'clock', 'B', 'A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.waitForText('#schedule-say', /为什么修正后也会：/);
      // From the buttons to the picture's end.
      const high = await tab.evaluate(() => document.getElementById('schedule-lanes').getBoundingClientRect().bottom - document.getElementById('schedule').getBoundingClientRect().top);
      const top = await tab.evaluate(() => document.getElementById('schedule').getBoundingClientRect().top + scrollY);
      assert.ok(top + high <= PROJECTOR[1], `${top} and ${high} of ${PROJECTOR[1]} px`);
      await tab.screenshot(`schedule-2.3-cure-${isProjected}`);
      tab.assertNoErrors();
    });
  }

  it('has the place of the opening, and fits on a phone in English', async () => {
    const tab = await suite.openTab('#/1.1', [390, 844]);
    await tab.waitForLesson('1.1');
    await tab.click('#en');
    await tab.waitForElement('#opening:not([hidden])');
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    const levels = await tab.evaluate(() => document.getElementById('schedule-levels').getBoundingClientRect().top);
    assert.ok(levels >= 0, `the game is in sight from its top: ${levels}`);
    const buttons = await tab.page.$$eval('#schedule-again, #schedule-all', (all) => all.map((one) => one.getBoundingClientRect().top));
    assert.equal(buttons[0], buttons[1], 'its buttons stand in one row');
    for (const actor of ['A', 'B', 'A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.waitForText('#schedule-next', /^Next level/);
    const { now, bars } = await tab.evaluate(() => ({
      now: Math.max(...[...document.querySelectorAll('#schedule-lanes .now')].map((one) => one.getBoundingClientRect().right)),
      bars: document.querySelector('#schedule-lanes .ground').getBoundingClientRect().right,
    }));
    assert.ok(now <= bars, `what an actor does stands beside its bar: ${now} of ${bars}`);
    assert.ok(!(await tab.isWiderThanWindow()));
    assert.ok(!(await tab.evaluate(() => document.getElementById('opening').checkVisibility())));
    const bottom = await tab.evaluate(() => document.getElementById('schedule-lanes').getBoundingClientRect().bottom + scrollY);
    assert.ok(bottom <= 844, `game and picture are on one screen: ${bottom}`);
    const commands = await tab.page.$$eval('#schedule-lines code', (all) => all.map((one) => one.getBoundingClientRect().width));
    assert.ok(commands.length && Math.min(...commands) > 180, `an answer leaves its command room: ${commands}`);
    await tab.screenshot('schedule-1.1-phone');
    tab.assertNoErrors();
  });

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
    await tab.waitForText('#schedule-say', /^B 用读到的旧值.*按了 4 次，做到了，不能更少。/);
    await tab.waitForCount('#schedule-lines .guilty', 2);
    await tab.screenshot('schedule-1.1-1280');
    await tab.assertAccessible();
    tab.assertNoErrors();
    await tab.page.close();
  });

  itInSoak('oversells in some schedule, and in none with the row lock', async () => {
    const tab = await suite.openTab('#/1.7.2');
    await tab.waitForLesson('1.7.2');
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    assert.match(await tab.tryAllSchedules(), /^所有 20 种顺序都试过了：12 种超卖，最少按 4 次。/);
    // All of them are a list, and the first is the shortest that loses: it plays again.
    await tab.waitForCount('#schedule-tried li', 20);
    await tab.waitForCount('#schedule-tried .red', 12);
    await tab.press('#schedule-tried button');
    await tab.waitForText('#schedule-say', /做到了/);
    assert.equal(await tab.count('#schedule-levels [aria-current]:has([aria-hidden])'), 0, 'what the page has played again is no win');

    await tab.click('[name=schedule-cured][value=true]');
    // Whoever comes second waits in the server, and the page says so.
    for (const actor of ['A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.waitForText('#schedule-buttons [data-key=B]', /等/);
    assert.match(await tab.tryAllSchedules(), /所有 \d+ 种顺序都试过了：没有一种超卖。/);
    tab.assertNoErrors();
  });

  // No fewer can: it takes two reads and two writes, each a press, and where a lock keeps the second one out, the end of its lease.
  for (const [lesson, presses] of Object.entries({
    '1.6': ['A', 'B', 'A', 'B'], '3.4.1.printed': ['A', 'B', 'A', 'B'], ...Object.fromEntries(['2.3', '2.3.gap', '2.7', '003.pause', '001.renewal'].map((id) => [id, ['A', 'clock', 'B', 'A', 'B']])),
  })) {
    (['1.6', '2.7'].includes(lesson) ? it : itInSoak)(`wins ${lesson} in the fewest presses`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-schedule');
      for (const actor of presses) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
      await tab.waitForText('#schedule-say', new RegExp(`^B 用读到的旧值盖掉了别人的写：超卖。按了 ${presses.length} 次，做到了，不能更少。$`));
      await tab.waitForCount('#schedule-lines .guilty', 2);
      tab.assertNoErrors();
      // That of 001.renewal was not over after ten minutes.
      if (!SOAK || lesson === '001.renewal') return;
      await tab.tryAllSchedules();
      assert.equal(await fewestFound(tab), presses.length, 'the search finds the fewest presses of the list');
      tab.assertNoErrors();
    });
  }

  // The outcome of the right schedule, and of no schedule on the cure. All schedules of all races with `OVERSELL_SOAK=1`.
  for (const { lesson, presses, says, seen } of [
    { lesson: '2.2', presses: ['A', 'death', 'B'], says: /^谁也无法继续：锁在 A 手里，没有人会还。按了 3 次，做到了，不能更少。/, seen: '卡死' },
    { lesson: '2.6', presses: ['A'], says: /^谁也无法继续：锁在 A 手里.*按了 1 次，做到了，不能更少。/, seen: '卡死' },
    { lesson: '3.6', presses: ['A', 'B', 'A', 'C'], says: /^B 先来，C 先进去：插队。按了 4 次，做到了，不能更少。/, seen: '插队' },
    { lesson: '2.10.2', presses: ['A', 'B', 'A', 'C'], says: /^B 先来，C 先进去：插队。按了 4 次，做到了，不能更少。/, seen: '插队' },
    { lesson: '4.3.2', presses: ['A', 'death', 'B'], says: /^谁也无法继续：锁在 A 手里.*按了 3 次，做到了，不能更少。/, seen: '卡死' },
    { lesson: '003.deadlock.opposite-order', presses: ['A', 'B', 'A', 'B'], says: /^MySQL 让 [AB] 出错：1213。按了 4 次，做到了，不能更少。/, seen: '报错' },
    { lesson: '003.deadlock.shared-to-exclusive', presses: ['A', 'B', 'A', 'B'], says: /^MySQL 让 [AB] 出错：1213。按了 4 次，做到了，不能更少。/, seen: '报错' },
    { lesson: '003.deadlock.full-scan', presses: ['A', 'B', 'A', 'B'], says: /^MySQL 让 [AB] 出错：1213。按了 4 次，做到了，不能更少。/, seen: '报错' },
    { lesson: '003.deadlock.gap', presses: ['A', 'B', 'A', 'B'], says: /^MySQL 让 [AB] 出错：1213。按了 4 次，做到了，不能更少。/, seen: '报错' },
    { lesson: '003.deadlock.lock-wait', presses: ['A', 'B', 'A'], says: /^MySQL 让 [AB] 出错：1205。按了 3 次，做到了，不能更少。/, seen: '报错' },
  ]) {
    (['2.2', '2.10.2', '003.deadlock.lock-wait'].includes(lesson) ? it : itInSoak)(`goes wrong in ${lesson}, and in no schedule on its cure`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-schedule');
      for (const actor of presses) {
        await tab.waitForElement(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
        await tab.press(`#schedule-buttons [data-key=${actor}]`);
      }
      await tab.waitForText('#schedule-say', says);
      await tab.screenshot(`schedule-${lesson}`);
      await tab.assertAccessible();
      tab.assertNoErrors();
      if (!SOAK && lesson !== '003.deadlock.lock-wait') return;
      assert.match(await tab.tryAllSchedules(), new RegExp(`^所有 \\d+ 种顺序都试过了：\\d+ 种${seen}，最少按 \\d+ 次。`));
      assert.equal(await fewestFound(tab), presses.length, 'the search finds the fewest presses of the list');
      await tab.click('[name=schedule-cured][value=true]');
      await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
      assert.match(await tab.tryAllSchedules(), new RegExp(`所有 \\d+ 种顺序都试过了：没有一种${seen}。`));
      tab.assertNoErrors();
    });
  }

  it('says who has the lock when nobody can go on', async () => {
    const tab = await suite.openTab('#/2.6');
    await tab.waitForLesson('2.6');
    // The lock's state comes long after the news of those who want it.
    await tab.evaluate(() => {
      globalThis.EventSource = class extends EventSource {
        addEventListener(/** @type {string} */ name, /** @type {any} */ tell) {
          super.addEventListener(name, (/** @type {any} */ message) => {
            setTimeout(tell, JSON.parse(message.data).actor === 'lock' ? 3000 : 0, message);
          });
        }
      };
    });
    await tab.press('#race-schedule');
    await tab.press('#schedule-buttons [data-key=A][aria-disabled=false]');
    await tab.waitFor(() => document.getElementById('schedule-say').textContent);
    assert.match((await tab.text('#schedule-say')) ?? '', /^谁也无法继续：锁在 A 手里/);
    tab.assertNoErrors();
  });

  itInSoak('oversells where the clock ends the lease, on a phone', async () => {
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

describe('the steps of a schedule', () => {
  const recording = () => ({ ...emptyRecording(), stepped: true });
  const add = (to, ...events) => events.forEach((event, i) => addEvent(to, { instance: '1', t_us: i * 50_000, ...event }, Math.max(0, i - 1) * 50_000));
  const timeOf = (of, actor, event) => of.events.find((e) => e.actor === actor && e.event === event).t_us;

  it('a lock is drawn where it was taken and released', () => {
    const one = recording();
    add(one, { actor: 'A', event: 'start' }, { actor: 'A', event: 'taken' }, { actor: 'A', event: 'read', value: '5' }, { actor: 'lock', event: 'held', key: 'k', owner: 'A' },
      { actor: 'A', event: 'released' }, { actor: 'B', event: 'start' }, { actor: 'lock', event: 'free', key: 'k' });
    assert.equal(timeOf(one, 'lock', 'held'), timeOf(one, 'A', 'taken'));
    assert.equal(timeOf(one, 'lock', 'free'), timeOf(one, 'A', 'released'));
    // Nobody has released what expires: it stands where it was seen.
    const other = recording();
    add(other, { actor: 'A', event: 'taken' }, { actor: 'lock', event: 'held', key: 'k', owner: 'A' }, { actor: 'B', event: 'start' }, { actor: 'lock', event: 'expired', key: 'k' });
    assert.ok(timeOf(other, 'lock', 'expired') > timeOf(other, 'B', 'start'));
  });

  it('who has read another one’s write has lost nothing', () => {
    const committed = (value) => modelOf([
      { t_us: 1, actor: 'B', event: 'read', value: '5000' }, { t_us: 2, actor: 'B', event: 'written', value: '4999' }, { t_us: 3, actor: 'A', event: 'read', value },
      { t_us: 4, actor: 'B', event: 'committed' }, { t_us: 5, actor: 'A', event: 'written', value: String(Number(value) - 1) },
    ]).lanes.find(({ actor }) => actor === 'A').carries.length;
    // A's read was let through by B's commit, and reported before it.
    assert.equal(committed('4999'), 0);
    // The twin: a read of before.
    assert.equal(committed('5000'), 1);
  });
});

/** The fewest presses among the schedules that went wrong; the page itself shows the lesser of this and its list's. @param {import('./support.mjs').Tab} tab */
async function fewestFound(tab) {
  const found = await tab.page.$$eval('#schedule-tried .red', (all) => all.map((one) => Number(/第 (\d+) 次/.exec(one.textContent)[1])));
  return Math.min(...found);
}
