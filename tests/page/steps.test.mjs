/**
 * Every lesson has something to press or to read that shows its own claim, and no lesson is a terminal transcript: its typed lines are a table
 * of who asks which server for what, what comes back, and what that means.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { PHONE, getJson, lab, sample, sendJson } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe('the steps of a lesson', () => {
  const suite = lab();

  /** All lessons with their lines. @returns {Promise<any[]>} */
  const lessons = async () => {
    const { chapters } = await getJson(`${suite.at.http}/course`);
    return chapters.flatMap((chapter) => chapter.lessons);
  };

  it('tells each line in words, in both languages', async () => {
    const tab = await suite.openTab('#/002.oversold');
    await tab.waitForLesson('002.oversold');
    const all = (await lessons()).flatMap(({ id, by_hand: lines }) => lines.map((line) => ({ id, ...line })));
    assert.ok(all.length > 800, `only ${all.length} lines`);
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const raced = new Set(replays.map(({ lesson }) => lesson));
    const alone = new Set((await lessons()).filter(({ id, loads, try: tries, deadlocks }) => !raced.has(id) && !loads && !tries?.length && !deadlocks?.length).map(({ id }) => id));
    assert.ok(alone.size > 55, `only ${alone.size} lessons have typed lines alone`);
    for (const language of ['zh', 'en']) {
      await tab.click(`#${language}`);
      const found = await tab.evaluate(wordlessLines, all, language);
      assert.deepEqual(found, [], language);
      // The twin: a line that no rule knows.
      const unknown = { id: 'x', run: 'true', expect: '', terminal: 1, again: false };
      assert.deepEqual(await tab.evaluate(wordlessLines, [unknown], language), ['x: true']);
      // No lesson is a transcript: something that comes back is said to mean something.
      assert.deepEqual(await tab.evaluate(transcripts, [...all.filter(({ id }) => alone.has(id)), unknown]), ['x'], language);
    }
    tab.assertNoErrors();
  });

  it('names the course’s Java where a lesson has it', async () => {
    const tab = await suite.openTab('#/1.7.3');
    await tab.waitForLesson('1.7.3');
    await tab.waitForText('#java', /UpdateWrapper/);
    await tab.waitForElement('#java-part:not([hidden])');
    await tab.click('#en');
    await tab.waitForText('#java', /UpdateWrapper that compares/);
    // The twin: a lock that the course does not have.
    await tab.go('redis-watch-merged');
    await tab.waitForElement('#java-part[hidden]');
    tab.assertNoErrors();
  });

  it('shows what shows the claim, in every lesson', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const raced = new Set(replays.map(({ lesson }) => lesson));
    const bare = [];
    for (const { id, by_hand: lines } of sample(await lessons(), 12)) {
      await tab.go(id);
      await tab.waitForLesson(id);
      await tab.waitFor((steps) => document.querySelectorAll('#step-rows tr').length === steps, lines.length);
      const shown = await tab.evaluate(shownParts);
      if (!shown.length || shown.includes('race-run') !== (raced.has(id) && !shown.includes('deadlock-run'))) bare.push(`${id}: ${shown}`);
    }
    assert.deepEqual(bare, []);
    tab.assertNoErrors();
  });

  it('fills the table with what came, and marks what was oversold', async () => {
    const tab = await suite.openTab('#/002.oversold');
    await tab.waitForLesson('002.oversold');
    await tab.waitForElement('#step-rows tr');
    assert.ok(await tab.evaluate(() => !document.getElementById('terminals').checkVisibility()), 'the lines are folded below');
    await tab.screenshot('steps-002.oversold-before');
    await tab.press('#type-all');
    await tab.waitForElement('#step-rows tr.red.ran');
    assert.match(await tab.text('#step-rows tr.red'), /-1剩 -1 张：超卖/);
    await tab.screenshot('steps-002.oversold-1280');
    await tab.assertAccessible();
    await tab.go('3.1.2');
    await tab.waitForLesson('3.1.2');
    await tab.press('#type-all');
    await tab.waitFor(() => document.querySelectorAll('#step-rows tr.ran').length === 3);
    const answers = await tab.page.$$eval('#step-rows .answer', (all) => all.map((one) => one.textContent));
    assert.ok(answers.every((answer) => !/SLF4J|WATCHER|Connecting/.test(answer)), answers.join('\n'));
    assert.match(answers.join('\n'), /Created \/by-hand\/aa\n/);
    await tab.screenshot('steps-3.1.2-1280');
    tab.assertNoErrors();
    const phone = await suite.openTab('#/002.oversold', PHONE);
    await phone.waitForElement('#step-rows tr');
    assert.ok(!(await phone.isWiderThanWindow()));
    await phone.screenshot('steps-002.oversold-phone');
  });

  it('offers to run no line of a lesson that starts a lab', async () => {
    const all = await lessons();
    const [own, other] = [true, false].map((starts) => all.find(({ by_hand: lines }) => lines.length > 1 && starts === lines.some(({ run }) => run.includes('oversell lab --'))));
    const tab = await suite.openTab(`#/${own.id}`);
    for (const [{ id }, offered] of [[own, false], [other, true]]) {
      await tab.go(id);
      await tab.waitForLesson(id);
      await tab.waitForElement('#terminals li');
      const seen = await tab.evaluate(() => [document.querySelector('#terminals [data-type]') != null, !document.getElementById('type-all').hidden, /自己启动/.test(document.getElementById('terminals').textContent)]);
      assert.deepEqual(seen, [offered, offered, !offered], id);
    }
    tab.assertNoErrors();
  });

  it('breaks the lab that the page belongs to', async () => {
    const { by_hand: lines } = await getJson(`${suite.at.http}/course/003.aof`);
    const fault = lines.findIndex(({ run }) => /lab fault .*kill redis;/.test(run)) + 1;
    assert.ok(fault, lines.map(({ run }) => run).join('\n'));
    const answer = await (await sendJson(`${suite.at.http}/classroom/lines/003.aof/${fault}`, {})).json();
    assert.deepEqual(answer, { printed: 'redis is killed\nredis runs again\n', expected: true });
  });
});

/** The lines whose row has no words of ours, nor a command of a server. @param {any[]} lines @param {'zh' | 'en'} language @returns {Promise<string[]>} */
async function wordlessLines(lines, language) {
  const [{ rowOf }, words, own] = await Promise.all(['lesson/line-meaning', 'words/all', 'shared/language'].map((name) => import(`${location.origin}/js/${name}.js`)));
  own.addWords(words.languages);
  own.setLanguage(language);
  return lines.filter((line) => {
    const { does } = rowOf(line);
    return !does.length || does.some(({ text }) => /undefined|\[object/.test(text));
  }).map(({ id, run }) => `${id}: ${run}`);
}

/** The lessons of which no answer has a meaning. @param {any[]} lines @returns {Promise<string[]>} */
async function transcripts(lines) {
  const { meaningOf } = await import(`${location.origin}/js/lesson/line-meaning.js`);
  const told = new Set(lines.filter((line) => meaningOf(line, line.expect).text).map(({ id }) => id));
  return [...new Set(lines.map(({ id }) => id))].filter((id) => !told.has(id));
}

/** What the lesson on show offers first. @returns {string[]} */
function shownParts() {
  return ['race-run', 'deadlock-run', 'settings', 'try-buttons', 'step-rows', 'no-button', 'rates-run'].filter((id) => {
    const part = document.getElementById(id);
    return part.checkVisibility() && (part.childElementCount > 0 || part.textContent !== '');
  });
}
