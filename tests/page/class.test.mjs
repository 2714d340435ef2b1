/**
 * The class's page: thirty at the semaphore, readers and writers in all four orders, the latch, barriers and the herd. Too many are red,
 * and the own lane is marked.
 */

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { PHONE, PROJECTOR, describeInSoak, itInSoak, lab, ownLab, sendJson } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */
/** @typedef {ReturnType<typeof lab>} Suite */
/** A bar in a visitor's lane, in pixels. @typedef {{who: string, kind: string, from: number, to: number}} Bar */

describeInSoak("the class's page at the semaphore", () => {
  const suite = ownLab();

  it('draws thirty people three at a time', async () => {
    const tab = await openLesson(suite, '2.10.6');
    await sendVisitors(tab, '/test/semaphore', namesOf('同学', 30), 500);
    await waitUntilAllLeft(tab, 30);
    await tab.screenshot('class-semaphore-30');
    assert.equal(await mostInside(tab), 3);
    assert.equal(await tab.count(RED), 0);
    // As many permits as the claim has.
    await tab.waitForText('#claim', /^3 个许可/);
    await tab.waitForText('#state', /^3 个许可：里面 0 人，空着 3 个，等着 0 人$/);
    assert.equal(new Set(await tab.page.$$eval('#lanes .lane', (lanes) => lanes.map((lane) => lane.getAttribute('data-who')))).size, 30);
    // A broken answer is none: the page asks again and goes on with the events.
    await tab.evaluate(`
      const whole = fetch;
      window.broken = 0;
      window.fetch = (at, how) => {
        if (!String(at).includes('classroom/objects')) return whole(at, how);
        window.broken += 1;
        const body = new ReadableStream({ start: (to) => to.error(new TypeError('cut off')) });
        return Promise.resolve(new Response(body, { headers: { 'content-type': 'application/json' } }));
      };`);
    await tab.waitFor('window.broken > 1');
    await assertAllWell(tab);
  });

  // The twin.
  it('is red with a fourth permit', async () => {
    await promisify(execFile)('redis-cli', ['-u', suite.at.redis[0].url, 'INCR', 'semaphore']);
    const tab = await openLesson(suite, '2.10.6');
    await sendVisitors(tab, '/test/semaphore', namesOf('后来的', 8), 60_000);
    await tab.waitForElement('#state.red');
    await tab.waitFor(`(${mostAtOnce})((${barsDrawn})()) > 3`);
    await tab.screenshot('class-semaphore-four');
    assert.ok((await tab.count(RED)) >= 4);
    tab.assertNoErrors();
  });
});

describeInSoak("the class's page where an instance is killed", () => {
  const suite = ownLab();

  it('ends its lanes and counts the permits lost in Redis', async () => {
    const tab = await openLesson(suite, '2.10.6');
    await sendVisitors(tab, '/test/semaphore', namesOf('同学', 3), 60_000);
    await tab.waitForText('#state', /里面 3 人，空着 0 个，等着 0 人/);
    // Visitors are sent in turn: each prints a line inside, which may come after the news that it is there.
    await tab.waitForCount('#consoles li:not(.dim)', 3);
    const [first, , killed] = suite.at.instances;
    const there = await tab.count(`#consoles [data-instance="${killed.name}"] li:not(.dim)`);
    assert.ok(there >= 1 && there <= 3, `${there} are inside at ${killed.name}`);
    assert.equal((await sendJson(`${first.url}/lab/faults`, { action: 'kill', member: killed.name })).status, 200);
    await tab.waitForText('#state', new RegExp(`里面 ${3 - there} 人，空着 0 个，${there} 个随停掉的实例丢了`));
    const said = await tab.page.$$eval('#lanes [data-kind=end]', (ends) => ends.map((end) => end.textContent));
    assert.deepEqual(said, Array(there).fill('实例停了'));
    await tab.screenshot('class-killed');
  });
});

describe("the class's page", () => {
  const suite = ownLab();

  // On Redis, then on ZooKeeper. The readers come last, since they must stay while one looks at both.
  for (const { lesson, path } of [{ lesson: '2.10.5', path: '/test' }, { lesson: '3.7.3', path: '/test/zk' }]) {
    (lesson === '3.7.3' ? itInSoak : it)(`draws readers together and a writer alone in ${lesson}`, async () => {
      const [one, other] = [await openLesson(suite, lesson), await openLesson(suite, lesson)];
      for (const [first, then] of [['read', 'write'], ['write', 'read'], ['write', 'write'], ['read', 'read']]) {
        const together = first === 'read' && then === 'read';
        const [a, b] = [`先${first}${then}`, `后${first}${then}`];
        const hold = together ? 60_000 : 1500;
        await sendVisitors(one, `${path}/${first}`, [a], hold);
        await other.waitForElement(laneInside(a));
        await sendVisitors(other, `${path}/${then}`, [b], hold);
        // Events of two instances may come in another order.
        for (const who of [a, b]) await one.waitForElement(laneInside(who));
        await one.waitForText('#state', together ? /在读 2 人，在写 0 人/ : /在读 0 人，在写 0 人/);
        // Both in one look, since the scale changes with time.
        const both = `(${insideBars})((${barsDrawn})(), ['${a}', '${b}'])`;
        if (together) {
          await one.waitFor(`(([a, b]) => a.from < b.from && b.from < a.to - 8)(${both})`);
        } else {
          const [before, after] = await one.evaluate(both);
          assert.ok(before.from < after.from && after.from >= before.to - 8, JSON.stringify([first, then, before, after]));
        }
        assert.equal(await one.count(RED), 0, `${first}, ${then}`);
        await one.screenshot(`class-${lesson}-${first}-${then}`);
      }
      await assertAllWell(one);
    });
  }

  it('lets the monitor wait until six have left', async () => {
    const tab = await openLesson(suite, '2.10.7');
    await pressAction(tab, 'latch');
    const waits = '#lanes .lane[data-who=班长]:has([data-kind=waits]):not(:has([data-kind=dot]))';
    await tab.waitForElement(waits);
    for (const left of [5, 4, 3, 2, 1, 0]) {
      assert.equal(await tab.count(waits), 1, `the monitor waits with ${left + 1} in the room`);
      await pressAction(tab, 'countdown');
      await tab.waitForText('#state', left === 0 ? /六位都出来了/ : new RegExp(`还有 ${left} 位没出来`));
    }
    await tab.waitForElement('#lanes .lane[data-who=班长] [data-kind=dot]');
    await tab.screenshot('class-latch');
    await assertAllWell(tab);
  });

  it('marks its own lane on a phone, and fits', async () => {
    const phone = await openLesson(suite, '2.10.6?me', PHONE);
    await pressAction(phone, 'semaphore');
    await phone.waitForText('#notice', /名字/);
    await phone.fill('#who', '<b>小明</b>');
    // Two stay; the third leaves, and lets the phone in, only once the phone was seen waiting.
    await sendVisitors(phone, '/test/semaphore', namesOf('同学', 2), 60_000);
    const third = new AbortController();
    fetch(`${suite.at.http}/test/semaphore?hold_ms=60000&who=third`, { signal: third.signal }).catch(() => {});
    await phone.waitForText('#state', /里面 3 人/);
    await pressAction(phone, 'semaphore');
    await phone.waitForCount('#lanes .lane.mine', 1);
    assert.equal(await phone.page.$eval('#lanes .lane.mine', (lane) => lane.getAttribute('data-who')), '<b>小明</b>');
    await phone.waitForText('#mine', /等待中/);
    third.abort();
    await phone.waitForText('#mine', /在里面/);
    await phone.screenshot('class-phone');
    assert.ok(!(await phone.isWiderThanWindow()));
    await assertAllWell(phone);
  });

  it('phones follow the desk and guess before a race', async () => {
    const [phone, desk] = [await openLesson(suite, '2.10.6?me', PHONE), await openLesson(suite, '2.10.6')];
    await desk.page.select('#lessons', '2.10.5');
    await phone.waitForText('#chapter', /^2\.10\.5$/);
    const projector = await suite.openTab('#/1.1');
    await projector.waitForLesson('1.1');
    await projector.press('#race-class');
    await phone.waitForText('#guess-ask', /谁的写入丢失了/);
    // So does a phone that comes later by the address that the terminal shows, or by the code that the race leads to.
    const late = await suite.openTab('class.html#/?me', PHONE);
    await late.waitForText('#guess-ask', /谁的写入丢失了/);
    assert.equal(await projector.page.$eval('#race-idle a', (link) => link.getAttribute('href')), 'class.html#/1.1');
    const code = await openLesson(suite, '1.1');
    await code.press('#phone');
    await code.fill('#address', '192.168.1.5:8080');
    await code.waitForText('#link', /#\/1\.1\?me$/);
    await phone.press('[data-guess="1"]');
    await phone.waitForText('#notice', /名字/);
    await phone.fill('#who', '小明');
    await phone.press('[data-guess="0"]');
    await projector.waitForText('#race-guess [data-key="0"]', /1 人/);
    // A person's last guess counts.
    await phone.press('[data-guess="1"]');
    await projector.waitForText('#race-guess [data-key="1"]', /1 人/);
    await projector.waitForText('#race-guess [data-key="0"]', /0 人/);
    assert.equal((await sendJson(`${suite.at.http}/classroom/guesses`, { lesson: '1.1', who: '小红', guess: 1 })).status, 204);
    await projector.waitForText('#race-class', /2 人/);
    await phone.screenshot('class-guess-phone');
    await phone.assertAccessible();
    await projector.press('#race-run');
    await projector.waitForText('#race-guess b', /答案：A 的：被 B 盖掉/);
    // Phones are told, and the wall shows shares as bars.
    await phone.waitForText('#guess-ask', /猜对了：A 的：被 B 盖掉/);
    await phone.waitForCount('#guess-choices button', 0);
    await projector.waitForElement('#race-guess [data-key="1"] .share.answer rect[width="100%"]');
    await projector.waitForText('#race-guess [data-key="1"]', /2 人/);
    await projector.screenshot('class-guess');
    // Another class is asked the same: phones forget the answer.
    const again = await suite.openTab('#/1.1');
    await again.waitForLesson('1.1');
    await again.press('#race-class');
    await phone.waitForCount('#guess-choices button', 4);
    assert.equal(await phone.count('#guess-choices [aria-pressed=true]'), 0);
    await phone.press('[data-guess="1"]');
    await phone.waitForElement('[data-guess="1"][aria-pressed=true]');
    for (const tab of [phone, desk, projector, late, code, again]) tab.assertNoErrors();
  });

  itInSoak('the wall keeps the shares after the end', async () => {
    const wall = await suite.openTab('#/1.1');
    await wall.waitForLesson('1.1');
    await wall.click('#projector');
    await wall.press('#race-class');
    await wall.waitForElement('#race-guess .share');
    for (const [who, guess] of [['小明', 1], ['小红', 1], ['小刚', 0]]) await sendJson(`${suite.at.http}/classroom/guesses`, { lesson: '1.1', who, guess });
    await wall.waitForText('#race-class', /3 人/);
    await wall.press('#race-run');
    await wall.waitForElement('#race.playing #race-flaw circle:not(.later)');
    assert.ok(!(await wall.evaluate(() => document.getElementById('race-guess').checkVisibility())), 'while it plays the pictures have its place');
    await wall.waitForElement('#race.ended');
    const answers = await wall.page.$$eval('#race-guess button', (all) => all.map((one) => ({
      top: one.getBoundingClientRect().top, bottom: one.getBoundingClientRect().bottom, votes: one.querySelector('.votes').textContent.trim(),
      share: Math.round((100 * one.querySelector('.share rect').getBoundingClientRect().width) / one.querySelector('.share').getBoundingClientRect().width), is: one.querySelector('.answer') != null && one.querySelector('.mark') != null,
    })));
    const { picture, why, height } = await wall.evaluate(() => ({
      picture: document.getElementById('race-flaw').getBoundingClientRect().top, why: document.getElementById('race-why').getBoundingClientRect().bottom, height: innerHeight,
    }));
    assert.deepEqual(answers.map(({ votes, share, is }) => [votes, share, is]), [['· 1 人', 33, false], ['· 2 人', 67, true], ['· 0 人', 0, false], ['· 0 人', 0, false]]);
    assert.ok(answers.every(({ top, bottom }) => top >= 0 && bottom <= picture) && why <= height, JSON.stringify({ answers, picture, why }));
    await wall.screenshot('class-shares');
    await wall.assertAccessible();
    wall.assertNoErrors();
  });

  for (const { size, lessons } of [{ size: PROJECTOR, lessons: ['2.10.2', '2.10.5', '2.10.6', '2.10.7', '3.4.2.herd', '3.7.6', '3.7.6.barrier'] }, { size: PHONE, lessons: ['3.7.6?me'] }]) {
    it(`is accessible in English and in the dark at ${size.join(' × ')}`, async () => {
      const tab = await openLesson(suite, lessons[0], size);
      await tab.evaluate(() => void (document.documentElement.dataset.theme = 'dark'));
      await tab.click('#en');
      for (const lesson of lessons) {
        await tab.go(lesson);
        await tab.waitForElement(`#chapter[data-lesson="${lesson.replace('?me', '')}"]`);
        await assertAllWell(tab);
      }
    });
  }

  it('shows the QR code for phones', async () => {
    const tab = await openLesson(suite, '2.10.6');
    await tab.press('#phone');
    await tab.waitForElement('#scan-ask:not([hidden])');
    await tab.fill('#address', '192.168.1.5:8080');
    await tab.waitFor(() => /** @type {HTMLImageElement} */ (document.getElementById('code')).naturalWidth > 0);
    await tab.screenshot('class-scan');
    await assertAllWell(tab);
  });

  it('knows the address for phones if its lab does', async () => {
    const tab = await openLesson(suite, '2.10.6');
    await tab.evaluate(() => {
      const ask = globalThis.fetch;
      globalThis.fetch = async (url, how) => {
        const answer = await ask(url, how);
        return String(url) === 'lab' ? Response.json({ ...await answer.json(), phones: 'http://192.168.1.5:8080' }) : answer;
      };
    });
    await tab.press('#phone');
    await tab.waitForText('#link', /^http:\/\/192\.168\.1\.5:8080\/class\.html#\/2\.10\.6\?me$/);
    await tab.waitFor(() => /** @type {HTMLImageElement} */ (document.getElementById('code')).naturalWidth > 0);
    await assertAllWell(tab);
  });

  it('waiters at a barrier go on together', async () => {
    const tab = await openLesson(suite, '3.7.6.barrier');
    await tab.waitForText('#state', /栅栏开着/);
    await pressAction(tab, 'set');
    await tab.waitForText('#state', /栅栏关着/);
    await pressAction(tab, 'wait-5');
    await tab.waitForText('#state', /等着 5 人/);
    // The barrier was set, and nobody went through.
    await tab.waitForCount('#lanes [data-kind=dot]', 1);
    await pressAction(tab, 'remove');
    await tab.waitForCount('#lanes [data-kind=dot]', 7);
    await tab.screenshot('class-barrier');
    await assertAllWell(tab);
  });

  it('parties of a double barrier enter and leave together', async () => {
    const tab = await openLesson(suite, '3.7.6');
    for (const state of [/里面 0 人，等人到齐的 1 人/, /里面 0 人，等人到齐的 2 人/, /里面 3 人，等人到齐的 0 人/]) {
      await pressAction(tab, 'enter');
      await tab.waitForText('#state', state);
    }
    await pressAction(tab, 'leave');
    await tab.waitForText('#state', /里面 0 人，等人到齐的 0 人/);
    assert.equal(await tab.count('#lanes [data-kind=inside]'), 3);
    assert.equal(await tab.count(RED), 0);
    await tab.screenshot('class-meeting');
    await assertAllWell(tab);
  });

  itInSoak('draws five of ten with a lease', async () => {
    const tab = await openLesson(suite, '3.7.5');
    await sendVisitors(tab, '/test/zk/semaphore', namesOf('同学', 10), 2500);
    await waitUntilAllLeft(tab, 10);
    assert.equal(await mostInside(tab), 5);
    assert.equal(await tab.count(RED), 0);
    await tab.screenshot('class-leases');
    await assertAllWell(tab);
  });

  itInSoak('draws how many waiters each release wakes: all, or one', async () => {
    const tab = await openLesson(suite, '3.4.2.herd');
    // Its texts come with its functions.
    await tab.waitForText('#herd-run', /./);
    await tab.press('#herd-run');
    await tab.waitForCount('.herd svg', 2);
    const woken = await tab.page.$$eval('.herd svg', (rows) => rows.map((row) => [...row.querySelectorAll('rect')].slice(0, 3).map((bar) => Number(bar.dataset.n))));
    assert.deepEqual(woken, [[50, 49, 48], [1, 1, 1]]);
    await tab.screenshot('class-herd');
    await assertAllWell(tab);
  });
});

describe("the teacher's desk", () => {
  // Not shared: visitors are numbered as they come.
  const suite = lab(['--redis-ports=0,0,0,0,0'], { OVERSELL__ADMIN__TOKEN: 'open-sesame' }, 'the desk');

  it('lists the class, calls everybody, and shows a race to all', async () => {
    const desk = await suite.openTab('class.html#token=open-sesame');
    await desk.waitForText('#desk-summary', /0 人在/);
    await desk.click('#desk-summary');
    const phone = await suite.openTab('class.html#/2.10.6?me', PHONE);
    await phone.fill('#who', '小明');
    const laptop = await suite.openTab('#/1.1');
    await laptop.waitForLesson('1.1');
    await desk.waitForText('#desk-summary', /2 人在/);
    await desk.waitForText('#desk-visitors', /小明 2\.10\.6 .*访客 2 1\.1 /s);
    await laptop.press('#race-run');
    await laptop.waitForElement('#race.ended');
    // Before the desk shows it: the laptop, called as well, begins to play it anew.
    const ends = await Promise.all(ENDS.map((end) => laptop.text(end)));
    assert.match(ends[0], /超卖 1/);
    await desk.screenshot('class-desk');
    await desk.press('[data-visitor="2"] [data-race="1.1"]');
    await desk.waitForText('#desk-say', /大家在看访客 2的 1\.1/);
    // The phone has played nothing, and sees how both halves ended.
    await phone.waitForLesson('1.1');
    await phone.waitForElement('#race.ended');
    await phone.waitForText('#called', /老师叫大家/);
    assert.deepEqual(await Promise.all(ENDS.map((end) => phone.text(end))), ends);
    await phone.screenshot('class-shown-phone');
    await phone.assertAccessible();
    // To a lesson of the class: the phone is back on the class's page.
    await desk.page.select('#desk-lesson', '2.10.7');
    await desk.press('#desk-call');
    await laptop.waitForLesson('2.10.7');
    await phone.waitFor(() => location.pathname.endsWith('class.html') && document.getElementById('chapter').textContent === '2.10.7');
    await desk.waitForText('#desk-visitors', /小明 2\.10\.7 .*访客 2 2\.10\.7 /s);
    // One that comes later goes where it likes.
    const late = await suite.openTab('#/2.1');
    await late.waitForLesson('2.1');
    await desk.waitForText('#desk-visitors', /访客 3 2\.1 /);
    await late.go('2.2');
    await desk.waitForText('#desk-visitors', /访客 3 2\.2 /);
    assert.equal(await late.text('#chapter'), '2.2');
    await desk.click('#en');
    await desk.waitForText('#desk-summary', /The teacher’s desk: 3 here/);
    await desk.screenshot('class-desk-en');
    await assertAllWell(desk);
    for (const tab of [phone, laptop, late]) tab.assertNoErrors();
  });

  it('clears the queue', async () => {
    const desk = await suite.openTab('class.html#token=open-sesame');
    await desk.click('#desk-summary');
    const started = await Promise.all(['a', 'b', 'c'].map((letter) => fetch(`${suite.at.http}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-visitor': letter.repeat(16), authorization: 'Bearer open-sesame' },
      body: JSON.stringify({ strategy: 'redis-script', threads: 10, loops: 10_000 }),
    })));
    assert.deepEqual(started.map(({ status }) => status), [202, 202, 202]);
    await desk.waitForCount('#desk-waiting li', 2);
    await desk.screenshot('class-desk-queue');
    await desk.press('#desk-clear');
    await desk.waitForText('#desk-say', /结束了 2 个/);
    await desk.waitForCount('#desk-waiting li', 0);
    await assertAllWell(desk);
  });

  it('asks for the token, and shows nobody without it', async () => {
    const stranger = await suite.openTab('class.html');
    await stranger.waitForText('#desk-summary', /要口令/);
    assert.equal(await stranger.count('#desk-visitors li'), 0);
    await stranger.click('#desk-summary');
    await stranger.waitForElement('#token:focus');
    await stranger.fill('#token', 'wrong');
    await stranger.waitFor(() => /** @type {HTMLInputElement} */ (document.getElementById('token'))?.value === '');
    await stranger.fill('#token', 'open-sesame');
    await stranger.waitForText('#desk-summary', /人在/);
    await assertAllWell(stranger);
  });
});

const ENDS = ['#race-flaw-end', '#race-cure-end'];
const RED = '#lanes [data-kind=overlap]';

/** Opens a lesson, and waits until the page hears the instances. @param {Suite} suite @param {string} lesson @param {import('./support.mjs').Size} [size] */
async function openLesson(suite, lesson, size) {
  const tab = await suite.openTab(`class.html#/${lesson}`, size);
  if (!/me|herd/.test(lesson)) await tab.waitForCount('#consoles section', 3);
  return tab;
}

/** @param {string} word @param {number} many */
const namesOf = (word, many) => Array.from({ length: many }, (_, n) => `${word} ${n + 1}`);

/** Sends these visitors, for as long as they stay. @param {Tab} tab @param {string} path @param {string[]} names @param {number} hold_ms */
async function sendVisitors(tab, path, names, hold_ms) {
  const body = JSON.stringify({ visit: path, names, hold_ms, wait_ms: 60_000 });
  const sent = (people) => fetch('classroom/visits', { method: 'POST', headers: { 'content-type': 'application/json' }, body: people }).then(({ status }) => status);
  assert.equal(await tab.evaluate(sent, body), 202);
}

/** @param {Tab} tab @param {string} name */
const pressAction = (tab, name) => tab.click(`[data-act=${name}]`);

/** The lane of a visitor who is inside. @param {string} who */
const laneInside = (who) => `#lanes .lane[data-who=${who}]:has([data-kind=inside], [data-kind=shared])`;

/** Waits until all have been inside and have left. @param {Tab} tab @param {number} many */
async function waitUntilAllLeft(tab, many) {
  await tab.waitFor((people) => {
    const lanes = [...document.querySelectorAll('#lanes .lane')];
    return lanes.length >= people && lanes.every((lane) => lane.querySelector('[data-kind=inside]'));
  }, many);
  await tab.waitForText('#state', /里面 0 人/);
}

/** All bars, from the picture's left. @returns {Bar[]} */
function barsDrawn() {
  return [...document.querySelectorAll('#lanes .lane [data-kind]')].map((bar) => {
    /** @type {HTMLElement} */
    const lane = bar.closest('.lane');
    const [{ left, right }, shift] = [bar.getBoundingClientRect(), lane.parentElement.getBoundingClientRect().left];
    return { who: lane.dataset.who, kind: /** @type {HTMLElement} */ (bar).dataset.kind, from: left - shift, to: right - shift };
  });
}

/** Where each of them is inside. @param {Bar[]} drawn @param {string[]} people */
const insideBars = (drawn, people) => people.map((who) => drawn.find((bar) => bar.who === who && ['inside', 'shared'].includes(bar.kind)));

/** The most bars inside at one place of the picture, with a small tolerance. @param {Bar[]} drawn */
function mostAtOnce(drawn) {
  const within = drawn.filter(({ kind }) => kind === 'inside').map(({ from, to }) => [from + 1.5, to - 1.5]);
  return Math.max(0, ...within.map(([at]) => within.filter(([from, to]) => from <= at && at < to).length));
}

/** @param {Tab} tab */
const mostInside = async (tab) => mostAtOnce(await tab.evaluate(barsDrawn));

/** @param {Tab} tab */
async function assertAllWell(tab) {
  tab.assertNoErrors();
  await tab.assertAccessible();
}
