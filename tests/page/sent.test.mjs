/**
 * What every race really does: a line that was sent is what was sent (scripts by their text, the library's commands, answers as they came),
 * each caption comes with its event, and the questions are answered as the races end.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NINETY_MINUTES } from '../../static/js/lesson/ninety-minutes.js';
import { isWrong } from '../../static/js/race/flaw.js';
import { QUESTIONS } from '../../static/js/race/questions.js';
import { parseEvent } from '../../static/js/timeline/events.js';
import { heightOf, sceneOf } from '../../static/js/timeline/layout.js';
import { modelOf } from '../../static/js/timeline/model.js';
import { addEvent, emptyRecording } from '../../static/js/timeline/player.js';
import { languages } from '../../static/js/words/all.js';
import { NEEDS_OPTIONS, QUICK_WITH_OPTIONS, UNLISTED, linesIn, play, problemsOf, wrongCaptions } from './race-events.mjs';
import { getJson, itInSoak, lab, sample } from './support.mjs';

describe('the lines that were really sent', () => {
  const suite = lab();

  /** The races that are looked at: each fourth, all with `OVERSELL_SOAK=1`. @returns {Promise<any[]>} */
  const races = async () => sample((await getJson(`${suite.at.http}/replays`)).replays.filter(isPlayed));

  it('are of every race that a lab without options can play, and each of the ninety minutes has a question', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const playable = replays.filter(isPlayed);
    assert.ok(playable.length > 25, `only ${playable.length} races`);
    assert.deepEqual(replays.filter((race) => !isPlayed(race)).map(({ lesson }) => lesson).sort(), [...NEEDS_OPTIONS, ...QUICK_WITH_OPTIONS].sort());
    // Each lesson of the ninety minutes has a race, and a question of its own.
    const asks = (id) => replays.some(({ lesson }) => lesson === id) && [QUESTIONS[id]?.zh, QUESTIONS[id]?.en].every((words) => new Set(words).size === 5);
    assert.deepEqual(NINETY_MINUTES.map(([id]) => id).filter((id) => !asks(id)), []);
    assert.equal(asks('1.5'), false);
  });

  it('have their answers, and scripts their text, in every race', async () => {
    const played = await races();
    let [commands, scripts] = [0, 0];
    for (const { lesson, actors } of played) {
      for (const cured of [false, true]) {
        const { events } = await play(suite.at.http, lesson, cured);
        const problems = problemsOf(events);
        assert.deepEqual(problems, [], `${lesson}, cured: ${cured}, ${actors}`);
        commands += events.filter(({ event }) => event === 'answered').length;
        scripts += events.filter(({ event, value }) => event === 'sent' && /EVALSHA[^\n]*\n\S/.test(value)).length;
      }
    }
    assert.ok(commands > 3 * played.length && 2 * scripts > played.length, `${commands} commands, ${scripts} scripts of ${played.length} races`);
  });

  // In the English words of a caption stands who does what, too; the page reads its Chinese ones.
  it('each caption comes with its event, in every race', async () => {
    const played = await races();
    const wrong = [];
    let captions = 0;
    for (const { lesson } of played) {
      for (const cured of [false, true]) {
        const { events } = await play(suite.at.http, lesson, cured);
        captions += events.filter(({ actor }) => actor === 'step').length;
        wrong.push(...wrongCaptions(events).map((what) => `${lesson}, cured: ${cured}: ${what}`));
      }
    }
    assert.ok(captions > 7 * played.length, `${captions} captions of ${played.length} races`);
    assert.deepEqual(wrong, []);
  });

  it('no event makes a picture higher, and a phone cuts no joined label, in every race', async () => {
    const played = await races();
    let growing = 0;
    for (const { lesson, actors, cured_actors, shows, cured_shows } of played) {
      for (const [cured, who, comes] of /** @type {const} */ ([[false, actors, shows], [true, cured_actors, cured_shows]])) {
        const { events } = await play(suite.at.http, lesson, cured);
        // Each event has its room in time, as at the pace of the page.
        const recording = { ...emptyRecording(), stepped: true };
        for (const [i, event] of events.map(parseEvent).entries()) addEvent(recording, event, events[i - 1]?.t_us ?? 0);
        const all = recording.events.filter(({ actor, key }) => actor !== 'lock' || !/barrier/.test(key ?? ''));
        const [height, end] = [heightOf(who.length, comes, false), all.at(-1)?.t_us ?? 0];
        for (const order of [all, [...all].reverse(), [...all].sort((a, b) => a.actor.localeCompare(b.actor))]) {
          const scenes = order.map((_, n) => drawn(order.slice(0, n + 1), end, { who, comes, height }));
          assert.deepEqual([...new Set(scenes.map((scene) => Math.round(scene.height)))], [Math.round(height)], `${lesson}, cured: ${cured}`);
          const needed = Math.max(...scenes.map((scene) => scene.needed));
          assert.ok(needed < height * MOST_CROWDED, `${lesson}, cured: ${cured}: it needs ${needed} of ${height}`);
        }
        if (new Set(all.map((_, n) => drawn(all.slice(0, n + 1), end, { who }).height)).size > 1) growing += 1;
        const labels = drawn(all, end, { who, comes, height, width: PHONE }).lanes.flatMap((lane) => lane.labels);
        const cut = labels.filter(({ left, width, parts }) => parts.length > 1 && left + width > PHONE).map(({ parts }) => parts.map(({ text }) => text));
        assert.deepEqual(cut, [], `${lesson}, cured: ${cured}: joined on a phone`);
      }
    }
    // The twin: without the given height most grow.
    assert.ok(growing > played.length, `only ${growing} pictures of ${played.length} races`);
  });

  it('each flaw is red and has a name, and a cure only where it is meant to oversell', async () => {
    for (const race of await races()) {
      const [flaw, cure] = [await play(suite.at.http, race.lesson, false), await play(suite.at.http, race.lesson, true)];
      // §2.3 cures the late delete alone: its lease still ends too soon.
      const isMeant = (race.cured_ends.sold ?? 0) > (race.cured_ends.gone ?? 0);
      assert.deepEqual([flaw, cure].map(({ ending }, n) => isWrong(ending, race, n === 1)), [true, isMeant], race.lesson);
      for (const words of Object.values(languages)) for (const name of race.anomalies) assert.match(/** @type {any} */ (words).anomaly(name), /\S/);
      // What is declared is what the picture shows.
      const model = modelOf(flaw.events.map(parseEvent));
      assert.equal(race.anomalies.includes('late-release'), model.arrows.some(({ to }) => to === 'lock'), `${race.lesson}: a late release`);
      if (race.ends.sold > race.ends.gone) assert.equal(race.anomalies.includes('lost-update'), model.lanes.some(({ carries }) => carries.length > 0), `${race.lesson}: a lost update`);
    }
    // Neither a cure nor a flaw that did not come about is wrong.
    const ends = { sold: 1, gone: 1, inside: 1 };
    const race = /** @type {any} */ ({ ends, cured_ends: ends });
    assert.deepEqual([[true, true], [false, false], [false, true]].map(([cured, as_meant]) => isWrong({ ...ends, as_meant }, race, cured)), [false, false, true]);
  });

  it('a caption that comes late or early is refused', () => {
    const say = (zh, en) => ({ actor: 'step', event: 'step', value: { zh, en } });
    const [read, written, later] = [['A', 'read'], ['A', 'written'], ['B', 'written']].map(([actor, event]) => ({ actor, event }));
    const wrong = (...events) => wrongCaptions(events.map((e, i) => ({ t_us: i * 1_000_000, ...e }))).length;
    assert.equal(wrong(say('A 读，写', 'A reads, and writes'), read, written, say('B 写', 'B writes'), later), 0);
    // It names what does not come, and another says in Chinese less than in English.
    assert.equal(wrong(say('A 提交', 'A commits'), read, written, say('B 写', 'B writes'), later), 1);
    assert.equal(wrong(say('A 读', 'A reads, and writes'), read, written, say('B 写', 'B writes'), later), 1);
  });

  it('each question is answered as its race ends', async () => {
    for (const [lesson, answer] of sample(Object.entries(ANSWERS))) {
      const [flaw, cure] = [await play(suite.at.http, lesson, false), await play(suite.at.http, lesson, true)];
      for (const half of [flaw, cure]) assert.equal(half.ending.as_meant, true, `${lesson}: ${JSON.stringify(half.ending)}`);
      assert.equal(QUESTIONS[lesson].is, answer(flaw, cure), `${lesson}: ${QUESTIONS[lesson].en[1 + QUESTIONS[lesson].is]}`);
    }
    assert.deepEqual(Object.keys(ANSWERS).sort(), Object.keys(QUESTIONS).sort());
  });

  it('are refused where an answer or a text is missing', () => {
    const sent = (value) => ({ actor: 'A', event: 'sent', value, t_us: 1 });
    const answered = { actor: 'A', event: 'answered', key: 'GET lock', value: '(nil)' };
    const done = { actor: 'A', event: 'sold' };
    assert.deepEqual(problemsOf([sent('GET lock'), answered, done]), []);
    assert.equal(problemsOf([sent('GET lock'), done]).length, 1);
    assert.equal(problemsOf([sent('EVALSHA 3f… 1 lock'), { ...answered, key: 'EVALSHA 3f… 1 lock' }, done]).length, 1);
    const held = { actor: 'lock', event: 'held', owner: 'A', key: '/curator/lock', t_us: 2 };
    assert.deepEqual(problemsOf([sent('create -s -e /curator/lock/_c_1-lock- 8000'), { ...answered, key: 'create -s -e /curator/lock/_c_1-lock- 8000' }, held, done]), []);
    assert.equal(problemsOf([sent('GET lock'), answered, held, done]).length, 1);
    // It is named by what does not take it, or takes it only later.
    const look = 'ls /curator/lock';
    assert.equal(problemsOf([sent(look), { ...answered, key: look }, held, done]).length, 1);
    const late = (/** @type {number} */ t_us) => problemsOf([{ ...held, t_us: 0 }, { ...sent('create /curator/lock'), t_us }]).length;
    assert.deepEqual([late(49_000), late(51_000)], [0, 1]);
    const onNode = { actor: 'lock', event: 'held', owner: 'A', key: 'redis-2 redLock:1', t_us: 9 };
    assert.deepEqual(['redis-2', 'redis-3'].map((node) => problemsOf([{ ...sent(`[${node}] EVALSHA 3f… 1 redLock:1`), t_us: 1 }, onNode]).length), [0, 1]);
  });

  it('name each request of a lock, in every race', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    const played = await races();
    let lines = 0;
    for (const { lesson } of played) {
      for (const cured of [false, true]) {
        const all = await linesIn(tab, (await play(suite.at.http, lesson, cured)).events);
        lines += all.length;
        assert.deepEqual(all.filter(({ came }) => UNLISTED.test(came)), [], `${lesson}, cured: ${cured}`);
      }
    }
    assert.ok(lines > 10 * played.length, `${lines} lines of ${played.length} races`);
    // The twin: a session of ZooKeeper of which nothing is told.
    const { events } = await play(suite.at.http, '3.6', true);
    assert.ok((await linesIn(tab, events.filter(({ event }) => event !== 'sent'))).some(({ came }) => UNLISTED.test(came)));
    tab.assertNoErrors();
  });

  // An actor's first step sends something: what, is known from a replay at full speed.
  it('the first button of every actor names a statement', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    const without = [];
    for (const race of (await races()).filter(({ scheduled }) => scheduled)) {
      for (const [cured, { goal, stops }] of /** @type {[boolean, any][]} */ ([[false, race.scheduled], [true, race.cured_scheduled]])) {
        // There the statement comes from the service.
        if (goal === 'deadlock') continue;
        const { events } = await play(suite.at.http, race.lesson, cured);
        const sent = await tab.evaluate(async (all, points) => (await import(`${location.origin}/js/race/scheduler.js`)).programOf(all, points)[0].sent, events, stops);
        if (!sent.length) without.push(`${race.lesson}, cured: ${cured}`);
      }
    }
    assert.deepEqual(without, []);
    tab.assertNoErrors();
  });

  it('are shown with the answer that came', async () => {
    const tab = await suite.openTab('#/2.3');
    await tab.waitForLesson('2.3');
    const shown = async (/** @type {any[]} */ events) => (await linesIn(tab, events.map((event, i) => ({ t_us: i * 1000, ...event })))).map(({ actor, text, came, script }) => [actor, text, came, script]);
    const sent = (value, actor = 'A') => ({ actor, event: 'sent', value });
    const answered = (key, value, actor = 'A') => ({ actor, event: 'answered', key, value });
    // B's name, not 0.
    assert.deepEqual(await shown([sent('GET lock:x'), answered('GET lock:x', '8200-7'), { actor: 'A', event: 'lost' }]), [['A', 'GET lock:x', '→ 8200-7', '']]);
    assert.deepEqual(await shown([sent('GET lock:x'), answered('GET lock:x', '(nil)')]), [['A', 'GET lock:x', '→ (nil)', '']]);
    // A script that Redis has not loaded yet is one line, with its text.
    const [evalsha, text] = ['EVALSHA 3f… 1 lock:x', "return redis.call('del', KEYS[1])"];
    for (const missing of ['NOSCRIPT No matching script.', 'Server error: `NOSCRIPT: No matching script. Please use EVAL.`']) {
      const loaded = [sent(`${evalsha}\n${text}`), answered(evalsha, missing), sent('SCRIPT LOAD -- x'), answered('SCRIPT LOAD -- x', '3f'), sent(evalsha), answered(evalsha, '1')];
      assert.deepEqual(await shown(loaded), [['A', evalsha, '→ 1', text]]);
    }
    // Whoever asks for a free lock does not wait.
    const waits = { actor: 'B', event: 'waits' };
    assert.deepEqual(await shown([waits, { actor: 'B', event: 'locked' }]), [['B', '拿到锁', '', '']]);
    assert.match((await shown([waits, { actor: 'B', event: 'failed', value: 'not-had' }]))[0][1], /^等/);
    // Of an encrypted connection to MySQL nothing can be read: that is said. No race of this lab has one.
    assert.deepEqual(await shown([{ actor: 'B', event: 'locked' }, { actor: 'lock', event: 'held', owner: 'B' }]), [['B', '拿到锁', '· 由锁库发出，没有逐条列出', '']]);
    assert.match((await shown([{ actor: 'B', event: 'locked' }, { actor: 'lock', event: 'held', owner: 'B' }]))[0][2], UNLISTED);
    assert.equal((await shown([{ actor: 'lock', event: 'held', owner: 'A' }, waits, { actor: 'A', event: 'written', value: '4999' }, { actor: 'B', event: 'locked' }])).filter(([who, said]) => who === 'B' && /等/.test(said)).length, 1);
    tab.assertNoErrors();
  });

  it('stand out by what matters in them, and stay whole', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    const read = 'SELECT CAST(count AS SIGNED) AS count, version, fence FROM db_stock WHERE id = ?';
    const shown = (/** @type {string[]} */ ...statements) => tab.evaluate(async (all) => {
      const { withPaleNoise } = await import(`${location.origin}/js/race/sent-commands.js`);
      const line = document.createElement('code');
      line.append(...withPaleNoise(all[0], all.join('\n')));
      const whole = line.textContent;
      for (const noise of line.querySelectorAll('.noise')) noise.remove();
      return [whole, line.textContent];
    }, statements);
    assert.deepEqual(await shown(read, 'UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ?'), [read, 'SELECT count FROM db_stock WHERE id = ?']);
    // The twins: a version and a token that are compared are no noise.
    const compared = 'UPDATE db_stock SET count = ?, version = version + 1 WHERE id = ? AND version = ?';
    assert.deepEqual(await shown(read, compared), [read, 'SELECT count, version FROM db_stock WHERE id = ?']);
    assert.deepEqual(await shown(compared, read), [compared, compared]);
    assert.deepEqual(await shown(read, 'UPDATE db_stock SET fence = ? WHERE id = ? AND fence < ?'), [read, 'SELECT count, fence FROM db_stock WHERE id = ?']);
    await tab.press('#race-run');
    await tab.waitForElement('#race.ended');
    assert.ok((await tab.count('#race-flaw-lines .noise')) > 0);
    tab.assertNoErrors();
  });

  // A script of the course, and the commands of the lock library.
  for (const { lesson, half, script, command } of /** @type {const} */ ([
    { lesson: '2.5', half: 'cure', script: /redis\.call\('get', KEYS\[1\]\) ~= ARGV\[1\]/, command: /^AEVALSHA \S+ 1 lock:redis-setnx-lua.*→ [01]/ },
    { lesson: '003.pause', half: 'flaw', script: /redis\.call\('hdel', KEYS\[1\], ARGV\[1\]\)/, command: /^AEVALSHA \S+ .*→ / },
  ])) {
    (lesson === '003.pause' ? itInSoak : it)(`shows the scripts of ${lesson} as they were sent`, async () => {
      const tab = await suite.openTab(`#/${lesson}`);
      await tab.waitForLesson(lesson);
      await tab.press('#race-run');
      await tab.waitForElement('#race-run.cancel');
      await tab.waitForElement('#race.ended');
      const lines = await tab.page.$$eval(`#race-${half}-lines li`, (all) => all.map((line) => line.textContent));
      assert.ok(lines.some((line) => command.test(line)), lines.join('\n'));
      assert.match((await tab.page.$$eval(`#race-${half}-lines .script`, (all) => all.map((one) => one.textContent))).join('\n'), script);
      const cut = await tab.evaluate(() => ['flaw', 'cure'].flatMap((name) => {
        const box = document.getElementById(`race-${name}-lines`);
        const { top } = box.getBoundingClientRect();
        return [...box.children].filter((line) => line.getBoundingClientRect().top < top - 1 && line.getBoundingClientRect().bottom > top + 1).map((line) => line.textContent);
      }));
      assert.deepEqual(cut, [], 'the lists begin with a whole line');
      await tab.evaluate(() => document.getElementById('race-lines').scrollIntoView({ block: 'start', behavior: 'instant' }));
      await tab.screenshot(`sent-${lesson}`);
      await tab.assertAccessible();
      tab.assertNoErrors();
    });
  }
});

/** A race that this lab can play. `sent-broken.test.mjs` plays the others. @param {any} race */
const isPlayed = ({ lesson, cannot }) => !cannot && !QUICK_WITH_OPTIONS.includes(lesson);

/** Labels overlap where a picture needs more than this share of its height. */
const MOST_CROWDED = 1.15;

/** The picture's width on a screen of 1280 pixels, and on a phone. */
const [DESK, PHONE] = [980, 358];

/** A race at full scale. @param {any[]} events @param {number} end @param {{who: string[], comes?: any, height?: number, width?: number}} how */
function drawn(events, end, { who, comes, height, width = DESK }) {
  const measure = (/** @type {string} */ text) => [...text].reduce((sum, letter) => sum + (letter > '\u2e80' ? 20 : 11), 0) * (width === PHONE ? 0.7 : 1);
  const { tick, arrow, comma } = /** @type {any} */ (languages.zh);
  const words = { tick, arrow, comma, seconds: String, stopped: '' };
  return sceneOf({ width, shown: width, unit: 1, begin: 0, span: end * 1.1, dense: false, height, comes, measure, words, model: modelOf(events, 0, 1, { live: true, actors: who }) });
}

/** @typedef {import('./race-events.mjs').Played} Played */
/** @param {Played} half @param {string} actor @param {string} name */
const eventsOf = ({ events }, actor, name) => events.filter((e) => e.actor === actor && e.event === name);
/** What an actor has told at this event, in order. @param {Played} half @param {string} actor @param {string} name */
const values = (half, actor, name) => eventsOf(half, actor, name).map(({ value }) => String(value));
/** When; Infinity: never. @param {Played} half @param {string} actor @param {string} name @returns {number} */
const timeOf = (half, actor, name) => eventsOf(half, actor, name)[0]?.t_us ?? Infinity;

/** Which of its four answers a race gives to the question of its lesson. @type {Record<string, (flaw: Played, cure: Played) => number>} */
const ANSWERS = {
  1.1: (flaw) => {
    const [a, b] = ['A', 'B'].map((actor) => timeOf(flaw, actor, 'written'));
    if (a === Infinity && b === Infinity) return 3;
    return values(flaw, 'A', 'written').join() !== values(flaw, 'B', 'written').join() ? 2 : Number(a < b);
  },
  1.6: (flaw) => (timeOf(flaw, 'B', 'read') < timeOf(flaw, 'A', 'written') ? 2 : timeOf(flaw, 'B', 'failed') < Infinity ? 3 : 0),
  '1.7.2': (_, cure) => {
    const [read] = values(cure, 'B', 'read');
    return read === '4999' ? 1 : read == null ? 2 : timeOf(cure, 'B', 'failed') < Infinity ? 3 : 0;
  },
  '1.7.3': (_, cure) => ['A', 'B'].flatMap((actor) => values(cure, actor, 'read')).length - 1,
  2.2: (_, cure) => {
    const sent = values(cure, 'B', 'sent');
    const listened = sent.find((line) => /SUBSCRIBE/.test(line));
    if (listened) return listened.includes('__key') ? 2 : 1;
    return sent.filter((line) => /^SET/.test(line) && /lock:/.test(line)).length > 1 ? 0 : 3;
  },
  2.3: (_, cure) => {
    const oversells = cure.ending.sold > cure.ending.gone;
    if (!oversells) return timeOf(cure, 'B', 'read') > timeOf(cure, 'A', 'written') ? 2 : 0;
    return timeOf(cure, 'C', 'locked') < timeOf(cure, 'B', 'written') ? 3 : 1;
  },
  '2.3.gap': (_, cure) => ['1', '0', '(nil)'].indexOf(eventsOf(cure, 'A', 'answered').findLast(({ key }) => key.startsWith('EVALSHA')).value),
  2.7: (_, cure) => {
    const renewals = eventsOf(cure, 'A', 'renew').map(({ t_us }) => t_us);
    if (!renewals.length) return 3;
    const lease = cure.events.find((e) => e.event === 'held' && e.owner === 'A').pttl * 1000;
    const gap = Math.min(...renewals.map((at, i) => at - (renewals[i - 1] ?? timeOf(cure, 'A', 'locked'))));
    // A busy machine makes it longer.
    return gap < lease / 4 ? 2 : gap < 0.7 * lease ? 1 : 0;
  },
  '2.10.6': (_, cure) => {
    const enters = timeOf(cure, 'C', 'locked');
    const left = ['A', 'B'].filter((actor) => timeOf(cure, actor, 'left') < enters).length;
    return enters === Infinity ? 3 : [2, 0, 1][left];
  },
  '3.4.2.herd': (flaw) => {
    const woken = flaw.events.filter(({ event }) => event === 'woken').reduce((sum, { value }) => sum + Number(value), 0);
    return QUESTIONS['3.4.2.herd'].en.slice(1).findIndex((text) => Number(text.replace(',', '')) === woken);
  },
  // A has died in both halves: where the row has no lease nobody sweeps it.
  '4.3.2': (flaw, cure) => {
    if (timeOf(flaw, 'B', 'locked') < Infinity) return 0;
    return timeOf(cure, 'B', 'locked') < Infinity && values(cure, 'A', 'failed').join() === 'dead' ? 1 : 3;
  },
  '003.pause': (_, cure) => {
    if (timeOf(cure, 'A', 'refused-by-row') < Infinity) return 2;
    return timeOf(cure, 'A', 'written') < Infinity ? 3 : timeOf(cure, 'A', 'lost') < Infinity ? 1 : 0;
  },
  '002.new-mutex': (_, cure) => {
    if (values(cure, 'B', 'failed').join() !== 'already-ordered') return 1;
    return timeOf(cure, 'B', 'checked') === Infinity ? 0 : timeOf(cure, 'B', 'commit') < Infinity ? 3 : 2;
  },
};
