/** How light the page is: what is transferred until its lesson can be used and its race is played, and at a reload, and by forty at once. */

import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, it } from 'node:test';
import { PHONE, ownLab, waitUntil } from './support.mjs';

/** The most until the lesson can be used, and until its race is played. No times, which depend on the machine. */
const USABLE = { requests: 10, bytes: 40_000 };
// Of these about 13 kB are the answers to all commands of the race, the table of typed lines, and the questions of the lessons.
const WHOLE = { requests: 20, bytes: 120_000 };
/** The most files that a reload asks about. */
const RELOAD_REVALIDATIONS = 5;
/** The files have come. A page goes on asking the service, so not all of its requests need have an answer. */
const QUIET = { concurrency: 2 };
/** A class. */
const BROWSERS = 40;

/** Whether the lesson can be used, and the rest of the page has not come. */
const isUsableEarly = () => document.body.dataset.first != null && document.querySelector('#race-run[aria-disabled="false"]')?.checkVisibility() && document.getElementById('claim').textContent !== '';

describe('the light page', () => {
  const suite = ownLab();

  for (const address of ['', '#/2.3']) {
    it(`is usable early at "${address}", and keeps an early press`, async (test) => {
      const tab = await suite.openTab('favicon.svg', PHONE);
      const line = await tab.page.createCDPSession();
      await line.send('Network.enable');
      await line.send('Network.emulateNetworkConditions', { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 });
      const came = { requests: 0, bytes: 0 };
      line.on('Network.loadingFinished', ({ encodedDataLength }) => {
        came.requests += 1;
        came.bytes += encodedDataLength;
      });
      // The page itself looks: the browser's tools may not answer while it loads.
      await tab.page.evaluateOnNewDocument(`const early = setInterval(() => { if (document.body && (${isUsableEarly})()) { window.wasUsableEarly = true; clearInterval(early); } }, 20);`);
      const begun = performance.now();
      await tab.page.goto(`${suite.at.http}/${address}`, { waitUntil: [] });
      const seconds = () => ((performance.now() - begun) / 1000).toFixed(1);
      await tab.waitFor('window.wasUsableEarly');
      const usable = { ...came };
      test.diagnostic(`usable after ${seconds()} s: ${JSON.stringify(usable)}`);
      await tab.screenshot(`first-${address.length}`);
      assert.ok(usable.requests <= USABLE.requests && usable.bytes <= USABLE.bytes, JSON.stringify(usable));
      await tab.assertAccessible();
      await tab.press('#race-guess button');
      await tab.press('#race-run');
      await tab.waitForElement('#race-flaw svg');
      test.diagnostic(`played after ${seconds()} s: ${JSON.stringify(came)}`);
      assert.equal(await tab.count('#race-guess [aria-pressed="true"]'), 1, 'the guess is kept');
      assert.ok(came.requests <= WHOLE.requests && came.bytes <= WHOLE.bytes, JSON.stringify(came));
      tab.assertNoErrors();
    });
  }

  for (const page of ['', 'class.html', 'mine.html', 'limits.html', 'cache.html', 'glossary.html', 'errata.html']) {
    it(`asks about few files when "${page}" is loaded again`, async (test) => {
      const tab = await suite.openTab(page);
      await tab.page.waitForNetworkIdle(QUIET);
      tab.clearAnswers();
      await tab.page.reload();
      await tab.page.waitForNetworkIdle(QUIET);
      const again = tab.statusesOf('/').filter((status) => status === 304);
      test.diagnostic(`${again.length} of ${tab.statusesOf('/').length} answers are 304`);
      assert.ok(again.length <= RELOAD_REVALIDATIONS, `${again.length} files are asked about`);
      tab.assertNoErrors();
    });
  }

  it('comes with its modules one by one where asked', async () => {
    const tab = await suite.openTab('?modules#/2.3');
    await tab.waitForLesson('2.3');
    assert.deepEqual(tab.statusesOf('/js/race/race.js'), [200]);
    assert.deepEqual(tab.statusesOf('/bundle/'), []);
    tab.assertNoErrors();
  });

  it('has every rule of its style sheets without their comments', async () => {
    const tab = await suite.openTab('favicon.svg');
    for (const page of ['', 'class.html', 'mine.html', 'limits.html', 'cache.html', 'glossary.html', 'errata.html']) {
      const sheets = async (/** @type {string} */ address) => {
        const html = await fetchText(`${suite.at.http}/${address}`);
        const paths = [...html.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, path]) => path);
        return (await Promise.all(paths.map((path) => fetchText(`${suite.at.http}/${path}`)))).join('');
      };
      const [served, source] = [await sheets(page), await sheets(`${page}?modules`)];
      assert.ok(!served.includes('/*') && source.includes('/*'), page);
      const [rules, wanted] = [await tab.evaluate(rulesOf, served), await tab.evaluate(rulesOf, source)];
      assert.ok(wanted.length > 0, page);
      assert.deepEqual(rules, wanted, page);
    }
  });

  it('loads the scheduler when it is opened', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    assert.deepEqual(tab.statusesOf('/scheduler-'), []);
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-buttons [data-key=A]');
    assert.deepEqual(tab.statusesOf('/scheduler-'), [200]);
    assert.deepEqual(tab.statusesOf('/js/'), []);
    tab.assertNoErrors();
  });

  it('is sent whole to forty browsers at once', async (test) => {
    const begun = performance.now();
    const pages = await Promise.all(Array.from({ length: BROWSERS }, async () => ({ files: await fetchPage(suite.at.http), ms: performance.now() - begun })));
    test.diagnostic(`after ${pages.map(({ ms }) => Math.round(ms)).sort((one, other) => one - other).join(' ')} ms`);
    for (const { files } of pages) assert.deepEqual(files, pages[0].files);
  });

  it('is sent by nginx while no instance lives', async () => {
    const before = await fetchPage(suite.at.http);
    for (const { pid } of suite.at.instances) process.kill(pid, 'SIGKILL');
    for (const { url } of suite.at.instances) await waitUntil(() => fetch(url).then(() => false, () => true), `${url} is dead`);
    assert.deepEqual(await fetchPage(suite.at.http), before);
  });
});

/** The rules of a style sheet as the browser understands them. @param {string} style @returns {string[]} */
function rulesOf(style) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(style);
  return [...sheet.cssRules].map((rule) => rule.cssText);
}

/** The page, its files, and the scripts that follow. @param {string} base */
async function fetchPage(base) {
  const page = await fetchText(`${base}/`);
  const files = [...page.matchAll(/"(bundle\/[^"]+)"/g)].map(([, path]) => path);
  assert.equal(files.length, 3, 'a script, a style sheet and an icon');
  const fetched = await Promise.all(files.map((path) => fetchText(`${base}/${path}`)));
  for (const name of ['page', 'scheduler']) {
    const [later] = new RegExp(`/${name}-\\w+\\.js`).exec(fetched.join('')) ?? [];
    fetched.push(await fetchText(`${base}/bundle${later}`));
  }
  return [page, ...fetched];
}

/** @param {string} url */
async function fetchText(url) {
  const answer = await fetch(url);
  assert.equal(answer.status, 200, url);
  return answer.text();
}
