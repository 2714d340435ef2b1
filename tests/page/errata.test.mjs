/** The errata: all lessons of their chapter, and what the glossary corrects, each with its lesson. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TERMS } from '../../static/js/glossary/terms.js';
import { PHONE, getJson, lab } from './support.mjs';

describe('the errata', () => {
  const suite = lab(['--instances=0']);

  it('lists each in both languages, and leads to its lesson', async () => {
    const { chapters } = await getJson(`${suite.at.http}/course`);
    const { lessons } = chapters.find(({ id }) => id === 'errata');
    assert.ok(lessons.length > 5);
    // The list of pages leads here, and to the class's page.
    const tab = await suite.openTab('#/1.3', PHONE);
    await tab.waitForLesson('1.3');
    assert.deepEqual(await tab.page.$$eval('.beside a[href^="errata"], .beside a[href^="class"]', (all) => all.map((a) => a.textContent)), ['一起做', '勘误']);
    await tab.page.goto(`${suite.at.http}/errata.html`);
    for (const lang of /** @type {const} */ (['en', 'zh'])) {
      await tab.press(`#${lang}`);
      await tab.waitForCount('#errata li', lessons.length + TERMS.filter(({ errs }) => errs).length);
      const shown = await tab.page.$$eval('#errata li', (items) => items.map((item) => [item.querySelector('h2').textContent, item.querySelector('p').textContent, item.querySelector('a').hash]));
      for (const [i, { id, title, claim }] of lessons.entries()) {
        assert.equal(shown[i][0], title[lang]);
        assert.ok(shown[i][1].startsWith(claim[lang]), shown[i][1]);
        assert.equal(shown[i][2], `#/${id}`);
      }
      for (const { term, errs } of TERMS.filter((one) => one.errs)) assert.ok(shown.some(([head, says]) => head === term[lang] && says.startsWith(errs[lang])), term.en);
    }
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.assertAccessible();
    await tab.screenshot('errata');
    await Promise.all([tab.page.waitForNavigation(), tab.click('#errata a')]);
    await tab.waitForLesson(lessons[0].id);
    tab.assertNoErrors();
  });
});
