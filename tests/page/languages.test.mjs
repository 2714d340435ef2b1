/** What the page says: each view in one language, a deadlock in words, readable by everybody. */

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { languages } from '../../static/js/words/all.js';
import * as ownLockWords from '../../static/js/words/own-lock.js';
import * as scheduleWords from '../../static/js/words/scheduler.js';
import { PHONE, PROJECTOR, SOAK, getJson, itInSoak, lab, sample, sendJson } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */
/** @typedef {{terminal: string, run: string, expect: string, again: boolean}[]} Lines */

/** Signs that a plain font for Chinese and Latin letters does not have: an empty box is drawn in their place. */
const RARE_SIGNS = /[\u21c4\u2300-\u23ff\u25b8-\u25ba\u25be-\u25c0\u25c2-\u25c4\u2600-\u2604\u2607-\u27bf\ufe0f\u{1f000}-\u{1faff}]/u;

it('each sign of the page is in a plain font, or drawn', () => {
  const root = new URL('../../', import.meta.url);
  const files = ['static', 'templates'].flatMap((folder) => readdirSync(new URL(folder, root), { recursive: true }).map((name) => `${folder}/${name}`));
  const read = files.filter((name) => /\.(js|html|css|txt)$/.test(name));
  assert.ok(read.length > 90, `${read.length} files`);
  assert.deepEqual(read.filter((name) => RARE_SIGNS.test(readFileSync(new URL(name, root), 'utf8'))), []);
  // The twins: a watch, a pause, a skull, a tick; stars, arrows and a filled triangle are in such fonts.
  assert.deepEqual([...'⏱❚☠✓★☆←▶'].map((sign) => RARE_SIGNS.test(sign)), [true, true, true, true, false, false, false, false]);
});

describe('what the page says', () => {
  const suite = lab();

  it('has every lesson in one language, with commands and race', async () => {
    const tab = await suite.openTab('#/1.3');
    await tab.waitForLesson('1.3');
    for (const { zh, en } of [languages, scheduleWords, ownLockWords]) assert.deepEqual(Object.keys(zh).sort(), Object.keys(en).sort());
    const { replays } = await getJson(`${suite.at.http}/replays`);
    for (const { lesson, ends, cured_ends } of replays) {
      for (const { notes, said } of [ends, cured_ends]) {
        assert.ok(!notes === !said.en && !said.en === !said.zh && !/[a-z]{2,}/.test(said.zh), lesson);
      }
    }

    const { chapters } = await getJson(`${suite.at.http}/course`);
    const lessons = chapters.flatMap((chapter) => chapter.lessons);
    const shown = await tab.page.$$eval('#chapters a', (all) => all.map((a) => a.dataset.id));
    const all = [...new Set(shown)].map((id) => ({
      id, lines: lessons.find((lesson) => lesson.id === id)?.by_hand ?? null, breaks: replays.find(({ lesson }) => lesson === id)?.breaks.zh ?? null,
    }));
    assert.ok(all.length > 150 && replays.length > 50);
    const foreign = [];
    const look = async (view, language) => foreign.push(...(await tab.evaluate(foreignTexts)).map((text) => `${view}, ${language}: ${text}`));
    for (const language of ['en', 'zh']) {
      await tab.press(`#${language}`);
      for (const own of [foreignTexts, hasLines, isEntryInSight, checkLessons]) await tab.evaluate(`window.${own.name} = ${own}`);
      assert.deepEqual(await tab.evaluate(checkLessons, sample(all, 12), language === 'zh'), [], language);
      for (const view of ['compare', '9.9', 'verdicts']) {
        await tab.go(view);
        await look(view, language);
      }
      for (const other of ['mine.html', 'limits.html', 'cache.html', 'glossary.html', 'errata.html']) {
        await tab.page.goto(`${suite.at.http}/${other}`);
        await tab.waitFor(() => document.querySelectorAll('main li').length > 3);
        await look(other, language);
      }
      await tab.page.goto(`${suite.at.http}/#/1.3`);
      await tab.waitForLesson('1.3');
    }
    assert.deepEqual(foreign, []);

    // The twins: a line with another text, in the turn that changes it, since the page may write its own again; and a word of the other
    // language.
    await tab.go('2.3');
    const { lines } = all.find(({ id }) => id === '2.3');
    await tab.waitFor(hasLines, lines);
    assert.equal(await tab.evaluate(`(document.querySelector('#terminals pre').textContent += ' ', (${hasLines})(${JSON.stringify(lines)}))`), false);
    for (const [language, said] of [['en', '没有跑'], ['zh', 'not run in this place yet'], ['zh', 'undefined']]) {
      await tab.press(`#${language}`);
      await tab.evaluate(appendText, said);
      assert.notDeepEqual(await tab.evaluate(foreignTexts), [], `${said} is seen in ${language}`);
      await tab.evaluate(() => document.getElementById('own').remove());
    }
  });

  // The cure is the twin: it shows no victim and no report of a deadlock.
  it('tells a deadlock in words, and its cure has no victim', async () => {
    const tab = await suite.openTab('#/003.deadlock.opposite-order');
    await tab.waitForLesson('003.deadlock.opposite-order');
    await tab.press('#deadlock-run');
    await tab.waitForText('#deadlock-say', /^为什么：/);
    for (const { half, said, victims, waits, sentences } of [
      { half: 1, said: /^死锁：/, victims: 1, waits: 1, sentences: 3 },
      { half: 2, said: /^没有死锁/, victims: 0, waits: 0, sentences: 0 },
    ]) {
      const its = `#deadlock-played > section:nth-child(${half})`;
      await tab.waitForText(`${its} > .say`, said);
      assert.equal(await tab.count(`${its} .victim`), victims);
      assert.ok((await tab.count(`${its} .waits`)) >= waits);
      assert.equal(await tab.count(`${its} .account li`), sentences);
    }
    // A transaction has not locked what it waits for.
    assert.doesNotMatch(await tab.text('#deadlock-played .begins'), /锁住/);
    assert.deepEqual(await tab.evaluate(foreignTexts), []);
    await tab.screenshot('deadlock');
    const account = await tab.evaluate(`import('/js/lesson/innodb-status.js').then(({ parseDeadlock }) => parseDeadlock(${JSON.stringify(MYSQL_REPORT)}))`);
    const [one, other] = account.transactions.map(({ waits }) => waits[0]);
    assert.deepEqual([one.id, one.kind, other.end, account.rolledBack], [20, 'row', true, 2]);
    tab.assertNoErrors();
  });

  // The twin: without the key the page shows more, and smaller.
  it('is large everywhere with the projector key', async () => {
    const tab = await suite.openTab('#/1.3');
    await tab.waitForLesson('1.3');
    for (const id of ['1.3', '2.3.gap', '2.10.6', '003.deadlock.gap', 'compare', 'verdicts']) {
      await tab.go(id);
      await tab.waitFor((view) => document.getElementById('frame').dataset.view === view || document.getElementById('chapter').dataset.lesson === view, id);
      assert.ok((await tab.evaluate(smallestType)) < 20, `something is small in ${id} without the key`);
      await tab.press('#projector');
      assert.ok((await tab.evaluate(smallestType)) >= 20, id);
      assert.ok(!(await tab.isWiderThanWindow()), id);
      await tab.screenshot(`projector-${id}`);
      await tab.press('#projector');
    }
  });

  for (const size of [PROJECTOR, PHONE]) {
    (size === PROJECTOR ? itInSoak : it)(`is accessible in the dark at ${size.join(' × ')}`, async () => {
      // Beside the full run that comes with the program, in which 1.3 is reproduced.
      const kept = { conditions: {}, lessons: [{ id: '1.3', verdict: 'not-reproduced', seen: { zh: '没看到', en: 'it was not seen' } }] };
      assert.ok((await sendJson(`${suite.at.http}/course/verdicts`, kept, 'PUT')).ok);
      const tab = await suite.openTab('#/1.3', size);
      await tab.evaluate(() => void (document.documentElement.dataset.theme = 'dark'));
      for (const id of SOAK ? ['1.3', '2.3.gap', '2.4.4.2', '2.10.6', '002.late-unlock', '003.limits', '003.deadlock.gap'] : ['1.3', '003.deadlock.gap']) {
        await tab.go(id);
        await tab.waitForLesson(id);
        if (id.includes('deadlock')) {
          await tab.press('#deadlock-run');
          await tab.waitFor(() => document.querySelectorAll('.statements tbody tr').length > 6);
        }
        // The list of lessons beside each is the same: its chapter is open.
        await tab.evaluate(() => { for (const fold of /** @type {NodeListOf<HTMLDetailsElement>} */ (document.querySelectorAll('main details'))) fold.open = true; });
        assert.deepEqual(await readabilityProblems(tab), [], id);
        await tab.screenshot(`dark-${id}-${size[0]}`);
      }
      await tab.go('verdicts');
      await tab.waitFor(() => document.querySelectorAll('#verdicts tr').length > 100);
      await tab.waitForText('#verdicts tr:has([href="#/1.3"])', /没看到/);
      assert.ok((await tab.count('#verdicts .reproduced')) > 100);
      assert.deepEqual(await readabilityProblems(tab), [], 'verdicts');
      tab.assertNoErrors();
    });
  }

  // The verdicts' address is no lesson, although the service answers there.
  it('shows the verdicts of a run at their own address', async () => {
    const tab = await suite.openTab('#/verdicts');
    await tab.waitFor(() => document.querySelectorAll('#verdicts tr').length > 100);
    tab.assertNoErrors();
  });

  it('pale ink and a line that is too long are found', async () => {
    const tab = await suite.openTab('#/2.3.gap', PHONE);
    await tab.waitForLesson('2.3.gap');
    await tab.evaluate(() => document.documentElement.style.setProperty('--dim', '#d0d0d0'));
    assert.notDeepEqual(await readabilityProblems(tab), []);
    await tab.evaluate(() => document.documentElement.style.removeProperty('--dim'));
    await tab.evaluate(appendText, 'x'.repeat(200));
    assert.notDeepEqual(await readabilityProblems(tab), []);
  });
});

/**
 * Text on the page in the other language. Code, output of servers and text marked as of another language are left out. A missing word is
 * `undefined`.
 */
function foreignTexts() {
  const lang = document.documentElement.lang.slice(0, 2);
  const wrong = { en: /[\u3400-\u9fff]/, zh: /\b[a-z]{2,} [a-z]{2,} [a-z]{2,} [a-z]{2,}/ }[lang];
  const own = (e) => e.closest('[lang]').lang.slice(0, 2) === lang && !e.closest('pre, code, .ms, .tried');
  const said = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement;
    if (own(e) && e.checkVisibility() && e.tagName !== 'NOSCRIPT') said.push(walk.currentNode.textContent);
  }
  for (const e of document.querySelectorAll('[aria-label], [title], [placeholder]')) {
    if (own(e)) said.push(...['aria-label', 'title', 'placeholder'].map((name) => e.getAttribute(name)));
  }
  return said.filter((text) => text && (wrong.test(text) || /\bundefined\b|\[object/.test(text))).slice(0, 3);
}

/** Goes through all lessons within the page; returns what is wrong in each. Some use the old address of races. @param {{id: string, lines: Lines | null, breaks: string | null}[]} lessons @param {boolean} whole check all of a lesson, not only its words */
async function checkLessons(lessons, whole) {
  const wrong = [];
  const $ = (id) => document.getElementById(id);
  const LONG_MS = 10_000;
  /** @param {() => boolean} holds */
  const comes = async (holds) => {
    for (const end = performance.now() + LONG_MS; !holds();) {
      if (performance.now() > end) return false;
      await new Promise((next) => { setTimeout(next, 5); });
    }
    return true;
  };
  for (const { id, lines, breaks } of lessons) {
    location.hash = whole && breaks ? `#/replay/${id}?cured=true` : `#/${id}`;
    const there = await comes(() => $('chapter').dataset.lesson === id && $('chapter').checkVisibility() && ($('how').hidden || $('steps').firstChild != null));
    const found = there ? foreignTexts() : ['never on show'];
    if (whole && !isEntryInSight()) found.push('its entry is out of sight');
    if (whole && lines && !(await comes(() => hasLines(lines)))) found.push('other lines than its own');
    const isDeadlock = id.startsWith('003.deadlock.');
    if (whole && $('race').checkVisibility() !== (breaks != null)) found.push('a race that is not its own, or none');
    if (whole && breaks && $('race-run').checkVisibility() === isDeadlock) found.push('a race where its order alone is decided, or none');
    if (whole && breaks && !isDeadlock && $('race-flaw-what').title !== breaks) found.push('the race of another');
    if (isDeadlock && !$('deadlock').checkVisibility()) found.push('no deadlock');
    wrong.push(...found.map((what) => `${id}: ${what}`));
  }
  return wrong;
}

/** Shows this in an element of the test's own: the page overwrites its own ones. @param {string} said */
function appendText(said) {
  const own = document.createElement('p');
  own.id = 'own';
  own.textContent = said;
  document.querySelector('main').append(own);
}

/** Whether the lesson's entry is in sight in the list. */
function isEntryInSight() {
  const [list, entry] = ['#lessons', '#chapters [aria-current]'].map((at) => document.querySelector(at).getBoundingClientRect());
  return list.top <= entry.top && entry.bottom <= list.bottom;
}

/**
 * Whether the lesson has each of these commands at its number, in its terminal, with its output, and the words for one that is repeated.
 * @param {Lines} lines
 */
function hasLines(lines) {
  return lines.every(({ terminal, run, expect, again }, i) => {
    const li = document.querySelector(`#terminals li[value='${i + 1}']`);
    const pres = [...(li?.querySelectorAll('pre') ?? [])].map((pre) => pre.textContent);
    return li?.closest('details').firstElementChild.textContent.endsWith(` ${terminal}`)
      && pres[0] === run && (pres[1] ?? '') === expect && (li.querySelector('p') != null) === again;
  });
}

/** The smallest type on the page, in pixels. */
function smallestType() {
  const read = [...document.querySelectorAll('main *')].filter((e) => e.checkVisibility() && !e.closest('.unseen, svg')
    && [...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.textContent.trim()));
  return Math.min(...read.map((e) => parseFloat(getComputedStyle(e).fontSize)));
}

/** @param {Tab} tab */
const readabilityProblems = async (tab) => [...(await tab.accessibilityViolations()), ...((await tab.isWiderThanWindow()) ? ['wider than the screen'] : [])];

/** As MySQL 8 writes it; in the lab MariaDB writes it. */
const MYSQL_REPORT = `*** (1) TRANSACTION:
TRANSACTION 1811, ACTIVE 0 sec starting index read
*** (1) HOLDS THE LOCK(S):
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table \`test\`.\`deadlock_00000001\` trx id 1811 lock_mode X locks rec but not gap
Record lock, heap no 2 PHYSICAL RECORD: n_fields 5; compact format; info bits 0
 0: len 4; hex 8000000a; asc     ;;
*** (1) WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table \`test\`.\`deadlock_00000001\` trx id 1811 lock_mode X locks rec but not gap waiting
Record lock, heap no 3 PHYSICAL RECORD: n_fields 5; compact format; info bits 0
 0: len 4; hex 80000014; asc     ;;
*** (2) TRANSACTION:
TRANSACTION 1812, ACTIVE 0 sec inserting
*** (2) WAITING FOR THIS LOCK TO BE GRANTED:
RECORD LOCKS space id 2 page no 4 n bits 72 index PRIMARY of table \`test\`.\`deadlock_00000001\` trx id 1812 lock_mode X insert intention waiting
Record lock, heap no 1 PHYSICAL RECORD: n_fields 1; compact format; info bits 0
 0: len 8; hex 73757072656d756d; asc supremum;;
*** WE ROLL BACK TRANSACTION (2)
`;
