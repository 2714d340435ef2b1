/** The page: every strategy at its name, wrong inputs, a run to its verdict, and purchases by hand. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { prediction } from '../../static/js/run/prediction.js';
import { judge } from '../../static/js/run/rate-rounds.js';
import { parseAddress, settingsOf } from '../../static/js/page/address.js';
import { PHONE, PROJECTOR, json, lab, until } from './support.mjs';

describe('the page', () => {
  const suite = lab();

  it('has every strategy at its name, and says of a number that it is none', async () => {
    const strategies = await json(`${suite.at.http}/strategies`);
    // What is preset shows the claim, the flaw first.
    for (const [id, slug, says] of /** @type {const} */ ([['1.1', 'none', 'willOversell'], ['1.3', 'none', 'willBeExact'], ['1.5', 'mutex', 'willBeExact'], ['1.6', 'mutex', 'willOversell'], ['2.3', 'redis-setnx-ttl', 'willOutlive'], ['001.expire', 'redis-setnx-ttl', 'willOutlive']])) {
      const { target, typed } = parseAddress(`#/${id}`);
      assert.equal(prediction(strategies.find((one) => one.slug === slug), settingsOf(target, typed))[0], says, id);
    }
    const tab = await suite.tab('#/2.3');
    await tab.shows('2.3');
    await tab.reads('#needs', /^redis-setnx-ttl ·/);
    for (const { slug } of strategies) {
      await tab.go(slug);
      await tab.holds((name) => document.getElementById('needs').textContent.startsWith(`${name} ·`), slug);
    }
    for (const none of ['9.9', '7.7']) {
      await tab.go(none);
      await tab.holds((number) => {
        const told = document.getElementById('unknown-text');
        return told.checkVisibility() && told.textContent.includes(number);
      }, none);
    }
  });

  for (const [size, view] of /** @type {const} */ ([[PROJECTOR, '1.5'], [PROJECTOR, 'compare'], [PROJECTOR, '9.9'], [PHONE, '2.3'], [PHONE, 'compare']])) {
    it(`can be read by everybody at ${size.join(' × ')} in ${view}`, async () => {
      const tab = await suite.tab(`#/${view}`, size);
      await tab.holds(() => document.querySelectorAll('#chapters a').length > 30);
      assert.ok(!(await tab.isWide()));
      await tab.everybodyCanUseIt();
      await tab.screenshot(`page-${view}-${size[0]}`);
      tab.nothingWentWrong();
    });
  }

  it('keeps a wrong number and runs nothing, and runs a right one to its verdict', async () => {
    const tab = await suite.tab('#/1.3?threads=20&loops=5&hold_ms=5');
    await tab.shows('1.3');
    for (const [field, wrong] of [['threads', '0'], ['threads', '1e9'], ['loops', '999999999999'], ['hold_ms', '60001'], ['count', 'all']]) {
      const right = await tab.value(`[name=${field}]`);
      await tab.fill(`[name=${field}]`, wrong);
      await tab.click('#run');
      await tab.reads(`#${field}-wrong`, /./);
      assert.equal(await tab.value(`[name=${field}]`), wrong);
      await tab.fill(`[name=${field}]`, right);
    }
    assert.equal((await fetch(`${suite.at.http}/runs/current`)).status, 204, 'no wrong number was run');

    await tab.canRun();
    await tab.press('#run');
    await tab.reads('#say', /^对不上/);
    assert.equal(await tab.count('#figures.stale'), 0, 'the result is of these settings');
    await tab.fill('[name=loops]', '6');
    await tab.has('#figures.stale');
    tab.nothingWentWrong();
  });

  it('sells exactly to two who buy at one instance (1.5), and not at three', async () => {
    for (const [target, meet] of /** @type {const} */ ([['one', false], ['three', true]])) {
      const tab = await suite.tab(`#/1.5?target=${target}&hold_ms=500`);
      await tab.shows('1.5');
      await tab.has('#buy-two[aria-disabled=false]');
      let twice = 0;
      await until(async () => {
        await tab.click('#buy-two');
        await tab.has('#answers[aria-busy=false] li');
        twice = await tab.count('#answers .twice');
        // nginx takes turns: of two requests that leave together, others may come between.
        return twice > 0 || !meet;
      }, 'both have bought');
      if (!meet) assert.equal(twice, 0, 'at one instance no number is left behind twice');
      tab.nothingWentWrong();
    }
  });

  it('sells nothing before an instance has answered: which is the first is not known', async () => {
    const tab = await suite.tab('favicon.svg');
    /** @type {import('puppeteer-core').HTTPRequest[]} */
    const held = [];
    let holds = true;
    await tab.page.setRequestInterception(true);
    tab.page.on('request', (request) => {
      if (holds && request.url().includes('/health/ready')) held.push(request);
      else void request.continue();
    });
    await tab.page.goto(`${suite.at.http}/#/1.5?target=one`, { waitUntil: [] });
    await tab.has('body:not([data-first]) #buy-two');
    assert.equal(await tab.count('#buy[aria-disabled=false], #buy-two[aria-disabled=false], #reset[aria-disabled=false]'), 0);
    assert.equal(held.length, 1);
    holds = false;
    await Promise.all(held.map((request) => request.continue()));
    await tab.has('#buy-two[aria-disabled=false]');
    tab.nothingWentWrong();
  });

  it('opens what shows the claim of a lesson, and folds the rest', async () => {
    const tab = await suite.tab('#/2.4');
    for (const [id, load, typed, none] of /** @type {const} */ ([
      ['2.4', true, false, false], ['1.3', false, false, false], ['2.10.1.owner', false, true, false], ['002.oversold', false, true, false],
      ['3.7.1.object', false, false, true], ['2.4.2', false, false, true],
    ])) {
      await tab.go(id);
      await tab.shows(id);
      await tab.holds((wanted) => {
        const open = (/** @type {string} */ at) => document.querySelector(at).checkVisibility();
        return JSON.stringify(['#settings', '#terminals', '#no-button'].map(open)) === wanted;
      }, JSON.stringify([load, typed, none]));
    }
    await tab.page.goto(`${suite.at.http}/#/compare`);
    await tab.has('#compare');
    await tab.holds(() => document.getElementById('settings').checkVisibility());
    tab.nothingWentWrong();
  });

  it('types the lines of a lesson where the servers are, and shows what they print', async () => {
    const tab = await suite.tab('#/2.4.4.2');
    for (const id of ['2.4.4.2', '3.7.6']) {
      await tab.go(id);
      await tab.shows(id);
      await tab.has('#terminals li');
      const lines = await tab.count('#terminals li');
      if (!(await tab.evaluate(() => document.getElementById('type-all').checkVisibility()))) await tab.click('#by-hand summary');
      await tab.press('#type-all');
      await tab.holds((many) => [...document.querySelectorAll('.printed p')].filter((p) => p.textContent.includes('和上面说的一样')).length === many, lines);
    }
    await tab.screenshot('typed-3.7.6');
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });

  it('compares the rates that a claim compares by one press, each in its rounds, and from one connection to many', async () => {
    /** @type {import('../../static/js/run/rate-rounds.js').Rates} */
    const pair = { first: { strategy: 'a', target: 'one', threads: 1 }, second: { strategy: 'b', target: 'one', threads: 1 }, least: 2 };
    for (const [a, says] of /** @type {const} */ ([[[30, 21, 40], 'holds'], [[30, 19, 40], 'apart'], [[15, 19, 10], 'not']])) {
      assert.equal(judge(pair, new Map([['a one 1', [...a]], ['b one 1', [10, 10, 10]]])).says, says);
    }
    const tab = await suite.tab('#/1.7.2.mutex');
    await tab.shows('1.7.2.mutex');
    // So many requests as it takes to see it are enough.
    await tab.evaluate(() => {
      const whole = fetch;
      window.fetch = (at, how) => whole(at, at === 'runs' && how?.body ? { ...how, body: JSON.stringify({ ...JSON.parse(String(how.body)), loops: 1 }) } : how);
    });
    await tab.press('#rates-run');
    await tab.has('#rates-picture [data-says]');
    await tab.has('#rates-run:not(.cancel)[aria-disabled=false]');
    await tab.counts('#rates-picture .bound', 1);
    await tab.counts('#rates-picture .rate', 2);
    await tab.press('#rates-curve');
    await tab.counts('#rates-picture circle', 12);
    await tab.screenshot('rates-1.7.2.mutex');
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });

  it('draws the herd (3.4.2) as a bar for each release, and with its cure flat', async () => {
    const tab = await suite.tab('#/3.4.2.herd');
    await tab.shows('3.4.2.herd');
    await tab.press('#race-run');
    await tab.has('#race-why:not(.later)');
    for (const [half, sum] of /** @type {const} */ ([[1, 1275], [2, 50]])) {
      const woken = await tab.page.$$eval(`#race-woken figure:nth-of-type(${half}) rect`, (bars) => bars.map((bar) => Number(bar.getAttribute('height'))));
      assert.equal(woken.length, 51);
      assert.equal(woken.reduce((all, one) => all + one), sum);
      assert.equal(woken[0] > woken[25], half === 1, 'it falls');
    }
    await tab.screenshot('herd');
    tab.nothingWentWrong();
  });
});
