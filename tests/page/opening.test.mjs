/** The first view: what this is, and one press that sells 5,000 pieces of which few leave the shelf; the verdicts of the stored run. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { NINETY_MINUTES } from '../../static/js/lesson/ninety-minutes.js';
import { PHONE, getJson, itInSoak, lab } from './support.mjs';

describe('the first view', () => {
  const suite = lab();

  it('says what this is and sells 5,000 at one press', async () => {
    const tab = await suite.openTab('');
    await tab.waitForText('#opening-what', /^分布式锁.*真实的 MySQL/);
    await tab.waitForLesson('1.1');
    const box = await tab.evaluate(() => document.getElementById('opening-run').getBoundingClientRect().bottom);
    assert.ok(box < 720, 'the button is on the first screen');
    await tab.press('#opening-run');
    await tab.waitForElement('#opening-means:not([hidden])');
    const [{ row }] = await tab.evaluate(() => Object.values(JSON.parse(sessionStorage.getItem('oversell.results'))));
    assert.deepEqual(row.reasons, {}, 'nobody was refused');
    await tab.waitForText('#opening-figures div:nth-child(1) dd', /^5,000$/);
    await tab.waitForText('#opening-figures .red dd', /^4,\d{3}$/);
    await tab.waitForText('#opening-oversold', /^5,000 人都买到了，库存却还显示 4,\d{3} 件：这些会再卖给别人。$/);
    assert.match(await tab.text('#opening-oversold'), new RegExp(`显示 ${await tab.text('#opening-figures .red dd')} 件`), 'the figure is the one above');
    const numbers = await tab.page.$$eval('#opening-figures dd', (all) => all.map((one) => Number(one.textContent.replace(/,/g, ''))));
    assert.equal(numbers[0], numbers[1] + numbers[2]);
    await tab.assertAccessible();
    await tab.screenshot('opening');
    await tab.press('#opening-why');
    await tab.waitFor(() => document.getElementById('race-run').getBoundingClientRect().bottom <= innerHeight && document.activeElement.id === 'race-run');
    // The race that shows it plays at once.
    await tab.waitForElement('#race.ended');
    assert.match(await tab.text('#race-why'), /另一个人也读了/);
    // The pictures have taken the place of the numbers, which stand below them.
    await tab.waitFor(() => document.getElementById('opening-figures').getBoundingClientRect().top > document.getElementById('race-why').getBoundingClientRect().bottom);
    await tab.screenshot('opening-played');
    await tab.click('#en');
    await tab.waitForText('#opening-oversold', /^5,000 people have one, and the stock still says 4,\d{3}: these will be sold again\.$/);
    await tab.go('1.3');
    await tab.waitForLesson('1.3');
    assert.equal(await tab.count('#opening:not([hidden])'), 0, 'it stands on the first lesson alone');
    tab.assertNoErrors();
  });

  itInSoak('fits its three numbers on a phone', async () => {
    const tab = await suite.openTab('', PHONE);
    await tab.waitForLesson('1.1');
    await tab.press('#opening-run');
    await tab.waitForText('#opening-figures div:nth-child(1) dd', /^5,000$/);
    await tab.waitForText('#opening-oversold', /会再卖给别人/);
    const cut = await tab.page.$$eval('#opening-figures dd', (all) => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent));
    assert.deepEqual(cut, []);
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.screenshot('opening-phone');
    tab.assertNoErrors();
  });

  it('shows the stored verdicts, their date, commit and machine', async () => {
    const tab = await suite.openTab('#/1.3');
    await tab.waitForLesson('1.3');
    await tab.waitForText('#found', /^已复现：$/);
    await tab.waitForText('#found-seen', /→ 库存 4997$/);
    await tab.waitForText('#found-when', /随程序附带的完整运行：\d{4}-\d\d-\d\d，oversell .*，提交 [0-9a-f]{12}.*核/);
    await tab.go('verdicts');
    await tab.waitForText('#verdicts-say', /随程序附带的完整运行/);
    await tab.waitFor(() => document.querySelectorAll('#verdicts .reproduced').length > 100);
    tab.assertNoErrors();
  });

  it('keeps a press that comes before its function', async () => {
    const tab = await suite.openTab('favicon.svg');
    // The press comes with the button's text, before anything else can run.
    await tab.page.evaluateOnNewDocument(() => addEventListener('DOMContentLoaded', () => new MutationObserver((_, observer) => {
      const button = document.getElementById('en');
      if (!document.getElementById('opening-run').textContent || button.onclick) return;
      observer.disconnect();
      setTimeout(() => { (/** @type {any} */ (window)).early = !button.onclick; button.click(); });
    }).observe(document.body, { childList: true, subtree: true })));
    await tab.page.goto(`${suite.at.http}/`);
    await tab.waitForText('#opening-run', /^Sell 5,000$/);
    assert.equal(await tab.evaluate('window.early'), true);
    tab.assertNoErrors();
  });

  it('speaks the browser’s language at the first visit, then the chosen one', async () => {
    for (const [languages, first] of /** @type {const} */ ([[['en-US', 'zh-CN'], /^Sell/], [['de'], /^Sell/], [['ja', 'zh-TW', 'en'], /^卖出/]])) {
      const tab = await suite.openTab('favicon.svg');
      await tab.page.evaluateOnNewDocument((names) => Object.defineProperty(navigator, 'languages', { get: () => names }), languages);
      await tab.page.goto(`${suite.at.http}/`);
      await tab.waitForText('#opening-run', first);
      await tab.waitForLesson('1.1');
      await tab.click('#zh');
      await tab.page.reload();
      await tab.waitForText('#opening-run', /^卖出/);
    }
  });

  it('leads from an oversold run to the race that explains it', async () => {
    const tab = await suite.openTab('#/1.4?target=one&threads=20&loops=10');
    await tab.waitForLesson('1.4');
    await tab.waitUntilRunnable();
    await tab.press('#run');
    await tab.waitForText('#say-why', /^为什么？.*1\.1/);
    await tab.press('#say-why');
    await tab.waitForLesson('1.1');
    // One buyer alone: no mark of an oversold strategy, and nothing of many.
    await tab.go('1.3');
    await tab.waitForLesson('1.3');
    await tab.waitForText('#load-title', /^一个人，买 50 次$/);
    assert.equal(await tab.text('#promise'), '');
    assert.equal(await tab.count('#chapters [data-id="1.3"] .mark'), 0);
    await tab.waitUntilRunnable();
    await tab.press('#run');
    await tab.waitForText('#say-why', /^两个人同时买呢.*1\.1/);
    tab.assertNoErrors();
  });

  it('shows no id as the number of a lesson', async () => {
    const tab = await suite.openTab('#/3.4.2.herd');
    await tab.waitForLesson('3.4.2.herd');
    const ids = /\b(\d+(\.\d+)*\.[a-z]|00\d\.[a-z])/;
    for (const [address, where, like] of /** @type {const} */ ([
      ['#/3.4.2.herd', '.lesson', /§3\.4\.2/], ['#/002.new-mutex', '.lesson', /\[002\]/], ['#/2.3', '#next', /§2\.3/], ['#/verdicts', '#verdicts th[scope=row]', /1\.1/],
      ['glossary.html', '#terms', /\[004\]/], ['errata.html', '#errata a', /§1\.1/], ['class.html#/3.4.2.herd', 'h1', /§3\.4\.2/],
    ])) {
      await tab.page.goto(`${suite.at.http}/${address}`);
      await tab.waitForText(where, like);
      const shown = await tab.page.$$eval(where, (all) => all.map((one) => one.textContent));
      assert.deepEqual(shown.filter((text) => ids.test(text)), [], address);
    }
    assert.ok(ids.test('003.pause 停顿') && ids.test('3.4.2.herd') && !ids.test('§3.4.2 羊群'), 'the twin: ids are found');
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

  it('ends as the teacher’s page says, in thirteen lessons', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    for (const [file, between] of /** @type {const} */ ([['teaching.md', ' / '], ['teaching.zh-CN.md', '／']])) {
      const read = readFileSync(new URL(`../../docs/${file}`, import.meta.url), 'utf8');
      const rows = read.split('\n').filter((line) => /^\| [0-9][^|]* \| \d+ \|/.test(line)).map((line) => line.split(' | ').slice(0, 4).map((cell) => cell.replace('| ', '')));
      const ends = ({ sold = 0, gone = 0 }) => `${sold}${between}${gone}`;
      assert.deepEqual(rows, NINETY_MINUTES.map(([id, minutes]) => {
        const { ends: flaw, cured_ends: cure } = replays.find((race) => race.lesson === id);
        return [id, String(minutes), ends(flaw), ends(cure)];
      }), file);
    }
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
