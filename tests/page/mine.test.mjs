/** The page of one's own lock. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, PROJECTOR, lab } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe("the page of one's own lock", () => {
  const suite = lab();

  it("grades the course's first lock as the course says, with the race that broke it, and its last one better", async () => {
    const tab = await suite.tab('mine.html');
    await tab.reads('#fill [aria-pressed=true]', /^2\.1$/);
    assert.match(await tab.value('[name=acquire]'), /setnx/, "it begins with the course's first");
    assert.deepEqual(await graded(tab, '2.2'), { exclusion: 'passed', 'holder-dies': 'passed', 'late-release': 'failed', 'foreign-release': 'failed', 're-entry': 'failed', 'long-job': 'failed', fairness: 'failed' });
    const late = '#late-release > details';
    await tab.has(`${late}[open] svg.timeline [data-kind=overlap]`);
    await tab.reads(`${late} svg.timeline`, /A 删掉了 B 的锁/);
    await tab.screenshot('mine-2.2-1280');
    await tab.everybodyCanUseIt();
    assert.deepEqual(await graded(tab, '2.1'), { exclusion: 'passed', 'holder-dies': 'failed', 'late-release': 'untried', 'foreign-release': 'failed', 're-entry': 'failed', 'long-job': 'untried', fairness: 'failed' });
    await tab.has('#holder-dies > details[open] svg.timeline');
    assert.deepEqual(await graded(tab, '2.7'), { exclusion: 'passed', 'holder-dies': 'passed', 'late-release': 'passed', 'foreign-release': 'passed', 're-entry': 'passed', 'long-job': 'passed', fairness: 'failed' });
    assert.equal(await tab.count('#grades svg.timeline'), 1, 'of what holds there is no race');
    await tab.press('#en');
    await tab.reads('#fairness .seen', /C happened to ask first/);
    tab.nothingWentWrong();
  });

  it('sells with it on three instances: exactly with a lock of the course, and not with one that lets all in', async () => {
    const tab = await suite.tab('mine.html');
    await fill(tab, '2.5');
    for (const [acquire, says, overlaps] of /** @type {const} */ ([[null, /^分毫不差/, false], ['return 1', /^对不上/, true]])) {
      if (acquire) await tab.fill('[name=acquire]', acquire);
      await tab.press('#sell');
      await tab.reads('#say', says);
      await tab.counts('#run-lanes [data-kind=inside]', 20);
      assert.equal((await tab.count('#run-lanes [data-kind=overlap]')) > 0, overlaps);
    }
    await tab.screenshot('mine-sold-1280');
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
  });

  it('says of a script that may not be what is wrong, where it stands, and keeps the ones before', async () => {
    const tab = await suite.tab('mine.html');
    await fill(tab, '2.5');
    await tab.press('#save');
    await tab.reads('#said', /保存了/);
    for (const [name, script, rule] of /** @type {const} */ ([['release', 'while true do end', /while is not allowed/], ['renew', 'return (', /redis does not understand it/], ['acquire', ' ', /must not be empty/]])) {
      await fill(tab, '2.7');
      await tab.fill(`[name=${name}]`, script);
      await tab.press('#grade');
      await tab.reads(`#${name}-wrong`, rule);
      await tab.has(`[name=${name}][aria-invalid=true]:focus`);
      assert.equal(await tab.count('[aria-invalid=true]'), 1);
      assert.equal(await tab.count('#grades .none'), 7, 'nothing is graded');
    }
    await tab.everybodyCanUseIt();
    await tab.page.reload();
    await tab.reads('#fill [aria-pressed=true]', /^2\.5$/);
    // A script that fails only where it runs.
    await tab.fill('[name=acquire]', "return redis.call('get', KEYS[1]) < 1");
    await tab.press('#grade');
    await tab.reads('#exclusion pre', /attempt to compare/);
    tab.nothingWentWrong();
  });

  it('is reached from the lessons of its locks and from the list of pages, and from no other lesson', async () => {
    const tab = await suite.tab('#/2.5');
    for (const [id, leads] of /** @type {const} */ ([['2.1', true], ['2.5', true], ['2.7', true], ['1.5', false], ['2.10.1', false]])) {
      await tab.go(id);
      await tab.shows(id);
      assert.equal(await tab.evaluate(() => document.getElementById('own').checkVisibility()), leads, id);
    }
    await tab.go('2.7');
    await tab.shows('2.7');
    await tab.screenshot('mine-lesson-2.7');
    for (const way of ['#own', '.beside [href="mine.html"]']) {
      await tab.page.goto(await tab.evaluate((at) => document.querySelector(at).href, way));
      await tab.has('#fill button');
      await tab.page.goBack();
      await tab.shows('2.7');
    }
  });

  for (const size of [PROJECTOR, PHONE]) {
    it(`can be read by everybody at ${size.join(' × ')}, and be used by keys alone`, async () => {
      const tab = await suite.tab('mine.html', size);
      await tab.has('#fill button');
      await tab.page.focus('#fill button:nth-child(2)');
      await tab.page.keyboard.press('Enter');
      await tab.reads('#fill [aria-pressed=true]:focus', /^2\.2$/);
      await tab.page.focus('#grade');
      await tab.page.keyboard.press('Enter');
      await tab.has('#late-release.failed details[open] svg.timeline');
      await tab.page.focus('#foreign-release summary');
      await tab.page.keyboard.press('Enter');
      await tab.has('#foreign-release details[open] svg.timeline [data-kind=overlap]');
      assert.ok(!(await tab.isWide()));
      await tab.everybodyCanUseIt();
      await tab.screenshot(`mine-${size[0]}`);
      tab.nothingWentWrong();
    });
  }
});

/** Fills in a stage of the course. @param {Tab} tab @param {string} section */
async function fill(tab, section) {
  await tab.has('#fill button');
  await tab.holds((wanted) => {
    /** @type {HTMLButtonElement} */ ([...document.querySelectorAll('#fill button')].find((button) => button.textContent === wanted)).click();
    return document.querySelector('#fill [aria-pressed=true]').textContent === wanted;
  }, section);
}

/** What a stage of the course comes to. @param {Tab} tab @param {string} section */
async function graded(tab, section) {
  await fill(tab, section);
  await tab.press('#grade');
  await tab.reads('#said', /正在打分/);
  await tab.reads('#said', /^通过/);
  return tab.evaluate(() => Object.fromEntries([...document.querySelectorAll('#grades > li')].map(({ id, className }) => [id, className])));
}
