/** What a browser may cache: the same headers by nginx and by a lone instance, and what a real browser does with them. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { lab, waitUntil } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */
/** What was transferred for each picture, and what the page says of it. @typedef {Record<string, {wire: (number | null)[], said: string}>} Visit */

/** What a second visit transfers. */
const SECOND_VISIT_STATUS = { fresh: null, etag: 304, 'last-modified': 304, never: 200 };

/** These headers tell who answered and when; and nginx alone serves ranges and compresses. */
const SERVER_HEADERS = ['server', 'date', 'connection', 'x-instance', 'x-request-id', 'accept-ranges', 'vary'];

describe('what a browser may keep', () => {
  const suite = lab(['--instances=0'], { RUST_LOG: 'oversell=debug' });
  /** How often a client without a cache has asked the instance for each file. */
  let asClient = 0;

  it('nginx and an instance send the same headers', async () => {
    const files = [...Object.keys(SECOND_VISIT_STATUS).map((state) => `cache/${state}.svg`), 'limits.html', 'cache.html', 'index.html'];
    const [, bundle] = /src="(bundle\/[^"]+)"/.exec(await (await fetch(`${suite.at.http}/`)).text());
    files.push(bundle);
    for (const file of files) {
      const whole = await fetchHeaders(suite.at.http, file);
      const conditions = [{}, { 'if-none-match': whole.etag ?? '"none"' }, { 'if-modified-since': whole['last-modified'] ?? '"none"' }];
      asClient = conditions.length;
      for (const condition of conditions) {
        assert.deepEqual(await fetchHeaders(suite.at.http, file, condition), await fetchHeaders(suite.at.instances[0].url, file, condition), file);
      }
    }
  });

  it('a browser requests again only what the headers say', async () => {
    for (const base of [suite.at.http, suite.at.instances[0].url]) {
      const tab = await suite.openTab('cache.html', undefined, base);
      const first = await visitPage(tab);
      await tab.page.goto('about:blank');
      await tab.page.goto(`${base}/cache.html`);
      checkSecondVisit(first, await visitPage(tab));
      // The twin: a browser whose cache is empty at its second visit, too.
      const forgetful = await visitPage(await suite.openTab('cache.html', undefined, base));
      assert.throws(() => checkSecondVisit(first, forgetful));
    }
    // Two visits with the browser's cache and one without; before them a client without any.
    const log = `${suite.folder}/instance-${suite.at.instances[0].name}.log`;
    for (const [state, second] of Object.entries(SECOND_VISIT_STATUS)) {
      const asked = async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes(`/cache/${state}.svg`) && line.includes('answered')).length;
      const wanted = asClient + (second === null ? 2 : 3);
      await waitUntil(async () => (await asked()) >= wanted, `the instance is asked ${wanted} times for ${state}`);
      assert.equal(await asked(), wanted, state);
    }
  });
});

/** What the page says of each picture, once all are there. @param {Tab} tab @returns {Promise<Visit>} */
async function visitPage(tab) {
  /** @type {Visit} */
  const visit = {};
  for (const state of Object.keys(SECOND_VISIT_STATUS)) {
    const path = `/cache/${state}.svg`;
    await tab.waitForText(`#${state}-said`, /./);
    await waitUntil(() => tab.statusesOf(path).length > 0, `an answer for ${state}`);
    visit[state] = { wire: tab.statusesOf(path), said: await tab.text(`#${state}-said`) };
  }
  tab.clearAnswers();
  return visit;
}

/** @param {Visit} first @param {Visit} second */
function checkSecondVisit(first, second) {
  for (const [state, then] of Object.entries(SECOND_VISIT_STATUS)) {
    for (const [{ wire, said }, status] of /** @type {const} */ ([[first[state], 200], [second[state], then]])) {
      assert.deepEqual(wire, [status], state);
      assert.match(said, status === null ? /没有问/ : new RegExp(String(status)), state);
    }
  }
}

/** Status and headers. @param {string} base @param {string} file @param {Record<string, string>} [conditions] @returns {Promise<Record<string, string>>} */
async function fetchHeaders(base, file, conditions = {}) {
  const answer = await fetch(`${base}/${file}`, { headers: { 'accept-encoding': 'identity', ...conditions } });
  await answer.arrayBuffer();
  const told = [...answer.headers].filter(([name]) => !SERVER_HEADERS.includes(name));
  return Object.fromEntries([['status', String(answer.status)], ...told]);
}
