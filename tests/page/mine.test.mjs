/** The page of one's own lock. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, PROJECTOR, lab } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe("the page of one's own lock", () => {
  const suite = lab();

  it("grades the course's first lock worse than its last", async () => {
    const tab = await suite.openTab('mine.html');
    await tab.waitForText('#fill [aria-pressed=true]', /^2\.1 /);
    assert.match(await tab.value('[name=acquire]'), /setnx/, "it begins with the course's first");
    assert.deepEqual(await gradeStage(tab, '2.2'), { exclusion: 'passed', 'holder-dies': 'passed', 'late-release': 'failed', 'foreign-release': 'failed', 're-entry': 'failed', 'long-job': 'failed', fairness: 'failed' });
    const late = '#late-release > details';
    await tab.waitForElement(`${late}[open] svg.timeline [data-kind=overlap]`);
    await tab.waitForText(`${late} svg.timeline`, /A 删掉了 B 的锁/);
    await tab.screenshot('mine-2.2-1280');
    await tab.assertAccessible();
    assert.deepEqual(await gradeStage(tab, '2.1'), { exclusion: 'passed', 'holder-dies': 'failed', 'late-release': 'untried', 'foreign-release': 'failed', 're-entry': 'failed', 'long-job': 'untried', fairness: 'failed' });
    await tab.waitForElement('#holder-dies > details[open] svg.timeline');
    assert.deepEqual(await gradeStage(tab, '2.7'), { exclusion: 'passed', 'holder-dies': 'passed', 'late-release': 'passed', 'foreign-release': 'passed', 're-entry': 'passed', 'long-job': 'passed', fairness: 'failed' });
    assert.equal(await tab.count('#grades svg.timeline'), 1, 'of what holds there is no race');
    await tab.press('#en');
    await tab.waitForText('#fairness .seen', /C happened to ask first/);
    tab.assertNoErrors();
  });

  it('sells exactly with a lock, and oversells without one', async () => {
    const tab = await suite.openTab('mine.html');
    await fillStage(tab, '2.5');
    for (const [acquire, says, overlaps] of /** @type {const} */ ([[null, /^分毫不差/, false], ['return 1', /会再卖给别人/, true]])) {
      if (acquire) await tab.fill('[name=acquire]', acquire);
      await tab.press('#sell');
      await tab.waitForText('#say', says);
      await tab.waitForCount('#run-lanes [data-kind=inside]', 20);
      assert.equal((await tab.count('#run-lanes [data-kind=overlap]')) > 0, overlaps);
    }
    await tab.screenshot('mine-sold-1280');
    await tab.assertAccessible();
    tab.assertNoErrors();
  });

  it('a refused script shows its error and keeps the old ones', async () => {
    const tab = await suite.openTab('mine.html');
    await fillStage(tab, '2.5');
    await tab.press('#save');
    await tab.waitForText('#said', /保存了/);
    for (const [name, script, rule] of /** @type {const} */ ([['release', 'while true do end', /^不能用 while/], ['renew', 'return (', /^Redis 看不懂/], ['acquire', ' ', /^不能为空$/]])) {
      await fillStage(tab, '2.7');
      await tab.fill(`[name=${name}]`, script);
      await tab.press('#grade');
      await tab.waitForText(`#${name}-wrong`, rule);
      await tab.waitForElement(`[name=${name}][aria-invalid=true]:focus`);
      assert.equal(await tab.count('[aria-invalid=true]'), 1);
      assert.equal(await tab.count('#grades .none'), 7, 'nothing is graded');
    }
    await tab.assertAccessible();
    await tab.page.reload();
    await tab.waitForText('#fill [aria-pressed=true]', /^2\.5 /);
    // A script that fails only when it runs.
    await tab.fill('[name=acquire]', "return redis.call('get', KEYS[1]) < 1");
    await tab.press('#grade');
    await tab.waitForText('#exclusion pre', /attempt to compare/);
    tab.assertNoErrors();
  });

  it('is linked from the lessons of its locks and from no other', async () => {
    const tab = await suite.openTab('#/2.5');
    for (const [id, leads] of /** @type {const} */ ([['2.1', true], ['2.5', true], ['2.7', true], ['1.5', false], ['2.10.1', false]])) {
      await tab.go(id);
      await tab.waitForLesson(id);
      assert.equal(await tab.evaluate(() => document.getElementById('own').checkVisibility()), leads, id);
    }
    await tab.go('2.7');
    await tab.waitForLesson('2.7');
    await tab.screenshot('mine-lesson-2.7');
    for (const way of ['#own', '.beside [href="mine.html"]']) {
      await tab.page.goto(await tab.evaluate((at) => document.querySelector(at).href, way));
      await tab.waitForElement('#fill button');
      await tab.page.goBack();
      await tab.waitForLesson('2.7');
    }
  });

  for (const size of [PROJECTOR, PHONE]) {
    it(`is accessible by keyboard alone at ${size.join(' × ')}`, async () => {
      const tab = await suite.openTab('mine.html', size);
      await tab.waitForElement('#fill button');
      await tab.page.focus('#fill button:nth-child(2)');
      await tab.page.keyboard.press('Enter');
      await tab.waitForText('#fill [aria-pressed=true]:focus', /^2\.2 /);
      await tab.page.focus('#grade');
      await tab.page.keyboard.press('Enter');
      await tab.waitForElement('#late-release.failed details[open] svg.timeline');
      await tab.page.focus('#foreign-release summary');
      await tab.page.keyboard.press('Enter');
      await tab.waitForElement('#foreign-release details[open] svg.timeline [data-kind=overlap]');
      assert.ok(!(await tab.isWiderThanWindow()));
      await tab.assertAccessible();
      await tab.screenshot(`mine-${size[0]}`);
      tab.assertNoErrors();
    });
  }
});

/** Fills in a stage of the course. @param {Tab} tab @param {string} section */
async function fillStage(tab, section) {
  await tab.waitForElement('#fill button');
  await tab.waitFor((wanted) => {
    /** @type {HTMLButtonElement} */ ([...document.querySelectorAll('#fill button')].find((button) => button.getAttribute('data-key') === wanted)).click();
    return document.querySelector('#fill [aria-pressed=true]').getAttribute('data-key') === wanted;
  }, section);
}

/** The grades of a stage of the course. @param {Tab} tab @param {string} section */
async function gradeStage(tab, section) {
  await fillStage(tab, section);
  // From the press to the end of its grading the button is disabled; the grades before may have been said in the same words.
  await tab.press('#grade');
  await tab.waitForElement('#grade[aria-disabled=false]');
  await tab.waitForText('#said', /^通过/);
  return tab.evaluate(() => Object.fromEntries([...document.querySelectorAll('#grades > li')].map(({ id, className }) => [id, className])));
}
