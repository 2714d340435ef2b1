/** Breaking servers and instances by hand, from the page and from the class's page. */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import process from 'node:process';
import { describe, it } from 'node:test';
import { PHONE, PROGRAM, json, lab, until } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

const SOAK = process.env.OVERSELL_SOAK === '1';

describe('breaking by hand', () => {
  // An instance that goes on after a longer pause than this cuts off what was sent to it meanwhile: the run has another verdict then.
  const suite = lab(['--ways', '--replica'], { OVERSELL__SERVER__HEADER_TIMEOUT_MS: '60000' });

  // The run waits for the instance that stands still, as the page says of it and of no server, and comes to its verdict once it goes
  // on; so does one of whose instances one was killed and started again.
  it('pauses and kills an instance by its button in mid run, and the run comes to its verdict', async () => {
    const [sender, victim] = suite.at.instances.map(({ name }) => name);
    // It lasts for twelve seconds: it must still go on when it is paused.
    const tab = await suite.tab('#/single-update?threads=20&loops=40&hold_ms=300');
    await tab.has(light(victim));
    await run(tab);
    await tab.click(light(victim));
    await act(tab, `pause ${victim}`);
    await tab.reads('#say', new RegExp(`^停住了.*在等 ${victim}`));
    await tab.reads('#notice', new RegExp(`${victim} 没有回应`));
    assert.doesNotMatch(await tab.text('#notice'), /(mysql|redis|zookeeper) 停了/, 'no server is blamed');
    await act(tab, `resume ${victim}`);
    await tab.reads('#say', /^分毫不差/);

    // The one that sends the load stands still: so does the run, and the page says so of it.
    await run(tab);
    await tab.click(`#breaking-members [data-key="${sender}"]`);
    await act(tab, `pause ${sender}`);
    await tab.reads('#say', new RegExp(`^停在.*${sender} 没有回应`));
    await tab.reads('#breaking-acts', /像一次很长的 GC/);
    await tab.screenshot('breaking-paused-1280');
    await tab.everybodyCanUseIt();
    await act(tab, `resume ${sender}`);
    await tab.reads('#say', /^正在跑|分毫不差/);
    await tab.click(`#breaking-members [data-key="${victim}"]`);
    await act(tab, `kill ${victim}`);
    await tab.has(button(`start ${victim}`));
    await act(tab, 'all');
    await tab.has(button(`pause ${victim}`));
    await tab.reads('#say', /分毫不差|不能算数/);

    // A way is cut and mended; Escape closes, and leads back to the light.
    await act(tab, `cut ${victim}-redis`);
    await tab.reads('#breaking-acts', /到 redis 断开了/);
    await act(tab, `mend ${victim}-redis`);
    await tab.has(button(`cut ${victim}-redis`));
    await tab.key('Escape', '#breaking');
    await tab.has('#breaking[hidden]');
    await tab.holds((name) => /** @type {HTMLElement} */ (document.activeElement).dataset.key === name, victim);
    tab.nothingWentWrong();
  });

  // Its replica is the main one by then: that all runs again is not all.
  it('puts all back after the main Redis was killed, by one press', async () => {
    const [{ url }] = suite.at.instances;
    const leads = async () => {
      const { members } = await json(`${url}/lab`);
      return !members.find(({ name }) => name === 'redis').can.includes('promote') && members.every(({ state }) => state === 'running');
    };
    const tab = await suite.tab('#/1.3');
    await tab.has(light('redis'));
    await tab.click(light('redis'));
    await act(tab, 'kill redis');
    await until(async () => !(await json(`${url}/lab`)).members.find(({ name }) => name === 'replica').can.includes('promote'), 'the replica is the main one');
    await act(tab, 'all');
    await tab.reads('#breaking-said', /^全部恢复了/);
    assert.ok(await leads(), 'the first one is the main one again');
    tab.nothingWentWrong();
  });

  it('has its buttons on a phone', async () => {
    const victim = suite.at.instances[1].name;
    const phone = await suite.tab('#/1.3', PHONE);
    await phone.has(light(victim));
    await phone.click(light(victim));
    await phone.has(button(`pause ${victim}`));
    await phone.screenshot('breaking-360');
    assert.ok(!(await phone.isWide()));
    phone.nothingWentWrong();
  });

  it('is explained where no lab takes orders, with what to type where the servers are in containers', async () => {
    const [file, { mysql }] = [`${suite.folder}/alone.json`, suite.at];
    const alone = spawn(PROGRAM, ['serve', '--port=0', `--set=mysql.url=${mysql.url}`, `--json=${file}`], { stdio: 'ignore' });
    try {
      await until(() => existsSync(file), 'it listens');
      const { url } = JSON.parse(await readFile(file, 'utf8'));
      const tab = await suite.tab('#/1.3', undefined, url);
      await tab.has('#lights [data-key=mysql]');
      await tab.click('#lights [data-key=mysql]');
      await tab.reads('#breaking-acts', /docker compose pause/);
      await tab.has('#lights [data-key=mysql][aria-expanded=true]');
      await tab.screenshot('breaking-nobodys-1280');
      assert.equal(await tab.count('#breaking button'), 1, 'the one that closes');
      tab.nothingWentWrong();
    } finally {
      alone.kill();
      await once(alone, 'exit');
    }
  });
});

describe('a fail-over', () => {
  const suite = lab(['--replica', '--redis-ports=0,0,0,0,0']);

  it('oversells where whoever watches has the Sentinel promote the replica between two who buy (2.8), and under Redlock in no order', async () => {
    const tab = await suite.tab('#/2.8');
    await tab.shows('2.8');
    await tab.press('#race-schedule');
    await tab.has('#schedule-buttons [data-key=A][aria-disabled=false]');
    const goOn = await tab.evaluate(() => {
      /** @type {HTMLButtonElement} */ (document.querySelector('#schedule-buttons [data-key=A]')).click();
      return document.querySelectorAll('#schedule-buttons [aria-disabled=false]').length;
    });
    assert.equal(goOn, 0, 'while A is on its way to the lock, the Sentinel could be first');
    for (const actor of ['failover', 'B', 'A', 'B']) await tab.press(`#schedule-buttons [data-key=${actor}][aria-disabled=false]`);
    await tab.reads('#schedule-say', /^卖出 2，少了 1：超卖 1。按了 5 次，做到了。/);
    await tab.reads('#schedule-buttons [data-key=failover]', /从节点升上来了/);
    await tab.screenshot('schedule-2.8');
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
    // Seconds each.
    if (!SOAK) return;
    await all(tab, /：\d+ 种超卖。/);
    await tab.click('[name=schedule-cured][value=true]');
    await tab.has('#schedule-buttons [data-key=A][aria-disabled=false]');
    await all(tab, /：没有一种超卖。/);
    tab.nothingWentWrong();
  });
});

describe("breaking by hand, from the class's page", () => {
  const suite = lab(['--redis-ports=0,0,0,0,0'], { OVERSELL__ADMIN__TOKEN: 'open-sesame' });

  // The token is asked for once, where it is wanted; the instance that stands still is told from those that answer.
  it('pauses an instance for the administrator, and the class sees it stand still', async () => {
    const victim = suite.at.instances[1].name;
    const tab = await suite.tab('class.html#/2.10.6');
    await tab.has(light(victim));
    await tab.click(light(victim));
    await act(tab, `pause ${victim}`);
    await tab.reads('#breaking-said', /^这一步要管理口令。$/);
    await tab.has('#token:focus');
    await tab.screenshot('class-token-1280');
    await tab.fill('#token', 'wrong');
    await tab.holds(() => /** @type {HTMLInputElement} */ (document.getElementById('token'))?.value === '');
    await tab.fill('#token', 'open-sesame');
    await tab.reads('#breaking-said', new RegExp(`^${victim}：暂停了`));
    await tab.counts('#token', 0);
    const console = `#consoles [data-instance="${victim}"] h2`;
    await tab.reads(console, new RegExp(`^${victim} 停了$`));
    await tab.holds(() => [...document.querySelectorAll('#consoles h2')].filter((h) => h.textContent.includes('停了')).length === 1);
    await tab.reads('#trouble', new RegExp(`${victim} 没有回应`));
    await tab.screenshot('class-paused-1280');
    await tab.everybodyCanUseIt();
    await act(tab, 'all');
    await tab.reads(console, new RegExp(`^${victim}$`));
    await tab.has('#trouble[hidden]');
    tab.nothingWentWrong();
  });

  // Whoever plays a race that breaks servers, or starts a run, is asked once; a race that breaks none is played by anybody.
  it('asks for the token for a run and a replay that breaks servers, and does then what was refused', async () => {
    const tab = await suite.tab('#/1.3');
    await tab.shows('1.3');
    await tab.press('#race-run');
    await tab.reads('#race-flaw-end', /卖出/);
    await tab.counts('#token', 0);
    await tab.go('2.10.4');
    await tab.shows('2.10.4');
    await tab.press('#race-run');
    await tab.reads('#race-flaw-end', /这一步要管理口令/);
    await tab.has('#race-admin #token:focus');
    await tab.fill('#token', 'open-sesame');
    await tab.reads('#race-cure-end', /只有一个/);
    assert.doesNotMatch(await tab.text('#race-flaw-end'), /没有跑成/);
    await tab.counts('#token', 0);
    tab.nothingWentWrong();

    const other = await suite.tab('#/single-update?threads=2&loops=20&hold_ms=200');
    await run(other, async () => {
      await other.has('#run-admin #token:focus');
      await other.fill('#token', 'open-sesame');
    });
    await other.reads('#say', /^分毫不差/);
    other.nothingWentWrong();
  });

  it('is not for a phone', async () => {
    const phone = await suite.tab('class.html#/2.10.6?me', PHONE);
    await phone.has('#actions [data-act]');
    assert.equal(await phone.count('#lights[hidden]'), 1);
    phone.nothingWentWrong();
  });
});

(SOAK ? describe : describe.skip)('servers of which there are several', () => {
  const suite = lab(['--sentinels=3', '--zookeeper=3']);

  it('are named at their lights with what they do, and who is promoted leads there too', async () => {
    const tab = await suite.tab('#/2.8');
    await tab.reads('#lights [data-role=primary]', /^redis 主$/);
    await tab.has('#lights [data-role=leader]');
    await tab.screenshot('roles-1280');
    await tab.click('#lights [data-key=redis]');
    await tab.press('#breaking-members [data-key="replica-2"]');
    await act(tab, 'promote replica-2');
    await tab.reads('#lights [data-role=primary]', /^replica-2 主$/);
    await tab.everybodyCanUseIt();
    tab.nothingWentWrong();
    const phone = await suite.tab('#/2.8', PHONE);
    await phone.has('#lights [data-role=primary]');
    assert.ok(!(await phone.isWide()));
  });
});

/** The light of one that is up. @param {string} name */
const light = (name) => `#lights .up [data-key="${name}"]`;

/** The button that does this. @param {string} order */
const button = (order) => `#breaking-acts [data-key="${order}"]`;

/** Presses it, once it can be pressed. @param {Tab} tab @param {string} order */
async function act(tab, order) {
  await tab.has(`${button(order)}[aria-disabled=false]`);
  await tab.click(button(order));
}

/** Starts a run of what is on show, and waits until it goes on. @param {Tab} tab @param {() => Promise<void>} [asked] what it takes before */
async function run(tab, asked = async () => {}) {
  await tab.canRun();
  await tab.press('#run');
  await asked();
  await tab.reads('#say', /^正在跑：[1-9]/);
}

/** Tries all orders of a fail-over: what it comes to. @param {Tab} tab @param {RegExp} comesTo */
async function all(tab, comesTo) {
  await tab.press('#schedule-all');
  await until(async () => /所有 \d+ 种顺序/.test((await tab.text('#schedule-say')) ?? ''), 'all orders', 600_000);
  assert.match((await tab.text('#schedule-say')) ?? '', comesTo);
}
