/** The page: every strategy at its name, wrong numbers, a run to its verdict, and purchases by hand. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { prediction } from '../../static/js/run/prediction.js';
import { judge } from '../../static/js/run/rate-rounds.js';
import { parseAddress, settingsOf } from '../../static/js/page/address.js';
import { PHONE, PROJECTOR, getJson, itInSoak, lab, waitUntil } from './support.mjs';

describe('the page', () => {
  const suite = lab();

  itInSoak('has every strategy at its name, and no unknown lesson', async () => {
    const strategies = await getJson(`${suite.at.http}/strategies`);
    // The presets show the claim, the flaw first.
    for (const [id, slug, says] of /** @type {const} */ ([['1.1', 'none', 'willOversell'], ['1.3', 'none', 'willBeExact'], ['1.5', 'mutex', 'willBeExact'], ['1.6', 'mutex', 'willOversell'], ['2.3', 'redis-setnx-ttl', 'willOutlive'], ['001.expire', 'redis-setnx-ttl', 'willOutlive']])) {
      const { target, typed } = parseAddress(`#/${id}`);
      assert.equal(prediction(strategies.find((one) => one.slug === slug), settingsOf(target, typed))[0], says, id);
    }
    const tab = await suite.openTab('#/2.3');
    await tab.waitForLesson('2.3');
    await tab.waitForText('#needs', /^redis-setnx-ttl ·/);
    for (const { slug } of strategies) {
      await tab.go(slug);
      await tab.waitFor((name) => document.getElementById('needs').textContent.startsWith(`${name} ·`), slug);
    }
    for (const none of ['9.9', '7.7']) {
      await tab.go(none);
      await tab.waitFor((number) => {
        const told = document.getElementById('unknown-text');
        return told.checkVisibility() && told.textContent.includes(number);
      }, none);
    }
  });

  for (const [size, view] of /** @type {const} */ ([[PROJECTOR, '1.5'], [PROJECTOR, 'compare'], [PROJECTOR, '9.9'], [PHONE, '2.3'], [PHONE, 'compare']])) {
    it(`is accessible at ${size.join(' × ')} in ${view}`, async () => {
      const tab = await suite.openTab(`#/${view}`, size);
      await tab.waitFor(() => document.querySelectorAll('#chapters a').length > 30);
      assert.ok(!(await tab.isWiderThanWindow()));
      await tab.assertAccessible();
      await tab.screenshot(`page-${view}-${size[0]}`);
      tab.assertNoErrors();
    });
  }

  it('runs no wrong number, and a right one to its verdict', async () => {
    const tab = await suite.openTab('#/1.3?threads=20&loops=5&hold_ms=5');
    await tab.waitForLesson('1.3');
    for (const [field, wrong] of [['threads', '0'], ['threads', '1e9'], ['loops', '999999999999'], ['hold_ms', '60001'], ['count', 'all']]) {
      const right = await tab.value(`[name=${field}]`);
      await tab.fill(`[name=${field}]`, wrong);
      await tab.click('#run');
      await tab.waitForText(`#${field}-wrong`, /./);
      assert.equal(await tab.value(`[name=${field}]`), wrong);
      await tab.fill(`[name=${field}]`, right);
    }
    assert.equal((await fetch(`${suite.at.http}/runs/current`)).status, 204, 'no wrong number was run');

    await tab.waitUntilRunnable();
    await tab.press('#run');
    await tab.waitForText('#say', /人都买到了，库存却还显示 .* 件：.*会再卖给别人/);
    assert.equal(await tab.count('#figures.stale'), 0, 'the result is of these settings');
    await tab.fill('[name=loops]', '6');
    await tab.waitForElement('#figures.stale');
    tab.assertNoErrors();
  });

  it('speaks of the run where the lesson claims something else', async () => {
    const tab = await suite.openTab('#/2.10.1.owner?threads=2&loops=1');
    await tab.waitForLesson('2.10.1.owner');
    await tab.waitUntilRunnable();
    await tab.press('#run');
    await tab.waitForText('#say', /^这一场没有超卖：.*这一课说的是另一件事/);
    // The twin: a lesson that claims what a run shows.
    await tab.go('1.7.1?threads=2&loops=1');
    await tab.waitForLesson('1.7.1');
    await tab.waitUntilRunnable();
    await tab.press('#run');
    await tab.waitForText('#say', /^分毫不差/);
    tab.assertNoErrors();
  });

  it('sells exactly on one instance (1.5), and not on three', async () => {
    for (const [target, meet] of /** @type {const} */ ([['one', false], ['three', true]])) {
      const tab = await suite.openTab(`#/1.5?target=${target}&hold_ms=500`);
      await tab.waitForLesson('1.5');
      await tab.waitForElement('#buy-two[aria-disabled=false]');
      let twice = 0;
      await waitUntil(async () => {
        await tab.click('#buy-two');
        await tab.waitForElement('#answers[aria-busy=false] li');
        twice = await tab.count('#answers .twice');
        // nginx takes turns: other requests may come between two that are sent together.
        return twice > 0 || !meet;
      }, 'both have bought');
      if (!meet) assert.equal(twice, 0, 'at one instance no number is left behind twice');
      tab.assertNoErrors();
    }
  });

  it('sells nothing before an answer, and says what has failed', async () => {
    const tab = await suite.openTab('favicon.svg');
    /** @type {import('puppeteer-core').HTTPRequest[]} */
    const held = [];
    let [holds, hasStock] = [true, false];
    await tab.page.setRequestInterception(true);
    tab.page.on('request', (request) => {
      if (holds && request.url().includes('/health/ready')) held.push(request);
      else if (!hasStock && request.url().includes('/stock?')) void request.respond({ status: 502, contentType: 'text/html', body: '<h1>502 Bad Gateway</h1>' });
      else void request.continue();
    });
    await tab.page.goto(`${suite.at.http}/#/1.5?target=one`, { waitUntil: [] });
    await tab.waitForElement('body:not([data-first]) #buy-two');
    await waitUntil(() => held.length > 0, 'the page asks for the health');
    assert.equal(await tab.count('#buy[aria-disabled=false], #buy-two[aria-disabled=false], #reset[aria-disabled=false]'), 0);
    assert.equal(held.length, 1);
    holds = false;
    await Promise.all(held.map((request) => request.continue()));
    await tab.waitForElement('#buy-two[aria-disabled=false]');
    // What failed, and what to do; it goes with the next answer.
    await tab.waitForText('#shelf-note', /^库存没有读到：.*502.*停了。.*再试一次.*启动/);
    assert.equal(await tab.text('#mysql output'), '–');
    hasStock = true;
    await tab.click('#buy');
    await tab.waitForText('#shelf-note', /^都在一个实例上买/);
    tab.assertNoErrors();
  });

  it('opens what shows the claim of a lesson, and folds the rest', async () => {
    const tab = await suite.openTab('#/2.4');
    for (const [id, load, typed, none] of /** @type {const} */ ([
      ['2.4', true, false, false], ['1.1', false, false, false], ['1.3', true, false, false], ['1.5', true, false, false], ['2.10.1.owner', false, true, false], ['002.oversold', false, true, false],
      ['3.7.1.object', false, false, true], ['2.4.2', false, false, true],
    ])) {
      await tab.go(id);
      await tab.waitForLesson(id);
      await tab.waitFor((wanted) => {
        const open = (/** @type {string} */ at) => document.querySelector(at).checkVisibility();
        return JSON.stringify(['#settings', '#step-rows', '#no-button'].map(open)) === wanted;
      }, JSON.stringify([load, typed, none]));
    }
    await tab.page.goto(`${suite.at.http}/#/compare`);
    await tab.waitForElement('#compare');
    await tab.waitFor(() => document.getElementById('settings').checkVisibility());
    tab.assertNoErrors();
  });

  it("runs a lesson's commands and shows their output", async () => {
    const tab = await suite.openTab('#/2.4.4.2');
    for (const id of ['2.4.4.2', '3.7.6']) {
      await tab.go(id);
      await tab.waitForLesson(id);
      await tab.waitForElement('#terminals li');
      const lines = await tab.count('#terminals li');
      if (!(await tab.evaluate(() => document.getElementById('type-all').checkVisibility()))) await tab.click('#by-hand summary');
      await tab.press('#type-all');
      await tab.waitFor((many) => [...document.querySelectorAll('.printed p')].filter((p) => p.textContent.includes('和上面说的一样')).length === many, lines);
    }
    await tab.screenshot('typed-3.7.6');
    await tab.assertAccessible();
    tab.assertNoErrors();
  });

  itInSoak('compares the rates of a claim in rounds and as a curve', async () => {
    /** @type {import('../../static/js/run/rate-rounds.js').Rates} */
    const pair = { first: { strategy: 'a', target: 'one', threads: 1 }, second: { strategy: 'b', target: 'one', threads: 1 }, least: 2 };
    for (const [a, says] of /** @type {const} */ ([[[30, 21, 40], 'holds'], [[30, 19, 40], 'apart'], [[15, 19, 10], 'not']])) {
      assert.equal(judge(pair, new Map([['a one 1', [...a]], ['b one 1', [10, 10, 10]]])).says, says);
    }
    const tab = await suite.openTab('#/1.7.2.mutex');
    await tab.waitForLesson('1.7.2.mutex');
    // A few requests are enough to see it.
    await tab.evaluate(() => {
      const whole = fetch;
      window.fetch = (at, how) => whole(at, at === 'runs' && how?.body ? { ...how, body: JSON.stringify({ ...JSON.parse(String(how.body)), loops: 1 }) } : how);
    });
    await tab.press('#rates-run');
    await tab.waitForElement('#rates-picture [data-says]');
    await tab.waitForElement('#rates-run:not(.cancel)[aria-disabled=false]');
    await tab.waitForCount('#rates-picture .bound', 1);
    await tab.waitForCount('#rates-picture .rate', 2);
    await tab.press('#rates-curve');
    await tab.waitForCount('#rates-picture circle', 12);
    // Both axes say what they are, with several numbers, and a line has a name in the page's language.
    assert.deepEqual(await tab.page.$$eval('#rates-picture .title', (all) => all.map((one) => one.textContent)), ['每秒几个', '连接数']);
    assert.ok((await tab.count('#rates-picture [data-tick]')) >= 3);
    const named = await tab.page.$$eval('.rates-lines text', (all) => all.map((one) => one.textContent));
    assert.deepEqual(['悲观锁', '进程内互斥锁'].filter((name) => !named.includes(name)), []);
    await tab.screenshot('rates-1.7.2.mutex');
    await tab.assertAccessible();
    tab.assertNoErrors();
  });

  it('lists what a search finds, no number over a title', async () => {
    const tab = await suite.openTab('#/1.3');
    await tab.waitForLesson('1.3');
    await tab.fill('#search', 'oversold');
    await tab.waitForElement('#chapters [data-id="002.oversold"]');
    const met = await tab.page.$$eval('#chapters a', (all) => all.filter((a) => {
      const [number, title] = ['.chapter', '.title'].map((part) => {
        const text = document.createRange();
        text.selectNodeContents(a.querySelector(part));
        return text.getBoundingClientRect();
      });
      return number.right > title.left && number.bottom > title.top + 2 && title.bottom > number.top + 2;
    }).map((a) => a.textContent));
    assert.deepEqual(met, []);
    assert.ok(await tab.evaluate(() => document.querySelector('#chapters > p').getBoundingClientRect().left + parseFloat(getComputedStyle(document.querySelector('#chapters > p')).paddingLeft) >= 16), 'its count is not at the edge');
    tab.assertNoErrors();
  });

  it('fits a phone with the whole printed code open', async () => {
    const tab = await suite.openTab('#/3.4.1.printed', PHONE);
    for (const id of ['3.4.1.printed', '3.5.printed', '4.2.printed']) {
      await tab.go(id);
      await tab.waitForLesson(id);
      await tab.waitForElement('#lines span');
      await tab.evaluate(() => { for (const fold of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll('main details'))) fold.open = true; });
      assert.ok(!(await tab.isWiderThanWindow()), id);
    }
    tab.assertNoErrors();
  });

  itInSoak('draws the herd (3.4.2) as bars, and its cure flat', async () => {
    const tab = await suite.openTab('#/3.4.2.herd');
    await tab.waitForLesson('3.4.2.herd');
    await tab.press('#race-run');
    await tab.waitForElement('#race-why:not(.later)');
    for (const [half, sum] of /** @type {const} */ ([[1, 1275], [2, 50]])) {
      const woken = await tab.page.$$eval(`#race-woken figure:nth-of-type(${half}) rect`, (bars) => bars.map((bar) => Number(bar.getAttribute('height'))));
      assert.equal(woken.length, 51);
      assert.equal(woken.reduce((all, one) => all + one), sum);
      assert.equal(woken[0] > woken[25], half === 1, 'it falls');
    }
    assert.equal(await tab.evaluate(() => document.getElementById('race-flaw').checkVisibility()), false, 'counts have no lanes');
    assert.ok(await tab.evaluate(() => document.getElementById('race-woken').getBoundingClientRect().bottom <= document.getElementById('race-flaw-part').getBoundingClientRect().top), 'the charts come first');
    await tab.screenshot('herd');
    tab.assertNoErrors();
  });
});
