/** The glossary: each kind of lock has a sentence in both languages, and leads to a lesson. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { TERMS } from '../../static/js/glossary/terms.js';
import { getJson, lab } from './support.mjs';

describe('the glossary', () => {
  const suite = lab(['--instances=0']);

  it('each term leads to a lesson of the course', async () => {
    const { chapters } = await getJson(`${suite.at.http}/course`);
    const ids = chapters.flatMap((chapter) => chapter.lessons.map(({ id }) => id));
    const unknown = (lessons) => lessons.filter((lesson) => !ids.includes(lesson));
    assert.deepEqual(unknown(TERMS.map(({ lesson }) => lesson)), []);
    // The twin: a lesson that is not there.
    assert.deepEqual(unknown(['1.7.2', '9.9']), ['9.9']);
  });

  it('shows a sentence per term in both languages', async () => {
    const tab = await suite.openTab('glossary.html');
    for (const lang of /** @type {const} */ (['en', 'zh'])) {
      await tab.press(`#${lang}`);
      const shown = await tab.page.$$eval('#terms li', (items) => items.map((item) => [item.querySelector('h2')?.textContent, item.querySelector('p')?.firstChild?.textContent]));
      assert.deepEqual(shown, TERMS.map(({ term, is }) => [term[lang], is[lang]]));
    }
    await tab.assertAccessible();
    await tab.screenshot('glossary');
    await Promise.all([tab.page.waitForNavigation(), tab.click('#terms li:first-child a')]);
    await tab.waitForLesson(TERMS[0].lesson);
    tab.assertNoErrors();
  });
});
