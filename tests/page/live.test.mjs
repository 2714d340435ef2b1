/** Runs on the page while they go on: their lanes, several side by side, and who comes between. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, json, lab, send } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe('a run on the page', () => {
  const suite = lab();

  // A lane for each request, in the order in which they got in. One that reads and then writes only what still stands has tries in
  // vain; a single statement has none.
  it('is drawn with overlaps where more than one are inside, and with the tries that were in vain', async () => {
    const tab = await suite.tab('#/1.3');
    for (const { slug, kind, overlaps, vain } of [
      { slug: 'none', kind: 'inside', overlaps: true, vain: false },
      { slug: 'redis-lock', kind: 'inside', overlaps: false, vain: false },
      { slug: 'version-cas', kind: 'shared', overlaps: false, vain: true },
      { slug: 'redis-watch', kind: 'shared', overlaps: false, vain: true },
      { slug: 'single-update', kind: 'shared', overlaps: false, vain: false },
    ]) {
      await tab.go(`${slug}?threads=5&loops=2&hold_ms=100`);
      await tab.holds((name) => document.getElementById('needs').textContent.startsWith(`${name} ·`), slug);
      await run(tab);
      await tab.reads('#say', /对不上|分毫不差/);
      await tab.counts(`#run-lanes [data-kind=${kind}]`, 10);
      assert.equal((await tab.count('#run-lanes [data-kind=overlap]')) > 0, overlaps, slug);
      assert.equal((await tab.count('#run-lanes [data-kind=vain]')) > 0, vain, slug);
      assert.ok(await tab.evaluate((bars) => {
        const at = [...document.querySelectorAll(bars)].map((bar) => bar.getBoundingClientRect());
        return at.every((box, i) => i === 0 || (box.left >= at[i - 1].left && box.top > at[i - 1].top));
      }, `#run-lanes [data-kind=${kind}]`), `${slug}: in the order of their entry`);
      await showLanes(tab, `run-lanes-${slug}-1280`);
      if (slug === 'none' || slug === 'version-cas') await tab.everybodyCanUseIt();
    }
    tab.nothingWentWrong();
  });

  it('of many requests is drawn as a sample, and is said to be one', async () => {
    const tab = await suite.tab('#/none?threads=50&loops=10');
    await run(tab);
    await tab.reads('#run-lanes-note', /500 个请求里只画 20 个/);
    await tab.has('#run-lanes-fold:not([open])');
    await tab.click('#run-lanes-fold > summary');
    await tab.counts('#run-lanes [data-kind=inside]', 20);
    await showLanes(tab, 'run-lanes-sample-1280');
    tab.nothingWentWrong();
  });

  it('is drawn on a phone', async () => {
    const tab = await suite.tab('#/none?threads=5&loops=2&hold_ms=100', PHONE);
    await run(tab);
    await tab.counts('#run-lanes [data-kind=inside]', 10);
    await showLanes(tab, 'run-lanes-360');
    assert.ok(!(await tab.isWide()));
  });

  it('of two strategies has one instance and three side by side, and its file can be read', async () => {
    const tab = await suite.tab('#/compare?threads=20&loops=10');
    await tab.holds(() => document.querySelectorAll('#pick [type=checkbox]').length > 30);
    // What is downloaded, the test reads.
    await tab.evaluate(`window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return '#'; }`);
    // Each press makes the boxes again.
    await tab.page.$$eval('#pick [type=checkbox]', (boxes) => {
      for (const { value } of /** @type {HTMLInputElement[]} */ (boxes)) {
        /** @type {HTMLInputElement} */
        const box = document.querySelector(`#pick [value='${value}']`);
        if (box.checked !== ['none', 'select-for-update'].includes(value)) box.click();
      }
    });
    await tab.canRun();
    // The last one is refused once, as while another instance ends a run: that goes by, and is not waited for as one that is seen from here.
    await tab.evaluate(() => {
      const whole = fetch;
      let starts = 0;
      window.fetch = (at, how) => {
        if (at === 'runs' && how?.method === 'POST') starts += 1;
        if (starts !== 4 || at !== 'runs') return whole(at, how);
        starts += 1;
        return Promise.resolve(Response.json({ status: 409 }, { status: 409 }));
      };
    });
    await tab.press('#run');
    await tab.counts('#multiples td .multiple', 4);
    await tab.reads('#run', /^依次跑$/);
    const red = await tab.page.$$eval('#multiples tr', (rows) => rows.map((row) => row.querySelector('td.red') != null));
    assert.deepEqual(red, [true, false], 'oversold');
    await tab.fill('#series-name', '周一');
    await tab.click('#series-json');
    await tab.holds('window.saved.length === 1');
    const file = JSON.parse(await tab.evaluate('window.saved[0]'));
    assert.equal(file.name, '周一');
    assert.deepEqual(
      file.rows.map(({ strategy, target }) => [strategy, target]),
      [['none', 'one'], ['none', 'three'], ['select-for-update', 'one'], ['select-for-update', 'three']],
    );
    await tab.screenshot('compare-1280');
    tab.nothingWentWrong();
  });

  // Whoever comes while a race is played sees it from its beginning, and can end it. This one stands until somebody asks for its next step.
  it('of a race is joined after a reload and from another window', async () => {
    const started = await fetch(`${suite.at.http}/replays/2.3?pace=step`, { method: 'POST' });
    assert.equal(started.status, 202);
    const other = await suite.tab('#/1.3');
    await other.reads('#race-idle', /^正在演第 2\.3 课/);
    await other.press('#race-idle a');
    const tab = await suite.tab('#/2.3');
    await tab.has('#race-run.cancel');
    await tab.page.reload();
    const { id } = await started.json();
    assert.equal((await fetch(`${suite.at.http}/replays/${id}/step`, { method: 'POST' })).status, 204);
    for (const window of [tab, other]) {
      await window.shows('2.3');
      await window.has('#race-run.cancel');
      await window.has('#race-flaw [data-kind=inside]');
    }
    await other.key('Escape');
    for (const window of [tab, other]) {
      await window.has('#race-run:not(.cancel)[aria-disabled=false]');
      window.nothingWentWrong();
    }
  });

  it('comes to its verdict although others reset, buy or start another one meanwhile, and are refused', async () => {
    const { http } = suite.at;
    const tab = await suite.tab('#/select-for-update?threads=10&loops=10&hold_ms=150');
    await run(tab);
    for (const id of ['reset', 'buy', 'buy-two']) await tab.has(`#${id}[aria-disabled=true]`);
    await tab.reads('#shelf-note', /正在跑/);
    for (const id of ['reset', 'buy', 'buy-two']) await tab.click(`#${id}`);
    // A window that is opened while it goes on is told of it at once, and not when it asks next.
    const other = await suite.tab('#/none?threads=5&loops=2');
    await other.reads('#chapter', /./);
    await other.reads('#say', /^另一场正在跑：select-for-update/);
    await other.click('#run');

    assert.equal((await send(`${http}/stock`, { count: 7 }, 'PUT')).status, 200);
    const second = await send(`${http}/runs`, { strategy: 'none', threads: 1, loops: 1 });
    assert.equal(second.status, 409);
    assert.equal((await second.json()).run.strategy, 'select-for-update');
    await tab.reads('#say', /^分毫不差/);
    assert.equal(await tab.text('#sold'), '100');
    assert.equal((await json(`${http}/runs/current`)).row.strategy, 'select-for-update');
    tab.nothingWentWrong();
  });
});

/** Starts a run of what is on show. @param {Tab} tab */
async function run(tab) {
  await tab.canRun();
  await tab.press('#run');
  await tab.holds(() => !document.getElementById('say').textContent.includes('还没跑'));
}

/** @param {Tab} tab @param {string} name */
async function showLanes(tab, name) {
  await tab.evaluate(() => document.getElementById('run-lanes-part').scrollIntoView({ behavior: 'instant' }));
  await tab.screenshot(name);
}
