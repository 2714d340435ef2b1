/** Runs on the page while they are active: their lanes, several side by side, and requests of others. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, itInSoak, lab, sendJson } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe('a run on the page', () => {
  const suite = lab();

  // A lane for each request, by entry. A read followed by a conditional write has attempts in vain; a single statement has none.
  it('is drawn with overlaps and with attempts in vain', async () => {
    const tab = await suite.openTab('#/1.3');
    for (const { slug, kind, overlaps, vain } of [
      { slug: 'none', kind: 'inside', overlaps: true, vain: false },
      { slug: 'redis-lock', kind: 'inside', overlaps: false, vain: false },
      { slug: 'version-cas', kind: 'shared', overlaps: false, vain: true },
      { slug: 'redis-watch', kind: 'shared', overlaps: false, vain: true },
      { slug: 'single-update', kind: 'shared', overlaps: false, vain: false },
    ]) {
      await tab.go(`${slug}?threads=5&loops=2&hold_ms=100`);
      await tab.waitFor((name) => document.getElementById('needs').textContent.startsWith(`${name} ·`), slug);
      await startRun(tab);
      await tab.waitForText('#say', /会再卖给别人|分毫不差/);
      await tab.waitForCount(`#run-lanes [data-kind=${kind}]`, 10);
      assert.equal((await tab.count('#run-lanes [data-kind=overlap]')) > 0, overlaps, slug);
      assert.equal((await tab.count('#run-lanes [data-kind=vain]')) > 0, vain, slug);
      assert.ok(await tab.evaluate((bars) => {
        const at = [...document.querySelectorAll(bars)].map((bar) => bar.getBoundingClientRect());
        return at.every((box, i) => i === 0 || (box.left >= at[i - 1].left && box.top > at[i - 1].top));
      }, `#run-lanes [data-kind=${kind}]`), `${slug}: in the order of their entry`);
      await showLanes(tab, `run-lanes-${slug}-1280`);
      if (slug === 'none' || slug === 'version-cas') await tab.assertAccessible();
    }
    tab.assertNoErrors();
  });

  it('of many requests is drawn as a sample', async () => {
    const tab = await suite.openTab('#/none?threads=50&loops=10');
    await startRun(tab);
    await tab.waitForText('#run-lanes-note', /500 个请求里只画 20 个/);
    await tab.waitForElement('#run-lanes-fold:not([open])');
    await tab.click('#run-lanes-fold > summary');
    await tab.waitForCount('#run-lanes [data-kind=inside]', 20);
    await showLanes(tab, 'run-lanes-sample-1280');
    tab.assertNoErrors();
  });

  it('is drawn on a phone', async () => {
    const tab = await suite.openTab('#/none?threads=5&loops=2&hold_ms=100', PHONE);
    await startRun(tab);
    await tab.waitForCount('#run-lanes [data-kind=inside]', 10);
    await showLanes(tab, 'run-lanes-360');
    assert.ok(!(await tab.isWiderThanWindow()));
  });

  it('of two strategies compares targets and can be downloaded', async () => {
    const tab = await suite.openTab('#/compare?threads=20&loops=10');
    await tab.waitFor(() => document.querySelectorAll('#pick [type=checkbox]').length > 30);
    // The test reads the download.
    await tab.evaluate(`window.saved = []; URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return '#'; }`);
    // Each press replaces the boxes.
    await tab.page.$$eval('#pick [type=checkbox]', (boxes) => {
      for (const { value } of /** @type {HTMLInputElement[]} */ (boxes)) {
        /** @type {HTMLInputElement} */
        const box = document.querySelector(`#pick [value='${value}']`);
        if (box.checked !== ['none', 'select-for-update'].includes(value)) box.click();
      }
    });
    await tab.waitUntilRunnable();
    // The last run is refused once, as if as many as may wait did so: the page tries again.
    await tab.evaluate(() => {
      const whole = fetch;
      let starts = 0;
      window.fetch = (at, how) => {
        if (at === 'runs' && how?.method === 'POST') starts += 1;
        if (starts !== 4 || at !== 'runs') return whole(at, how);
        starts += 1;
        return Promise.resolve(Response.json({ status: 429 }, { status: 429 }));
      };
    });
    await tab.press('#run');
    await tab.waitForCount('#multiples td .multiple', 4);
    await tab.waitForText('#run', /^依次跑$/);
    const red = await tab.page.$$eval('#multiples tr', (rows) => rows.map((row) => row.querySelector('td.red') != null));
    assert.deepEqual(red, [true, false], 'oversold');
    await tab.fill('#series-name', '周一');
    await tab.click('#series-json');
    await tab.waitFor('window.saved.length === 1');
    const file = JSON.parse(await tab.evaluate('window.saved[0]'));
    assert.equal(file.name, '周一');
    assert.deepEqual(
      file.rows.map(({ strategy, target }) => [strategy, target]),
      [['none', 'one'], ['none', 'three'], ['select-for-update', 'one'], ['select-for-update', 'three']],
    );
    // The report is written by a script that comes at the press.
    await tab.click('#series-html');
    await tab.waitFor('window.saved.length === 2');
    const report = await tab.evaluate('window.saved[1]');
    assert.ok(report.startsWith('<!doctype html>') && report.includes('select-for-update'), report.slice(0, 200));
    await tab.screenshot('compare-1280');
    tab.assertNoErrors();
  });

  // A visitor who comes back during a race sees it from its beginning and can cancel it. This one pauses until its next step is asked for.
  it('of a race is joined after a reload and in another window', async () => {
    const other = await suite.openTab('#/1.1');
    const own = { method: 'POST', headers: { 'x-visitor': await other.visitor() } };
    const started = await fetch(`${suite.at.http}/replays/2.3?pace=step`, own);
    assert.equal(started.status, 202);
    await other.page.reload();
    await other.waitForText('#race-idle', /^正在演 2\.3/);
    await other.press('#race-idle a');
    const tab = await other.openWindow(`${suite.at.http}/#/2.3`);
    await tab.waitForElement('#race-run.cancel');
    await tab.page.reload();
    const { id } = await started.json();
    assert.equal((await fetch(`${suite.at.http}/replays/${id}/step`, own)).status, 204);
    for (const window of [tab, other]) {
      await window.waitForLesson('2.3');
      await window.waitForElement('#race-run.cancel');
      await window.waitForElement('#race-flaw [data-kind=inside]');
    }
    // Another visitor sees nothing of it.
    const stranger = await suite.openTab('#/2.3');
    await stranger.waitForElement('#race-run:not(.cancel)[aria-disabled=false]');
    await other.pressKey('Escape');
    for (const window of [tab, other]) {
      await window.waitForElement('#race-run:not(.cancel)[aria-disabled=false]');
      window.assertNoErrors();
    }
  });

  itInSoak('is watched by all if the class has guessed it', async () => {
    const desk = await suite.openTab('#/1.1');
    await desk.waitForLesson('1.1');
    const student = await suite.openTab('#/2.3');
    await student.waitForLesson('2.3');
    await desk.press('#race-class');
    await desk.waitForText('#race-class', /手机在猜/);
    await desk.press('#race-run');
    await student.waitForText('#race-idle', /^全班在看 1\.1/);
    await student.press('#race-idle a');
    await student.waitForElement('#race-run.cancel');
    // To leave cancels nothing.
    await student.pressKey('Escape');
    await student.waitForElement('#race-run:not(.cancel)[aria-disabled=false]');
    await desk.waitForElement('#race-why:not(.later)');
    assert.doesNotMatch(await desk.text('#race'), /没有跑成/);
    desk.assertNoErrors();
    student.assertNoErrors();
  });

  itInSoak('reaches its verdict while other visitors wait for their turn', async () => {
    const { http } = suite.at;
    const tab = await suite.openTab('#/select-for-update?threads=10&loops=10&hold_ms=150');
    await startRun(tab);
    for (const id of ['reset', 'buy', 'buy-two']) await tab.waitForElement(`#${id}[aria-disabled=true]`);
    await tab.waitForText('#shelf-note', /正在跑/);
    for (const id of ['reset', 'buy', 'buy-two']) await tab.click(`#${id}`);
    const other = await suite.openTab('#/none?threads=5&loops=2');
    await startRun(other);
    await other.waitForText('#say', /^排队：前面还有 1 场压测/);

    assert.equal((await sendJson(`${http}/stock`, { count: 7 }, 'PUT')).status, 200);
    const third = await sendJson(`${http}/runs`, { strategy: 'none', threads: 1, loops: 1 });
    const { id, position } = await third.json();
    assert.deepEqual([third.status, position], [202, 2]);
    assert.equal((await fetch(`${http}/runs/${id}`, { method: 'DELETE' })).status, 202);
    await tab.waitForText('#say', /^分毫不差/);
    assert.equal(await tab.text('#sold'), '100');
    await other.waitForText('#say', /会再卖给别人|分毫不差/);
    assert.equal(await other.text('#sold'), '10');
    tab.assertNoErrors();
    other.assertNoErrors();
  });
});

/** Starts a run of the lesson on show. @param {Tab} tab */
async function startRun(tab) {
  await tab.waitUntilRunnable();
  await tab.press('#run');
  await tab.waitFor(() => !document.getElementById('say').textContent.includes('还没跑'));
}

/** @param {Tab} tab @param {string} name */
async function showLanes(tab, name) {
  await tab.evaluate(() => document.getElementById('run-lanes-part').scrollIntoView({ behavior: 'instant' }));
  await tab.screenshot(name);
}
