/** What a browser may keep: the same headers by nginx and by a lone instance, and what a real browser makes of them. */

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { lab, until } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */
/** What came over the wire for each picture, and what the page says of it. @typedef {Record<string, {wire: (number | null)[], said: string}>} Visit */

/** Each state, and what a second visit costs on the wire. */
const STATES = { fresh: null, etag: 304, 'last-modified': 304, never: 200 };

/** What says who answered, and when; and what nginx can do besides: parts of a file, and a compressed one. */
const OF_THE_SERVER = ['server', 'date', 'connection', 'x-instance', 'x-request-id', 'accept-ranges', 'vary'];

describe('what a browser may keep', () => {
  const suite = lab(['--instances=0'], { RUST_LOG: 'oversell=debug' });
  /** How often a client without a cache has asked the instance for each file. */
  let asClient = 0;

  it('is said in the same headers by nginx and by an instance', async () => {
    const files = [...Object.keys(STATES).map((state) => `cache/${state}.svg`), 'limits.html', 'cache.html'];
    for (const file of files) {
      const whole = await headers(suite.at.http, file);
      const conditions = [{}, { 'if-none-match': whole.etag ?? '"none"' }, { 'if-modified-since': whole['last-modified'] ?? '"none"' }];
      asClient = conditions.length;
      for (const condition of conditions) {
        assert.deepEqual(await headers(suite.at.http, file, condition), await headers(suite.at.instances[0].url, file, condition), file);
      }
    }
  });

  it('is not asked for again, or asked for whether it has changed, as the headers say', async () => {
    for (const base of [suite.at.http, suite.at.instances[0].url]) {
      const tab = await suite.tab('cache.html', undefined, base);
      const first = await visit(tab);
      await tab.page.goto('about:blank');
      await tab.page.goto(`${base}/cache.html`);
      keeps(first, await visit(tab));
      // The twin: a browser that has nothing at its second visit either.
      const forgetful = await visit(await suite.tab('cache.html', undefined, base));
      assert.throws(() => keeps(first, forgetful));
    }
    // Two visits with the browser's cache and one without; and before them a client without any.
    const log = `${suite.folder}/instance-${suite.at.instances[0].name}.log`;
    for (const [state, second] of Object.entries(STATES)) {
      const asked = async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line.includes(`/cache/${state}.svg`) && line.includes('answered')).length;
      const wanted = asClient + (second === null ? 2 : 3);
      await until(async () => (await asked()) >= wanted, `the instance is asked ${wanted} times for ${state}`);
      assert.equal(await asked(), wanted, state);
    }
  });
});

/** What this page shows of each state, once it has all its answers. @param {Tab} tab @returns {Promise<Visit>} */
async function visit(tab) {
  /** @type {Visit} */
  const visit = {};
  for (const state of Object.keys(STATES)) {
    const path = `/cache/${state}.svg`;
    await tab.reads(`#${state}-said`, /./);
    await until(() => tab.answers(path).length > 0, `an answer for ${state}`);
    visit[state] = { wire: tab.answers(path), said: await tab.text(`#${state}-said`) };
  }
  tab.forgetAnswers();
  return visit;
}

/** @param {Visit} first @param {Visit} second */
function keeps(first, second) {
  for (const [state, then] of Object.entries(STATES)) {
    for (const [{ wire, said }, status] of /** @type {const} */ ([[first[state], 200], [second[state], then]])) {
      assert.deepEqual(wire, [status], state);
      assert.match(said, status === null ? /没有问/ : new RegExp(String(status)), state);
    }
  }
}

/** Status and headers. @param {string} base @param {string} file @param {Record<string, string>} [conditions] @returns {Promise<Record<string, string>>} */
async function headers(base, file, conditions = {}) {
  const answer = await fetch(`${base}/${file}`, { headers: { 'accept-encoding': 'identity', ...conditions } });
  await answer.arrayBuffer();
  const told = [...answer.headers].filter(([name]) => !OF_THE_SERVER.includes(name));
  return Object.fromEntries([['status', String(answer.status)], ...told]);
}
