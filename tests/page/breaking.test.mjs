/** Breaking servers and instances by hand, from the page and from the class's page. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { BREAKABLE, PHONE, PROGRAM, describeInSoak, getJson, itInSoak, lab, waitUntil } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

describe('the fault panel', () => {
  const suite = lab(...BREAKABLE);

  // The run waits for a paused instance, and the page names that instance and no server; once it resumes the run comes to its verdict. The
  // same with an instance that is killed and started again.
  itInSoak('a run survives a paused and a killed instance', async () => {
    const [sender, victim] = suite.at.instances.map(({ name }) => name);
    // The run lasts twelve seconds, long enough to be paused.
    const tab = await suite.openTab('#/single-update?threads=20&loops=40&hold_ms=300');
    await tab.waitForElement(lightOf(victim));
    await startRun(tab);
    await tab.click(lightOf(victim));
    await pressFault(tab, `pause ${victim}`);
    await tab.waitForText('#say', new RegExp(`^停住了.*在等 ${victim}`));
    await tab.waitForText('#notice', new RegExp(`${victim} 没有应答`));
    assert.doesNotMatch(await tab.text('#notice'), /(mysql|redis|zookeeper) 停了/, 'no server is blamed');
    await pressFault(tab, `resume ${victim}`);
    await tab.waitForText('#say', /^分毫不差/);

    // The instance that sends the load is paused: so is the run, and the page says why.
    await startRun(tab);
    await tab.click(`#breaking-members [data-key="${sender}"]`);
    await pressFault(tab, `pause ${sender}`);
    await tab.waitForText('#say', new RegExp(`^停在.*${sender} 没有应答`));
    await tab.waitForText('#breaking-acts', /像一次很长的 GC/);
    await tab.screenshot('breaking-paused-1280');
    await tab.assertAccessible();
    await pressFault(tab, `resume ${sender}`);
    await tab.waitForText('#say', /^正在跑|分毫不差/);
    await tab.click(`#breaking-members [data-key="${victim}"]`);
    await pressFault(tab, `kill ${victim}`);
    await tab.waitForElement(faultButton(`start ${victim}`));
    await pressFault(tab, 'all');
    await tab.waitForElement(faultButton(`pause ${victim}`));
    await tab.waitForText('#say', /分毫不差|不能算数/);

    // A link is cut and mended; Escape closes the panel and focuses the light.
    await pressFault(tab, `cut ${victim}-redis`);
    await tab.waitForText('#breaking-acts', /到 redis 断开了/);
    await pressFault(tab, `mend ${victim}-redis`);
    await tab.waitForElement(faultButton(`cut ${victim}-redis`));
    await tab.pressKey('Escape', '#breaking');
    await tab.waitForElement('#breaking[hidden]');
    await tab.waitFor((name) => /** @type {HTMLElement} */ (document.activeElement).dataset.key === name, victim);
    tab.assertNoErrors();
  });

  // The twin: the trouble that was there before the race is told all the time.
  itInSoak('what a race itself stops is no trouble', async () => {
    const tab = await suite.openTab('#/003.pause');
    await tab.waitForLesson('003.pause');
    await tab.waitForElement(lightOf('zookeeper'));
    await tab.click(lightOf('zookeeper'));
    await pressFault(tab, 'kill zookeeper');
    await tab.pressKey('Escape', '#breaking');
    await tab.waitForText('#notice', /^zookeeper 停了/);
    await tab.evaluate(() => {
      const notice = document.getElementById('notice');
      const heard = (/** @type {any} */ (window).heard = []);
      new MutationObserver(() => heard.push(notice.hidden ? '' : notice.textContent)).observe(notice, { attributes: true, childList: true, characterData: true, subtree: true });
    });
    await tab.press('#race-run');
    // The page knows that an instance does not answer.
    await tab.waitFor(() => [...document.querySelectorAll('#lights .down [data-key]')].some((light) => /^\d/.test(light.getAttribute('data-key'))));
    // The flaw stands with its verdict while the cure is played after it.
    await tab.waitForElement('#race-cure circle:not(.later)');
    const flaw = await tab.evaluate(() => {
      const end = document.getElementById('race-flaw-end');
      const written = [...document.querySelectorAll('#race-flaw circle[data-event=written]')].filter((dot) => !dot.classList.contains('later'));
      return { verdict: end.textContent, isSeen: getComputedStyle(end).visibility === 'visible', isRed: end.classList.contains('red'), written: written.length };
    });
    assert.match(flaw.verdict, /超卖 1/);
    assert.deepEqual({ ...flaw, verdict: '' }, { verdict: '', isSeen: true, isRed: true, written: 2 });
    await tab.waitForElement('#race.ended');
    const heard = await tab.evaluate('window.heard');
    assert.deepEqual(heard.filter((text) => !/^zookeeper 停了/.test(text) || /没有应答|连不上/.test(text)), []);
    await tab.click('#lights [data-key=zookeeper]');
    await pressFault(tab, 'all');
    await tab.waitForElement(lightOf('zookeeper'));
    await tab.waitForElement('#notice[hidden]');
    tab.assertNoErrors();
  });

  // Its replica is the main Redis by then: that everything runs is not enough.
  it('one press repairs everything after Redis was killed', async () => {
    const [{ url }] = suite.at.instances;
    const leads = async () => {
      const { members } = await getJson(`${url}/lab`);
      return !members.find(({ name }) => name === 'redis').can.includes('promote') && members.every(({ state }) => state === 'running');
    };
    const tab = await suite.openTab('#/1.3');
    await tab.waitForElement(lightOf('redis'));
    await tab.click(lightOf('redis'));
    await pressFault(tab, 'kill redis');
    await waitUntil(async () => !(await getJson(`${url}/lab`)).members.find(({ name }) => name === 'replica').can.includes('promote'), 'the replica is the main one');
    await pressFault(tab, 'all');
    await tab.waitForText('#breaking-said', /^全部恢复了/);
    assert.ok(await leads(), 'the first one is the main one again');
    tab.assertNoErrors();
  });

  it('works on a phone', async () => {
    const victim = suite.at.instances[1].name;
    const phone = await suite.openTab('#/1.3', PHONE);
    await phone.waitForElement(lightOf(victim));
    await phone.click(lightOf(victim));
    await phone.waitForElement(faultButton(`pause ${victim}`));
    await phone.screenshot('breaking-360');
    assert.ok(!(await phone.isWiderThanWindow()));
    phone.assertNoErrors();
  });

  it('explains why nothing can be broken without a lab', async () => {
    const [file, { mysql }] = [`${suite.folder}/alone.json`, suite.at];
    const alone = spawn(PROGRAM, ['serve', '--port=0', `--set=mysql.url=${mysql.url}`, `--json=${file}`], { stdio: 'ignore' });
    try {
      await waitUntil(() => existsSync(file), 'it listens');
      const { url } = JSON.parse(await readFile(file, 'utf8'));
      const tab = await suite.openTab('#/1.3', undefined, url);
      await tab.waitForElement('#lights [data-key=mysql]');
      await tab.click('#lights [data-key=mysql]');
      await tab.waitForText('#breaking-acts', /docker compose pause/);
      await tab.waitForElement('#lights [data-key=mysql][aria-expanded=true]');
      await tab.screenshot('breaking-nobodys-1280');
      assert.equal(await tab.count('#breaking button'), 1, 'the one that closes');
      tab.assertNoErrors();
    } finally {
      alone.kill();
      await once(alone, 'exit');
    }
  });
});

describeInSoak('a fail-over', () => {
  const suite = lab(...BREAKABLE);

  it('oversells between two purchases (2.8), never under Redlock', async () => {
    const tab = await suite.openTab('#/2.8');
    await tab.waitForLesson('2.8');
    await tab.press('#race-schedule');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    const goOn = await tab.evaluate(() => {
      /** @type {HTMLButtonElement} */ (document.querySelector('#schedule-buttons [data-key=A]')).click();
      return document.querySelectorAll('#schedule-buttons [aria-disabled=false]').length;
    });
    assert.equal(goOn, 0, 'while A is on its way to the lock, the Sentinel could be first');
    for (const actor of ['failover', 'B', 'A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.waitForText('#schedule-say', /^卖出 2，库存减少 1：超卖 1。按了 5 次，做到了，不能更少。/);
    await tab.waitForText('#schedule-buttons [data-key=failover]', /从节点升上来了/);
    await tab.screenshot('schedule-2.8');
    await tab.assertAccessible();
    tab.assertNoErrors();
    // They take seconds each.
    assert.match(await tab.tryAllSchedules(), /：\d+ 种超卖，最少按 \d+ 次。/);
    await tab.click('[name=schedule-cured][value=true]');
    await tab.waitForElement('#schedule-buttons [data-key=A][aria-disabled=false]');
    assert.match(await tab.tryAllSchedules(), /：没有一种超卖。/);
    tab.assertNoErrors();
  });
});

describe("the fault panel on the class's page", () => {
  const suite = lab(['--redis-ports=0,0,0,0,0'], { OVERSELL__ADMIN__TOKEN: 'open-sesame' });

  // The token is asked for once, where it is needed; the other instances tell of the paused one.
  it('the administrator pauses an instance, and the class sees it', async () => {
    const victim = suite.at.instances[1].name;
    const tab = await suite.openTab('class.html#/2.10.6');
    await tab.waitForElement(lightOf(victim));
    await tab.click(lightOf(victim));
    await pressFault(tab, `pause ${victim}`);
    await tab.waitForText('#breaking-said', /^这一步要管理口令。$/);
    await tab.waitForElement('#token:focus');
    await tab.screenshot('class-token-1280');
    await tab.fill('#token', 'wrong');
    await tab.waitFor(() => /** @type {HTMLInputElement} */ (document.getElementById('token'))?.value === '');
    await tab.fill('#token', 'open-sesame');
    await tab.waitForText('#breaking-said', new RegExp(`^${victim}：暂停了`));
    await tab.waitForCount('#token', 0);
    const console = `#consoles [data-instance="${victim}"] h2`;
    await tab.waitForText(console, new RegExp(`^${victim} 停了$`));
    await tab.waitFor(() => [...document.querySelectorAll('#consoles h2')].filter((h) => h.textContent.includes('停了')).length === 1);
    await tab.waitForText('#trouble', new RegExp(`${victim} 没有应答`));
    await tab.screenshot('class-paused-1280');
    await tab.assertAccessible();
    await pressFault(tab, 'all');
    await tab.waitForText(console, new RegExp(`^${victim}$`));
    await tab.waitForElement('#trouble[hidden]');
    tab.assertNoErrors();
  });

  // The token is asked for once, for a race that breaks servers or for a run; other races need none.
  itInSoak('asks for the token once, then repeats what was refused', async () => {
    const tab = await suite.openTab('#/1.1');
    await tab.waitForLesson('1.1');
    await tab.press('#race-run');
    await tab.waitForElement('#race-flaw circle');
    await tab.waitForCount('#token', 0);
    await tab.pressKey('Escape');
    await tab.waitForElement('#race-run:not(.cancel)[aria-disabled=false]');
    await tab.go('2.10.4');
    await tab.waitForLesson('2.10.4');
    await tab.press('#race-run');
    await tab.waitForText('#race-idle', /^这一步要管理口令。$/);
    assert.equal(await tab.count('#race .half:not([hidden])'), 0, 'a race that was not begun is not drawn');
    await tab.waitForElement('#race-admin #token:focus');
    await tab.fill('#token', 'open-sesame');
    await tab.waitForText('#race-cure-end', /只有一个/);
    assert.equal(await tab.text('#race-idle'), '');
    await tab.waitForCount('#token', 0);
    tab.assertNoErrors();

    // The address that the lab prints has it, also after a reload and in another page.
    const teacher = await suite.openTab('#token=open-sesame');
    await teacher.waitForLesson('1.1');
    assert.doesNotMatch(teacher.page.url(), /sesame/);
    await teacher.page.goto(`${suite.at.http}/class.html#/2.10.6`);
    await teacher.waitForElement('#desk:not([hidden])');
    await teacher.page.goto(`${suite.at.http}/#/2.10.4`);
    await teacher.waitForLesson('2.10.4');
    await teacher.press('#race-run');
    await teacher.waitForElement('#race-flaw circle');
    assert.equal(await teacher.count('#token'), 0);
    await teacher.pressKey('Escape');
    await teacher.waitForElement('#race-run:not(.cancel)[aria-disabled=false]');
    teacher.assertNoErrors();

    const other = await suite.openTab('#/single-update?threads=2&loops=20&hold_ms=200');
    await startRun(other, async () => {
      await other.waitForElement('#run-admin #token:focus');
      await other.fill('#token', 'open-sesame');
    });
    await other.waitForText('#say', /^分毫不差/);
    other.assertNoErrors();
  });

  it('is not shown on a phone', async () => {
    const phone = await suite.openTab('class.html#/2.10.6?me', PHONE);
    await phone.waitForElement('#actions [data-act]');
    assert.equal(await phone.count('#lights[hidden]'), 1);
    phone.assertNoErrors();
  });
});

describeInSoak('servers of which there are several', () => {
  const suite = lab(['--sentinels=3', '--zookeeper=3']);

  it('show their role at their lights, also after a promotion', async () => {
    const tab = await suite.openTab('#/2.8');
    await tab.waitForText('#lights [data-role=primary]', /^redis 主$/);
    await tab.waitForElement('#lights [data-role=leader]');
    await tab.screenshot('roles-1280');
    await tab.click('#lights [data-key=redis]');
    await tab.press('#breaking-members [data-key="replica-2"]');
    await pressFault(tab, 'promote replica-2');
    await tab.waitForText('#lights [data-role=primary]', /^replica-2 主$/);
    await tab.assertAccessible();
    tab.assertNoErrors();
    const phone = await suite.openTab('#/2.8', PHONE);
    await phone.waitForElement('#lights [data-role=primary]');
    assert.ok(!(await phone.isWiderThanWindow()));
  });
});

/** The light of a member that is up. @param {string} name */
const lightOf = (name) => `#lights .up [data-key="${name}"]`;

/** The button of a fault. @param {string} fault */
const faultButton = (fault) => `#breaking-acts [data-key="${fault}"]`;

/** Presses it once it is enabled. @param {Tab} tab @param {string} fault */
async function pressFault(tab, fault) {
  await tab.waitForElement(`${faultButton(fault)}[aria-disabled=false]`);
  await tab.click(faultButton(fault));
}

/** Starts a run and waits until it is running. @param {Tab} tab @param {() => Promise<void>} [asked] asked what to do before */
async function startRun(tab, asked = async () => {}) {
  await tab.waitUntilRunnable();
  await tab.press('#run');
  await asked();
  await tab.waitForText('#say', /^正在跑：[1-9]/);
}
