/** The first view: what this is, and one press that sells 5,000 pieces of which few leave the shelf; the verdicts of the stored run. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, lab } from './support.mjs';

describe('the first view', () => {
  const suite = lab();

  it('says what this is and sells 5,000 at one press', async () => {
    const tab = await suite.openTab('');
    await tab.waitForText('#opening-what', /^分布式锁.*真的 MySQL/);
    await tab.waitForLesson('1.1');
    const box = await tab.evaluate(() => document.getElementById('opening-run').getBoundingClientRect().bottom);
    assert.ok(box < 720, 'the button is on the first screen');
    await tab.press('#opening-run');
    await tab.waitForText('#opening-figures div:nth-child(1) dd', /^5,000$/);
    await tab.waitForText('#opening-figures .red dd', /^4,\d{3}$/);
    await tab.waitForText('#opening-say', /对不上/);
    const numbers = await tab.page.$$eval('#opening-figures dd', (all) => all.map((one) => Number(one.textContent.replace(/,/g, ''))));
    assert.equal(numbers[0], numbers[1] + numbers[2]);
    await tab.assertAccessible();
    await tab.screenshot('opening');
    await tab.go('1.3');
    await tab.waitForLesson('1.3');
    assert.equal(await tab.count('#opening:not([hidden])'), 0, 'it stands on the first lesson alone');
    tab.assertNoErrors();
  });

  it('fits its three numbers on a phone', async () => {
    const tab = await suite.openTab('', PHONE);
    await tab.waitForLesson('1.1');
    await tab.press('#opening-run');
    await tab.waitForText('#opening-figures div:nth-child(1) dd', /^5,000$/);
    await tab.waitForText('#opening-say', /对不上/);
    const cut = await tab.page.$$eval('#opening-figures dd', (all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
    assert.deepEqual(cut, []);
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.screenshot('opening-phone');
    tab.assertNoErrors();
  });

  it('shows the stored verdicts, their date, commit and machine', async () => {
    const tab = await suite.openTab('#/1.3');
    await tab.waitForLesson('1.3');
    await tab.waitForText('#found', /随程序附带的完整运行：\d{4}-\d\d-\d\d，oversell .*，提交 [0-9a-f]{12}.*核/);
    await tab.go('verdicts');
    await tab.waitForText('#verdicts-say', /随程序附带的完整运行/);
    await tab.waitFor(() => document.querySelectorAll('#verdicts .reproduced').length > 100);
    tab.assertNoErrors();
  });

  it('raises no alarm before the first answer', async () => {
    const tab = await suite.openTab('favicon.svg');
    await tab.page.evaluateOnNewDocument(() => {
      const alarms = (/** @type {any} */ (window).alarms = []);
      addEventListener('DOMContentLoaded', () => new MutationObserver(() => {
        const notice = document.getElementById('notice');
        if (!notice.hidden && notice.textContent) alarms.push(notice.textContent);
      }).observe(document.getElementById('notice'), { attributes: true, childList: true, characterData: true, subtree: true }));
    });
    await tab.page.goto(`${suite.at.http}/#/1.3`);
    await tab.waitForLesson('1.3');
    await tab.waitForElement('#lights .up');
    assert.deepEqual(await tab.evaluate('window.alarms'), []);
  });

  it('marks where one is in the ninety minutes, and their end', async () => {
    const tab = await suite.openTab('#/002.new-mutex');
    await tab.waitForLesson('002.new-mutex');
    await tab.waitForElement('.spine [aria-current][data-id="002.new-mutex"]');
    // Ready-made locks and tables have their place.
    for (const id of ['2.10.6', '4.3.2']) assert.equal(await tab.count(`.spine [data-id="${id}"]`), 1, id);
    await tab.waitForText('#next', /90 分钟到此为止.*§2.10.*第 4 章/);
    tab.assertNoErrors();
  });
});
