/**
 * A lesson's race: one press plays the flaw and its cure on the real servers. What is drawn and said of each event, that no words overlap,
 * that everybody can use it. `schedule.test.mjs` decides the schedule.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { QUESTIONS } from '../../static/js/race/questions.js';
import { modelOf, withoutQueue } from '../../static/js/timeline/model.js';
import { addEvent, emptyRecording } from '../../static/js/timeline/player.js';
import { stateAt } from '../../static/js/timeline/state-at-moment.js';
import { languages } from '../../static/js/words/all.js';
import { unlikeLegend } from './race-events.mjs';
import { PHONE, SOAK, getJson, itInSoak, lab, waitUntil } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

/**
 * What is drawn of each race: overlaps, arrows of foreign releases, stale values, and anomalies. All races with `OVERSELL_SOAK=1`; else one
 * that oversells and one in which nobody gets in.
 */
const ALL_RACES = [
  { lesson: '1.1', flaw: { broken: true, arrows: 0, carries: 1 }, named: ['lost-update'] },
  { lesson: '002.new-mutex', flaw: { broken: true, arrows: 0, carries: 0 }, named: ['check-then-act'] },
  // Two are inside, each by its own instance's lock.
  { lesson: '002.cluster', flaw: { broken: true, arrows: 0, carries: 0 }, named: ['check-then-act'] },
  { lesson: '1.8', flaw: { broken: true, arrows: 0, carries: 1 }, named: ['lost-update'] },
  // An owner in the key, as in 2.3, does not help when the job outlives its lease.
  { lesson: '2.3', flaw: { broken: true, arrows: 1, carries: 1 }, cure: { broken: true, arrows: 0, carries: 1 }, named: ['late-release', 'lost-update'] },
  { lesson: '2.3.gap', flaw: { broken: true, arrows: 1, carries: 1 }, named: ['late-release', 'lost-update'] },
  { lesson: '2.5', flaw: { broken: true, arrows: 1, carries: 1 }, named: ['late-release', 'lost-update'] },
  { lesson: '2.6', flaw: { broken: false, arrows: 0, carries: 0 }, named: ['stuck'] },
  { lesson: '2.7', flaw: { broken: true, arrows: 0, carries: 1 }, named: ['lost-update'] },
  { lesson: '2.10.6', flaw: { broken: true, arrows: 0, carries: 0 }, named: ['over-limit'] },
  // A shared count is no stock: nothing is sold.
  { lesson: '3.7.7', flaw: { broken: true, arrows: 0, carries: 1 }, named: ['lost-update'] },
  { lesson: '003.pause', flaw: { broken: true, arrows: 0, carries: 1 }, named: ['lost-update'] },
];
/** That of 2.3 is observed while it plays. */
const [LATE_DELETE] = ALL_RACES.filter(({ lesson }) => lesson === '2.3');
const RACES = ALL_RACES.filter((race) => race !== LATE_DELETE && (SOAK || ['1.1', '2.6'].includes(race.lesson)));
/** Between the last caption and the verdict, and between the verdict and the explanation. */
const MIN_CLIMAX_MS = 500;
/** From an event to its caption. */
const MAX_CAPTION_DELAY_MS = 300;
const NOTHING_RED = { broken: false, arrows: 0, carries: 0 };

describe('the words of a race', () => {
  const wordless = (points) => points.flatMap((event) => Object.entries(languages)
    .filter(([, words]) => /** @type {(event: object) => string} */ (words.told)({ actor: 'A', event, value: '7' }).includes(`${event} 7`))
    .map(([language]) => `${event} in ${language}`));

  it('every point has words in both languages', () => {
    const source = readFileSync(new URL('../../src/section/points.rs', import.meta.url), 'utf8');
    const points = [...source.matchAll(/^ {4}[A-Z]\w+ = "([a-z-]+)",$/gm)].map(([, name]) => name);
    assert.ok(points.length > 25, `${points}`);
    // The log says `deleted` in the place of `unlocked`.
    assert.deepEqual(wordless(points.filter((name) => name !== 'unlocked')), []);
    assert.deepEqual(wordless(['wordless']), ['wordless in zh', 'wordless in en']);
  });
});

describe('the model of a race', () => {
  const HELD = { actor: 'lock', event: 'held', owner: 'B', pttl: 600_000, t_us: 1_000 };
  const FREE = { actor: 'lock', event: 'free', t_us: 500_000 };
  const DELETED = { actor: 'A', event: 'deleted', value: 'foreign', t_us: 500_000 };
  for (const [first, second] of [[FREE, DELETED], [DELETED, FREE]]) {
    it(`ends the wedge where the arrow is, with ${first.event} told first`, () => {
      const recording = { ...emptyRecording(), stepped: true };
      let before = 0;
      for (const event of [HELD, first, second]) {
        addEvent(recording, event, before);
        before = event.t_us;
      }
      const { arrows: [arrow], locks: [{ wedges: [wedge] }] } = modelOf(recording.events);
      assert.ok(wedge.from < arrow.at && arrow.at <= wedge.to, `${arrow.at} in ${wedge.from} to ${wedge.to}`);
    });
  }

  const step = (t_us, zh) => ({ t_us, actor: 'step', event: 'step', value: JSON.stringify({ zh, en: zh }) });
  const EVENTS = [
    step(0, '读'), { t_us: 700, actor: 'A', event: 'read', value: '5000' }, { t_us: 800, actor: 'B', event: 'read', value: '5000' },
    step(900, '写，删锁'), { t_us: 1_600, actor: 'B', event: 'written', value: '4999' }, { t_us: 1_900, actor: 'A', event: 'written', value: '4999' }, { t_us: 2_000, actor: 'A', event: 'deleted' },
  ].map((e) => ({ ...e, t_us: e.t_us * 100 }));

  for (const [how, last] of /** @type {const} */ ([['told by the server', { actor: 'lock', event: 'free', owner: 'B' }], ['deleted by its owner', { actor: 'B', event: 'deleted', owner: 'B' }]])) {
    it(`says at the end that a lock is free, ${how}`, () => {
      const events = [{ actor: 'B', event: 'taken' }, { actor: 'lock', event: 'held', owner: 'B', pttl: 30_000 }].map((e, i) => ({ ...e, t_us: 1_000 + i }));
      const held = modelOf(events);
      assert.equal(stateAt(held, held.end).locks[0]?.owner, 'B');
      const free = modelOf([...events, { ...last, t_us: 500_000 }]);
      assert.deepEqual(stateAt(free, free.end).locks, [null]);
    });
  }

  it('a caption stands at the last event that it names', () => {
    const at = ({ captions }) => captions.map(({ at: when, zh }) => [when, zh]);
    assert.deepEqual(at(modelOf(EVENTS)), [[70_000, '读'], [200_000, '写，删锁']]);
    assert.deepEqual(at(modelOf(EVENTS.slice(0, -1), 0, 1, { live: true })), [[70_000, '读']]);
    // The end of a lease is told when it ends, whatever was read meanwhile, and however long the lease is.
    const lease = [step(0, 'A 的租约到期'), { t_us: 1_000, actor: 'stock', event: 'stock', value: '5000' }, { t_us: 30_000, actor: 'lock', event: 'expired', owner: 'A' }].map((e) => ({ ...e, t_us: e.t_us * 100 }));
    assert.deepEqual(at(modelOf(lease.slice(0, -1), 2_800_000, 1, { live: true })), []);
    assert.deepEqual(at(modelOf(lease, 3_000_000, 1, { live: true })), [[3_000_000, 'A 的租约到期']]);
    // What has not happened is not waited for: without "还没" it would be. Whose read it is counts: A's comes first.
    for (const [said, told] of /** @type {const} */ ([['A 还没写，B 也读', [[80_000, 'A 还没写，B 也读']]], ['A 写，B 也读', []]])) {
      assert.deepEqual(at(modelOf([step(0, said), ...EVENTS.slice(1, 3)], 0, 1, { live: true })), told);
    }
    // Who stands in the queue of replays is told so at once.
    assert.equal(at(modelOf([step(0, '排队：前面还有 1 个重演')], 9, 1, { live: true })).length, 1);
    // Its wait there is not a part of the picture.
    const played = withoutQueue([step(5, '排队：前面还有 2 个重演'), step(60, '排队：前面还有 1 个重演'), step(65, 'A 读'), { t_us: 66, actor: 'A', event: 'read', value: '5' }]);
    assert.deepEqual(played.map(({ t_us, actor }) => [t_us, actor]), [[5, 'step'], [6, 'A']]);
    // Who waits gets in as the other one releases, which may be told before the caption.
    const next = [step(0, 'A 释放锁'), { t_us: 100, actor: 'B', event: 'locked' }, { t_us: 110, actor: 'A', event: 'released' }, step(120, 'B 才进来'), { t_us: 9_000, actor: 'B', event: 'done' }];
    assert.deepEqual(at(modelOf(next.slice(0, 4), 0, 1, { live: true })), [[110, 'A 释放锁'], [120, 'B 才进来']]);
    // C's entry is told when C enters, not after its write.
    const entry = [step(0, 'C 进来了'), { t_us: 8_000, actor: 'C', event: 'locked' }, { t_us: 12_000, actor: 'C', event: 'read', value: '1' }, { t_us: 16_000, actor: 'C', event: 'written', value: '0' }]
      .map((e) => ({ ...e, t_us: e.t_us * 100 }));
    assert.deepEqual(at(modelOf(entry)), [[800_000, 'C 进来了']]);
  });

  it('a stale value ends at its write, and at a second read', () => {
    const carries = (events) => modelOf(events).lanes.map((lane) => lane.carries);
    assert.deepEqual(carries(EVENTS), [[{ from: 160_000, to: 190_000, value: '5000', read: 70_000 }], []]);
    // Others see a write of a transaction once it is committed.
    const late = [{ t_us: 1, actor: 'B', event: 'written', value: '4999' }, { t_us: 2, actor: 'A', event: 'read', value: '5000' },
      { t_us: 3, actor: 'B', event: 'committed' }, { t_us: 4, actor: 'A', event: 'written', value: '4999' }];
    assert.deepEqual(carries(late), [[{ from: 3, to: 4, value: '5000', read: 2 }], []]);
    assert.deepEqual(carries(late.filter(({ event }) => event !== 'committed')), [[], []]);
    // A's write has waited for the commit, though it is reported first.
    const lateCommit = [...late.filter(({ event }) => event !== 'committed'), { t_us: 5, actor: 'B', event: 'committed' }];
    assert.deepEqual(carries(lateCommit), [[{ from: 4, to: 4, value: '5000', read: 2 }], []]);
    const again = { t_us: 170_000, actor: 'A', event: 'read', value: '4999' };
    assert.deepEqual(carries([...EVENTS, again]), [[], []]);
  });
});

describe('the race of a lesson', () => {
  const suite = lab();

  it('one press plays flaw and cure, red only where it breaks', async () => {
    const tab = await suite.openTab('#/1.1');
    for (const race of RACES) {
      await tab.go(race.lesson);
      await tab.waitForLesson(race.lesson);
      const guess = await tab.count('#race-guess:not([hidden]) button');
      if (guess) await tab.click('#race-guess button');
      await playRace(tab);
      if (guess) await tab.waitForText('#race-guess b', /猜对了|答案/);
      await assertDrawnAsExpected(tab, race);
      if (['1.1', '2.2', '002.cluster'].includes(race.lesson)) await assertAllInSight(tab);
    }
    await tab.assertAccessible();
    tab.assertNoErrors();
    assert.ok((await finishedIds(tab)).includes('1.1'));

    // The twin: overlapping words are found. In one turn, since the picture may be drawn again.
    const found = await tab.evaluate(`(() => {
      const one = [...document.querySelectorAll('#race-flaw text')].find((word) => word.getBBox().width > 10 && !word.classList.contains('later'));
      one.after(one.cloneNode(true));
      return (${overlappingWords})('flaw');
    })()`);
    assert.notDeepEqual(found, []);
  });

  // The README's pictures are of this test: OVERSELL_SCREENS=1 saves them.
  for (const [language, file, picture] of /** @type {const} */ ([['en', 'README.md', 'race.png'], ['zh', 'README.zh-CN.md', 'race.zh-CN.png']])) {
    itInSoak(`plays the race that ${file} names`, async () => {
      const read = readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
      const lesson = named(read, picture);
      const { replays } = await getJson(`${suite.at.http}/replays`);
      assert.ok(replays.some((race) => race.lesson === lesson && !race.cannot), `${file} names ${lesson}, which has no race`);
      // The twin: a lesson without a race.
      assert.ok(!replays.some((race) => race.lesson === named(read.replace(lesson, '1.3'), picture)));
      const tab = await suite.openTab('', [1280, 800]);
      await tab.click(`#${language}`);
      await tab.go(lesson);
      await tab.waitForLesson(lesson);
      await playRace(tab);
      await tab.evaluate(() => document.getElementById('race-flaw-part').scrollIntoView({ block: 'start', behavior: 'instant' }));
      if (process.env.OVERSELL_SCREENS === '1') {
        const clip = await tab.evaluate(() => {
          const [a, b] = ['race-flaw-part', 'race-why'].map((id) => document.getElementById(id).getBoundingClientRect());
          return { x: a.left - 8, y: scrollY + a.top - 4, width: a.width + 16, height: b.bottom - a.top + 12 };
        });
        await tab.page.screenshot({ path: fileURLToPath(new URL(`../../docs/${picture}`, import.meta.url)), clip });
      }
      tab.assertNoErrors();
    });
  }

  itInSoak('has room for the stock before the first sale', async () => {
    for (const size of /** @type {import('./support.mjs').Size[]} */ ([[1440, 900], [1024, 768], [390, 844]])) {
      const tab = await suite.openTab('#/1.1', size);
      await tab.waitForLesson('1.1');
      if (size[0] === 1024) await tab.click('#projector');
      await playRace(tab);
      const stock = await tab.evaluate(() => [...document.querySelectorAll('#race-cure .label.bold')].map((label) => label.textContent));
      assert.deepEqual(stock, ['5000', '4999', '4998'], `${size}`);
      const marks = await tab.evaluate(() => [...document.querySelectorAll('#race-cure line.shelf-line[x1]')].filter((line) => line.getAttribute('y1') !== line.getAttribute('y2')).map((line) => line.getBoundingClientRect().left));
      const labels = await tab.evaluate(() => [...document.querySelectorAll('#race-cure .label.bold')].map((label) => [label.getBoundingClientRect().left]));
      // Each number stands at its own mark, before the next one.
      assert.ok(labels.every(([left], i) => left >= marks[i] && left <= Math.min(marks[i] + 12, marks[i + 1] ?? Infinity)), JSON.stringify({ size, marks, labels }));
      for (const half of ['flaw', 'cure']) assert.deepEqual(await tab.evaluate(overlappingWords, half), [], `${size}, ${half}`);
      await tab.screenshot(`stock-1.1-${size[0]}`);
    }
  });

  it('says before the press what a lab without options cannot play', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const cannot = replays.filter((race) => race.cannot);
    assert.ok(cannot.length > 3);
    assert.deepEqual(cannot.filter((race) => [race.cannot.zh, race.cannot.en].some((why) => !/make lab(?! --)/.test(why))).map(({ lesson }) => lesson), []);
    // What cuts links or promotes a replica takes more than a plain lab.
    assert.equal(cannot.filter(({ cannot: { zh } }) => zh.includes("make lab LAB='--links --replica'")).length, 6);
    const tab = await suite.openTab('#/2.8');
    for (const { lesson, cannot: { zh } } of cannot) {
      await tab.go(lesson);
      await tab.waitForLesson(lesson);
      await tab.waitFor((why) => document.getElementById('race-idle').textContent.includes(why), zh);
      assert.equal(await tab.count('#race-run[aria-disabled=true]'), 1, lesson);
    }
    tab.assertNoErrors();
  });

  it('captions and highlighted commands follow the events', async (test) => {
    const tab = await suite.openTab('#/2.3');
    await tab.waitForLesson('2.3');
    // Each caption, as soon as it appears, with what is drawn at that moment.
    await tab.evaluate(() => {
      const heard = (/** @type {any} */ (window).heard = []);
      const say = document.getElementById('race-flaw-say');
      new MutationObserver(() => heard.push({
        said: say.textContent, lock: [...document.querySelectorAll('#race-flaw .now')].map((now) => now.textContent).join(' '),
        red: getComputedStyle(document.getElementById('race-flaw-end')).visibility === 'visible',
        // The player's time, which is drawn after the caption.
        at: parseFloat(document.getElementById('race-at').textContent), when: performance.now(),
      })).observe(say, { childList: true });
      // When verdicts and explanation were shown.
      const shown = (/** @type {any} */ (window).shown = {});
      for (const id of ['race-flaw-end', 'race-cure-end', 'race-why']) {
        const one = document.getElementById(id);
        new MutationObserver(() => {
          if (!one.classList.contains('later') && document.querySelector('#race-flaw circle')) shown[id] ??= performance.now();
        }).observe(one, { attributes: true, attributeFilter: ['class'] });
      }
      // The longest time in which the page could not draw.
      const stalls = (/** @type {any} */ (window).stalls = { longest: 0, last: performance.now() });
      setInterval(() => Object.assign(stalls, { longest: Math.max(stalls.longest, performance.now() - stalls.last), last: performance.now() }), 20);
      // Also the picture's left, and the distance to the other one below, while it plays.
      const stood = (/** @type {any} */ (window).stood = { left: new Set(), top: new Set() });
      new MutationObserver(() => {
        if (!document.querySelector('#race-run.cancel')) return;
        // Meanwhile a notice appears above.
        document.getElementById('notice').textContent = '8100 没有应答';
        document.getElementById('notice').hidden = false;
        stood.left.add(document.querySelector('#race-flaw .axis text').getAttribute('x'));
        stood.top.add(document.getElementById('race-cure-part').offsetTop - document.getElementById('race-flaw-part').offsetTop);
      }).observe(document.getElementById('race-flaw'), { childList: true, subtree: true });
    });
    await playRace(tab);
    const stood = await tab.evaluate('({ left: [...window.stood.left], top: [...window.stood.top] })');
    assert.deepEqual([stood.left.length, stood.top.length], [1, 1], `it stands still while it plays: ${JSON.stringify(stood)}`);
    await assertDrawnAsExpected(tab, LATE_DELETE);
    const heard = await tab.evaluate('window.heard.filter(({ said }) => said)');
    assert.ok(heard.length > 5, JSON.stringify(heard));
    const ended = heard.find(({ said }) => said.startsWith('A 的租约到期'));
    assert.doesNotMatch(ended.lock, /A 剩/, 'the lease has ended by then');
    assert.ok(heard.slice(0, -1).every(({ red }) => !red), 'the verdict comes last');
    // One thing after the other is read: the last caption, the verdict, the explanation.
    const shown = await tab.evaluate('window.shown');
    const verdict = Math.max(shown['race-flaw-end'], shown['race-cure-end']);
    assert.ok(shown['race-flaw-end'] - heard.at(-1).when >= MIN_CLIMAX_MS && shown['race-why'] - verdict >= MIN_CLIMAX_MS, JSON.stringify({ ...shown, caption: heard.at(-1) }));
    // Each caption is on the page as soon as its event has come.
    const [captions, stall] = await tab.evaluate(async () => {
      const [{ modelOf: model }, { sessionStore }] = await Promise.all(['timeline/model', 'shared/storage'].map((name) => import(`${location.origin}/js/${name}.js`)));
      return [model(sessionStore.get('race 2.3 false').events).captions, /** @type {any} */ (window).stalls.longest];
    });
    assert.deepEqual(heard.map(({ said }) => said), captions.map(({ zh }) => zh).filter((zh) => heard.some(({ said }) => said === zh)), 'each caption once, in order');
    // C is let in a tenth of a second after A's DEL: on a slow machine one drawing may bring both, and the later caption tells when it came.
    const late = captions.map(({ at, zh }, i) => ({ zh, ms: Math.round(1000 * heard.find(({ said }) => captions.slice(i).some((c) => c.zh === said))?.at - at / 1000) }));
    assert.ok(late.every(({ ms }) => ms <= MAX_CAPTION_DELAY_MS + stall), `${stall} ms without a drawing: ${JSON.stringify(late)}`);
    test.diagnostic(`captions after ${late.map(({ ms }) => ms)} ms; verdict after ${Math.round(shown['race-flaw-end'] - heard.at(-1).when)} ms, explanation after ${Math.round(shown['race-why'] - verdict)} ms`);

    const sent = await tab.page.$$eval('#race-flaw-lines li', (all) => all.map((line) => line.textContent));
    assert.ok(sent.some((line) => /^ASET lock:redis-setnx-ttl 111 NX PX 3000/.test(line)), sent.join('\n'));
    assert.ok(sent.some((line) => /^ADEL lock:redis-setnx-ttl.*删的是 B 的$/.test(line)), sent.join('\n'));
    assert.ok(sent.some((line) => /^BSET stock 4999→ OK$/.test(line)), sent.join('\n'));
    // A caption's names have the colours of their lanes.
    assert.ok(await tab.evaluate(() => [...document.querySelectorAll('#race-flaw-say [data-actor=B]')].some((name) => name.textContent === 'B' && getComputedStyle(name).color === getComputedStyle(document.querySelector('#race-flaw .who[data-actor=B]')).fill)));
    // What lost something is red there too: B's read and the write over C's.
    assert.deepEqual(await tab.page.$$eval('#race-flaw-lines .guilty', (all) => all.map((line) => line.textContent.slice(0, 4))), ['BGET', 'BSET']);

    // Back to the beginning and on by caption: the highlighted line is the last one sent, by then A's DEL, or C's request right after it.
    await tab.evaluate(() => /** @type {HTMLElement} */ (document.activeElement).blur());
    let presses = 0;
    const stepped = new Set();
    await waitUntil(async () => {
      await tab.pressKey('ArrowLeft');
      return (await tab.text('#race-at')) === '0.00 s';
    });
    await waitUntil(async () => {
      await tab.pressKey('ArrowRight');
      presses += 1;
      stepped.add(await tab.text('#race-flaw-say'));
      if (/^A 写完，删锁/.test(await tab.text('#race-flaw-say'))) {
        assert.match(await tab.text('#race-flaw-lines .lit'), /^(ADEL|C(SET lock|GET stock))/);
        const coming = await tab.page.$$eval('#race-flaw-lines .coming', (all) => all.map((line) => line.textContent));
        assert.ok(!coming.some((line) => line.startsWith('ADEL')), coming.join('\n'));
      }
      return tab.evaluate(() => getComputedStyle(document.getElementById('race-flaw-end')).visibility === 'visible');
    });
    assert.ok(presses < 20, `${presses} presses through all captions of both`);
    assert.deepEqual(captions.filter(({ zh }) => !stepped.has(zh)), [], 'each caption has a step of its own');
    tab.assertNoErrors();
  });

  itInSoak('as text nobody waits for a free lock', async () => {
    const tab = await suite.openTab('#/1.6');
    await tab.waitForLesson('1.6');
    await playRace(tab);
    const told = await tab.page.$$eval('#race-told ol', (lists) => lists.map((list) => [...list.children].map((line) => line.textContent.replace(/^[\d.]+ s /, ''))));
    assert.equal(told.length, 2);
    const waits = (/** @type {string[]} */ lines) => lines.filter((line) => /^[AB]：等锁$/.test(line));
    assert.deepEqual(waits(told[0]), [], 'in the flaw each mutex is free');
    // The twin: with one mutex for both, B waits.
    assert.ok(waits(told[1]).length > 0, told[1].join('\n'));
    tab.assertNoErrors();
  });

  it('is finished only if both halves end as meant', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    // The first half to end does not end as meant.
    await tab.evaluate(() => {
      const listen = EventSource.prototype.addEventListener;
      let spoiled = 0;
      EventSource.prototype.addEventListener = function (/** @type {string} */ name, /** @type {any} */ act) {
        listen.call(this, name, name !== 'done' ? act : (/** @type {any} */ { data }) => {
          const ending = JSON.parse(data);
          if ('as_meant' in ending && (spoiled += 1) === 1) ending.as_meant = false;
          act({ data: JSON.stringify(ending) });
        });
      };
    });
    await playRace(tab);
    await tab.waitForText('#race', /这一次和平时不一样/);
    assert.deepEqual(await finishedIds(tab), []);
    tab.assertNoErrors();
  });

  it('asks before a race only what its lesson asks', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const tab = await suite.openTab('#/1.8');
    await tab.waitForLesson('1.8');
    const asked = await tab.evaluate(async (all) => {
      const { questionOf } = await import(`${location.origin}/js/race/outcome-guess.js`);
      return all.filter(questionOf).map(({ lesson }) => lesson);
    }, replays);
    assert.deepEqual(asked.sort(), Object.keys(QUESTIONS).sort());
    // A lesson without one has no guess, neither here nor on a phone of the class.
    for (const id of ['race-guess', 'race-class']) assert.equal(await tab.evaluate((at) => document.getElementById(at).checkVisibility(), id), false, id);
    const phone = await suite.openTab('class.html#/1.8?me', PHONE);
    await phone.waitForText('#guess-ask', /^看前面的屏幕。$/);
    assert.equal(await phone.count('#guess-choices button'), 0);
    tab.assertNoErrors();
    phone.assertNoErrors();
  });

  itInSoak('a step back shows the caption of that moment', async () => {
    const tab = await suite.openTab('#/4.3.2');
    await tab.waitForLesson('4.3.2');
    await playRace(tab);
    // The cure has ended there, and the flaw's B still waits.
    await tab.pressKey('ArrowLeft');
    await tab.waitForElement('#race-flaw .later[data-event=failed][data-actor=B]');
    assert.match(await tab.text('#race-flaw-say'), /^B 插不进去/);
    // Before B comes nothing is said of it.
    await waitUntil(async () => {
      await tab.pressKey('ArrowLeft');
      return !/^B/.test(await tab.text('#race-flaw-say'));
    });
    assert.equal(await tab.evaluate(() => [...document.querySelectorAll('#race-flaw .now')].some((now) => now.textContent === '等待中')), false);
    tab.assertNoErrors();
  });

  it('is accessible in the dark and on a phone', async () => {
    const tab = await suite.openTab('#/1.1', PHONE);
    await tab.waitForLesson('1.1');
    await playRace(tab);
    assert.ok(!(await tab.isWiderThanWindow()));
    await tab.evaluate(() => { document.getElementById('race-flaw').scrollLeft = 10_000; });
    await tab.waitFor(() => {
      const [box, name] = [document.getElementById('race-flaw'), document.querySelector('#race-flaw .who')].map((one) => one.getBoundingClientRect());
      return name.left >= box.left - 1 && name.right <= box.right;
    });
    await tab.evaluate(() => void (document.documentElement.dataset.theme = 'dark'));
    await tab.click('#en');
    await tab.assertAccessible();
    await tab.screenshot('race-1.1-phone-dark');
    await tab.page.reload();
    await tab.waitForElement('#race-why:not(.later)');
    assert.ok((await tab.count('#race-flaw [data-kind=overlap]')) > 0, 'it stays after a reload');
    tab.assertNoErrors();
  });

  itInSoak('oversells only if the handles let A outlive its lease', async () => {
    const tab = await suite.openTab('#/2.3');
    await tab.waitForLesson('2.3');
    await tab.evaluate(() => {
      const captions = (/** @type {any} */ (window).captions = []);
      const say = document.getElementById('race-flaw-say');
      new MutationObserver(() => captions.push(say.textContent)).observe(say, { childList: true });
    });
    await tab.press('#race-timing');
    await tab.waitForElement('#race-why:not(.later) [data-anomaly=lost-update]');
    // Captions are the events in words.
    const captions = await tab.evaluate('window.captions.filter(Boolean)');
    const events = await tab.page.$$eval('#race-told li', (all) => all.map((li) => li.textContent.replace(/^[\d.]+ s /, '')));
    assert.ok(captions.length > 3, JSON.stringify(captions));
    assert.deepEqual(captions.filter((caption) => !events.includes(caption)), []);
    // B reads and writes at once: both are seen.
    const [read, written] = await tab.evaluate(() => ['read', 'written'].map((event) => {
      const { left, right } = document.querySelector(`#race-flaw circle[data-actor=B][data-event=${event}]`).getBoundingClientRect();
      return { left, right };
    }));
    assert.ok(read.right <= written.left, JSON.stringify({ read, written }));
    await tab.screenshot('timing-2.3');
    await tab.assertAccessible();
    const drag = (/** @type {Record<string, number>} */ times) => tab.evaluate((to) => {
      for (const [name, ms] of Object.entries(to)) {
        const handle = /** @type {HTMLInputElement} */ (document.getElementById(`timing-${name}`));
        handle.value = String(ms);
        handle.dispatchEvent(new Event('input', { bubbles: true }));
      }
      document.getElementById('timing-after').dispatchEvent(new Event('change', { bubbles: true }));
    }, times);
    await drag({ pause: 500, lease: 6000, after: 200 });
    await tab.waitForText('#race-why:not(.later)', /^这样的时间没有超卖/);
    assert.equal(await tab.count('#race-flaw .overlap, #race-flaw [data-kind=overlap]'), 0);
    // A handle moved during a replay cancels it; the last position counts.
    await drag({ pause: 6000, lease: 1500 });
    await tab.waitForElement('#race-run.cancel');
    await drag({ pause: 2500, lease: 1000 });
    await tab.waitForElement('#race-why:not(.later) [data-anomaly=lost-update]');
    await tab.waitForText('#timing-lease-is', /^1 秒$/);
    tab.assertNoErrors();
  });

  for (const { lesson, together } of [{ lesson: '1.3', together: 2 }, { lesson: '2.10.1', together: 0 }]) {
    it(`draws two who buy at once in ${lesson} ${together ? 'together' : 'apart'}`, async () => {
      const tab = await suite.openTab(`#/${lesson}?hold_ms=500`);
      await tab.waitForElement(`#chapters [aria-current][data-id="${lesson}"]`);
      await tab.press('#buy-two');
      await tab.waitForCount('#answers [data-kind=inside]', 2);
      assert.equal(await tab.count('#answers [data-kind=overlap]'), together);
      tab.assertNoErrors();
    });
  }
});

/** The lesson that stands last before this picture. @param {string} readme @param {string} picture */
const named = (readme, picture) => readme.slice(0, readme.indexOf(`docs/${picture}`)).match(/\d+(?:\.\d+)+/g)?.at(-1) ?? '';

/** The lessons of the ninety minutes that this browser has finished. @param {Tab} tab @returns {Promise<string[]>} */
const finishedIds = (tab) => tab.evaluate(() => JSON.parse(localStorage.getItem('oversell.seen') ?? '[]'));

/** One press, then wait for the explanation. @param {Tab} tab */
async function playRace(tab) {
  await tab.waitForElement('#race-run[aria-disabled=false]');
  await tab.press('#race-run');
  await tab.waitForElement('#race-run.cancel');
  await tab.waitForElement('#race.ended');
}

/** Claim, button, both pictures and the explanation are in sight together, on the projector too. @param {Tab} tab */
async function assertAllInSight(tab) {
  for (const large of [false, true]) {
    if (large) await tab.click('#projector');
    await tab.waitFor(() => {
      scrollTo({ top: 0, behavior: 'instant' });
      return document.getElementById('race-why').getBoundingClientRect().bottom <= innerHeight;
    });
  }
  await tab.click('#projector');
}

/** What is drawn and said of a finished race. @param {Tab} tab @param {any} race one of those above */
async function assertDrawnAsExpected(tab, { lesson, flaw, cure = NOTHING_RED, named }) {
  assert.doesNotMatch(await tab.evaluate(() => document.getElementById('race').textContent), /没有跑成|这一次和平时不一样|undefined|null/, lesson);
  for (const [half, meant] of /** @type {const} */ ([['flaw', flaw], ['cure', cure]])) {
    const count = (kind) => tab.count(`#race-${half} [data-kind=${kind}]:not(.later)`);
    const seen = { broken: (await count('overlap')) > 0, arrows: await tab.count(`#race-${half} .arrow.red:not(.later)`), carries: await count('carry') };
    assert.deepEqual(seen, meant, `${lesson}, ${half}`);
    assert.deepEqual(await tab.evaluate(overlappingWords, half), [], `${lesson}, ${half}`);
  }
  const red = await tab.evaluate(() => ['flaw', 'cure'].map((half) => document.getElementById(`race-${half}-end`).classList.contains('red')));
  assert.deepEqual(red, [true, lesson === '2.3'], lesson);
  assert.deepEqual(await tab.page.$$eval('#race-why [data-anomaly]', (all) => all.map((one) => one.getAttribute('data-anomaly'))), named, lesson);
  if (named.includes('stuck')) assert.doesNotMatch(await tab.text('#race-flaw-end'), /只有一个/, `${lesson}: stuck does not look fine`);
  // Read in one turn, since both may be drawn again.
  const [a, b] = await tab.evaluate(() => ['flaw', 'cure'].map((half) => [...document.querySelectorAll(`#race-${half} .axis text`)].map((text) => text.getAttribute('x') + text.textContent)));
  assert.deepEqual(a, b, 'both at one scale');
  assert.deepEqual(await tab.evaluate(unlikeLegend, '#race .half', '#race-legend'), [], lesson);
  await tab.screenshot(`race-${lesson}-1280`);
}

/** The words of one half that are cut off or overlap. @param {string} half */
function overlappingWords(half) {
  /** @type {NodeListOf<SVGTextElement>} */
  const words = document.querySelectorAll(`#race-${half} text`);
  const shown = [...words].filter((text) => text.textContent.trim() && !text.classList.contains('later'));
  const boxes = shown.map((text) => ({ text: text.textContent, box: text.getBBox() }));
  /** @type {SVGSVGElement} */
  const picture = document.querySelector(`#race-${half} svg`);
  const right = picture.width.baseVal.value;
  const cut = boxes.filter(({ box }) => box.x < -1 || box.x + box.width > right + 2).map(({ text }) => `${text} is cut off`);
  const met = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => {
    // The letters without the line's leading.
    const across = Math.min(a.box.x + a.box.width, b.box.x + b.box.width) - Math.max(a.box.x, b.box.x);
    const down = Math.min(a.box.y + a.box.height, b.box.y + b.box.height) - Math.max(a.box.y, b.box.y);
    return across > 2 && down > 8;
  }).map((b) => `${a.text} on ${b.text}`));
  return [...cut, ...met];
}
