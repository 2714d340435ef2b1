/** A line that was really sent is what was sent: scripts by their text, the library's commands, and answers as they came, in every race. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NINETY_MINUTES } from '../../static/js/lesson/ninety-minutes.js';
import { QUESTIONS } from '../../static/js/race/questions.js';
import { getJson, lab, sendJson } from './support.mjs';

describe('the lines that were really sent', () => {
  const suite = lab();

  it('have their answers, and scripts their text, in every race', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    const playable = replays.filter(({ cannot, alone, ends }) => !cannot && !alone && ends.sold != null);
    assert.ok(playable.length > 25, `only ${playable.length} races`);
    // Each lesson of the ninety minutes has a race, and a question of its own.
    const asks = (id) => replays.some(({ lesson }) => lesson === id) && [QUESTIONS[id]?.zh, QUESTIONS[id]?.en].every((words) => new Set(words).size === 5);
    assert.deepEqual(NINETY_MINUTES.map(([id]) => id).filter((id) => !asks(id)), []);
    assert.equal(asks('1.5'), false);
    let [commands, scripts] = [0, 0];
    for (const { lesson, actors } of playable) {
      for (const cured of [false, true]) {
        const events = await play(suite.at.http, lesson, cured);
        const problems = problemsOf(events);
        assert.deepEqual(problems, [], `${lesson}, cured: ${cured}, ${actors}`);
        commands += events.filter(({ event }) => event === 'answered').length;
        scripts += events.filter(({ event, value }) => event === 'sent' && /EVALSHA[^\n]*\n\S/.test(value)).length;
      }
    }
    assert.ok(commands > 100 && scripts > 20, `${commands} commands, ${scripts} scripts`);
  });

  it('are refused where an answer or a text is missing', () => {
    const sent = (value) => ({ actor: 'A', event: 'sent', value });
    const answered = { actor: 'A', event: 'answered', key: 'GET lock', value: '(nil)' };
    const done = { actor: 'A', event: 'sold' };
    assert.deepEqual(problemsOf([sent('GET lock'), answered, done]), []);
    assert.equal(problemsOf([sent('GET lock'), done]).length, 1);
    assert.equal(problemsOf([sent('EVALSHA 3f… 1 lock'), { ...answered, key: 'EVALSHA 3f… 1 lock' }, done]).length, 1);
  });

  it('are shown with the answer that came', async () => {
    const tab = await suite.openTab('#/2.3');
    await tab.waitForLesson('2.3');
    const shown = (/** @type {any[]} */ events) => tab.evaluate(async (given) => {
      const [{ linesOf }, words, own] = await Promise.all(['race/sent-commands', 'words/all', 'shared/language'].map((name) => import(`${location.origin}/js/${name}.js`)));
      own.addWords(words.languages);
      return linesOf(given).map(({ actor, text, came, script }) => [actor, text, came, script]);
    }, events.map((event, i) => ({ t_us: i * 1000, ...event })));
    const sent = (value, actor = 'A') => ({ actor, event: 'sent', value });
    const answered = (key, value, actor = 'A') => ({ actor, event: 'answered', key, value });
    // B's name, not 0.
    assert.deepEqual(await shown([sent('GET lock:x'), answered('GET lock:x', '8200-7'), { actor: 'A', event: 'lost' }]), [['A', 'GET lock:x', '→ 8200-7', '']]);
    assert.deepEqual(await shown([sent('GET lock:x'), answered('GET lock:x', '(nil)')]), [['A', 'GET lock:x', '→ (nil)', '']]);
    // A script that Redis has not loaded yet is one line, with its text.
    const [evalsha, text] = ['EVALSHA 3f… 1 lock:x', "return redis.call('del', KEYS[1])"];
    const loaded = [sent(`${evalsha}\n${text}`), answered(evalsha, 'NOSCRIPT No matching script.'), sent('SCRIPT LOAD -- x'), answered('SCRIPT LOAD -- x', '3f'), sent(evalsha), answered(evalsha, '1')];
    assert.deepEqual(await shown(loaded), [['A', evalsha, '→ 1', text]]);
    // Whoever asks for a free lock does not wait.
    const waits = { actor: 'B', event: 'waits' };
    assert.deepEqual(await shown([waits, { actor: 'B', event: 'locked' }]), [['B', '拿到锁', '', '']]);
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
    it(`shows the scripts of ${lesson} as they were sent`, async () => {
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

/** The events of a race at full speed. @param {string} http @param {string} lesson @param {boolean} cured @returns {Promise<any[]>} */
async function play(http, lesson, cured) {
  const started = await sendJson(`${http}/replays/${lesson}?pace=fast&cured=${cured}`, {});
  assert.equal(started.status, 202, `${lesson}: ${await started.clone().text()}`);
  const { events } = await started.json();
  const text = await (await fetch(new URL(events, `${http}/`))).text();
  return text.split('\n').filter((line) => line.startsWith('data: ')).map((line) => JSON.parse(line.slice(6))).filter(({ actor }) => actor);
}

/** What is untrue or missing of what was sent. @param {any[]} events @returns {string[]} */
function problemsOf(events) {
  const problems = [];
  const ended = new Set(events.filter(({ event }) => ['sold', 'done'].includes(event)).map(({ actor }) => actor));
  for (const actor of ended) {
    const mine = events.filter((e) => e.actor === actor);
    const isCommand = (e) => e.event === 'sent' && !/^(SELECT|START|\/\*)/i.test(e.value);
    for (const e of mine.filter(isCommand)) {
      const [command] = e.value.split('\n');
      const count = (event, of) => mine.filter((one) => one.event === event && of(one) === command).length;
      if (count('answered', ({ key }) => key) < count('sent', ({ value }) => value.split('\n')[0])) problems.push(`${actor}: no answer to ${command}`);
    }
    const scripts = mine.filter((e) => e.event === 'sent' && e.value.includes('EVALSHA'));
    const digests = new Set(scripts.map(({ value }) => /EVALSHA (\S+)/.exec(value)[1]));
    for (const digest of digests) if (!scripts.some(({ value }) => value.includes(digest) && value.includes('\n'))) problems.push(`${actor}: no text of ${digest}`);
  }
  return problems;
}
