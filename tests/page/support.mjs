/**
 * What the tests of the page share: a lab, started by `oversell lab`, and tabs of a headless browser.
 *
 * `node --test tests/page/NAME.test.mjs` runs one file, with the program that `cargo build` has built. A file `NAME.group.mjs` runs several
 * one after the other, which share their labs.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

/** Width and height of a window, in pixels. @typedef {[number, number]} Size */
/** What lab.json says. @typedef {{http: string, instances: {name: string, url: string, pid: number}[], mysql: {url: string}, redis: {url: string}[]}} Addresses */

/** @type {Size} */
export const PROJECTOR = [1280, 720];
/** @type {Size} */
export const PHONE = [360, 740];

/** The longest wait for a condition, and the time between two looks. */
const WAIT_LIMIT_MS = 60_000;
const POLL_MS = 50;

/** Runs what takes too long for every change, and lets pictures move. */
export const SOAK = process.env.OVERSELL_SOAK === '1';

/** What takes over ten seconds, or shows again at another size or in another lesson what a test has shown: without `OVERSELL_SOAK=1` it is listed as skipped. */
export const itInSoak = SOAK ? it : it.skip;
export const describeInSoak = SOAK ? describe : describe.skip;

/** All with `OVERSELL_SOAK=1`; else each fourth, or each nth. @template T @param {T[]} all @param {number} [nth] @returns {T[]} */
export const sample = (all, nth = 4) => (SOAK ? all : all.filter((_, n) => n % nth === 0));

export const TARGET = resolve(fileURLToPath(new URL('../..', import.meta.url)), process.env.CARGO_TARGET_DIR ?? 'target');
export const PROGRAM = join(TARGET, 'debug/oversell');
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Debian's Chromium without a window system, which is much faster; without it, Chrome. */
const HEADLESS_SHELL = '/usr/bin/chromium-headless-shell';

/**
 * A lab whose links can be cut and whose Redis fails over. After a longer pause than usual an instance cuts off the requests sent to it
 * meanwhile, and the run has another verdict.
 * @type {[string[], Record<string, string>]}
 */
export const BREAKABLE = [['--links', '--replica', '--etcd=1', '--redis-ports=0,0,0,0,0'], { OVERSELL__SERVER__HEADER_TIMEOUT_MS: '60000' }];

/** The labs of this process by their options, and how many suites still need each. @type {Map<string, {suite: Suite, users: number}>} */
const labs = new Map();

/** A lab that no other suite shares: this one leaves visits behind, or kills instances. */
export const ownLab = () => lab([], {}, `own ${labs.size}`);

/**
 * Starts a lab with three instances and a browser before the first suite with these options, and stops both after the last one.
 * @param {string[]} [options] of `oversell lab` @param {Record<string, string>} [environment] @param {string} [name] what it is shared by
 */
export function lab(options = [], environment = {}, name = JSON.stringify([options, environment])) {
  const shared = labs.get(name) ?? { suite: new Suite(), users: 0 };
  labs.set(name, shared);
  shared.users += 1;
  const { suite } = shared;
  before(() => suite.browser ?? suite.start(options, environment));
  afterEach(() => suite.closeTabs());
  after(() => {
    shared.users -= 1;
    return shared.users ? undefined : suite.stop();
  });
  return suite;
}

let suites = 0;

class Suite {
  /** Where the lab's servers are. @type {Addresses} */
  at;
  /** The lab's folder; in target, where labs share a prepared database. */
  folder = join(TARGET, `page-${process.pid}-${(suites += 1)}`);
  /** @type {import('puppeteer-core').Browser} */
  browser;
  /** @type {import('node:child_process').ChildProcess} */
  #lab;

  /** @param {string[]} options @param {Record<string, string>} environment */
  async start(options, environment) {
    const ports = ['--http-port=0', '--instances=0,0,0', '--mysql-port=0', '--redis-ports=0', '--zookeeper-port=0', '--etcd-port=0'];
    const others = ports.filter((port) => !options.some((option) => option.startsWith(port.split('=')[0])));
    this.#lab = spawn(PROGRAM, ['lab', ...others, ...options, `--dir=${this.folder}`], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    process.once('exit', () => this.#lab.kill());
    const launched = puppeteer.launch({
      ...(existsSync(HEADLESS_SHELL) ? { executablePath: HEADLESS_SHELL } : { channel: 'chrome' }),
      // It visits only our own pages; root and most containers cannot have the sandbox. For somebody who asks for less motion a picture is
      // drawn twice a second, which takes half the processor's time of a race.
      // The page follows the browser's language at first.
      args: ['--no-sandbox', '--accept-lang=zh-CN', ...(SOAK ? [] : ['--force-prefers-reduced-motion'])],
      timeout: WAIT_LIMIT_MS,
    });
    [this.browser] = await Promise.all([launched, waitForOutput(this.#lab, 'Ctrl-C stops everything')]);
    this.at = JSON.parse(await readFile(`${this.folder}/lab.json`, 'utf8'));
  }

  async closeTabs() {
    for (const context of this.browser.browserContexts()) if (context !== this.browser.defaultBrowserContext()) await context.close();
  }

  async stop() {
    await this.browser?.close();
    if (this.#lab.pid && this.#lab.exitCode === null) {
      this.#lab.kill('SIGTERM');
      await once(this.#lab, 'exit');
    }
    assert.equal(this.#lab.exitCode, 0, 'the lab ends in order');
    await rm(this.folder, { recursive: true });
  }

  /** A tab in a private window, at this address. @param {string} address @param {Size} [size] @param {string} [base] */
  async openTab(address, [width, height] = PROJECTOR, base = this.at.http) {
    const context = await this.browser.createBrowserContext();
    const tab = new Tab(await context.newPage());
    await tab.page.setViewport({ width, height, isMobile: width < 600 });
    await tab.page.goto(`${base}/${address}`);
    return tab;
  }
}

/** Waits until the program has printed these words. @param {import('node:child_process').ChildProcess} program @param {string} words */
async function waitForOutput(program, words) {
  let printed = '';
  await new Promise((ready, failed) => {
    program.once('error', failed);
    program.once('exit', (code) => failed(new Error(`it ended with ${code}: ${printed}`)));
    program.stdout.on('data', (text) => {
      printed = (printed + text).slice(-10_000);
      if (printed.includes(words)) ready(null);
    });
  });
}

const ALL_SCHEDULES_LIMIT_MS = 600_000;

/** Polls until the condition holds. @param {() => boolean | Promise<boolean>} holds @param {string} [what] @param {number} [longest] */
export async function waitUntil(holds, what = String(holds), longest = WAIT_LIMIT_MS) {
  const end = performance.now() + longest;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `never: ${what}`);
    await pause(POLL_MS);
  }
}

/** The JSON of this address. @param {string} url @returns {Promise<any>} */
export const getJson = async (url) => (await fetch(url)).json();

/** Sends JSON and returns the whole answer. @param {string} url @param {unknown} body @param {string} [method] */
export const sendJson = (url, body, method = 'POST') =>
  fetch(url, { method, headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify(body) });

export class Tab {
  /** Errors in the browser, and violations of the page's policy. @type {string[]} */
  errors = [];
  /** Requests to another host than the page's. @type {string[]} */
  foreignRequests = [];
  /** The status on the wire of each request, or null if the browser had it cached. @type {{url: string, wire: number | null}[]} */
  #answers = [];

  /** @param {import('puppeteer-core').Page} page */
  constructor(page) {
    this.page = page;
    page.on('pageerror', (error) => this.errors.push(String(error)));
    page.on('console', (line) => {
      // Some tests expect a refusal.
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) this.errors.push(line.text());
    });
    page.on('response', (answer) => {
      this.#answers.push({ url: answer.url(), wire: answer.fromCache() && answer.status() === 200 ? null : answer.status() });
    });
    page.on('request', (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol.startsWith('http') && host !== new URL(page.url() === 'about:blank' ? request.url() : page.url()).host) this.foreignRequests.push(request.url());
    });
  }

  /** Who this browser is to the service. @returns {Promise<string>} */
  async visitor() {
    await this.waitFor(() => localStorage.getItem('oversell.visitor'));
    return this.evaluate(() => JSON.parse(localStorage.getItem('oversell.visitor')));
  }

  /** A second window of this browser. @param {string} address */
  async openWindow(address) {
    const tab = new Tab(await this.page.browserContext().newPage());
    await tab.page.setViewport(this.page.viewport());
    await tab.page.goto(address);
    return tab;
  }

  /**
   * Evaluates this in the page and awaits a promise. It is one turn of the page, so that nothing is drawn between finding an element and
   * using it, as in puppeteer's $eval.
   * @param {string | ((...given: any[]) => any)} does @param {unknown[]} given @returns {Promise<any>}
   */
  evaluate(does, ...given) {
    return this.page.evaluate(does, ...given);
  }

  /** Waits until this holds in the page. @param {string | ((...given: any[]) => unknown)} condition @param {unknown[]} given */
  async waitFor(condition, ...given) {
    await this.page.waitForFunction(condition, { timeout: WAIT_LIMIT_MS, polling: POLL_MS }, ...given).catch(async (cause) => {
      const said = await this.evaluate(() => document.body.innerText);
      throw new Error(`never: ${condition} ${JSON.stringify(given)}\nThe page says:\n${said}`, { cause });
    });
  }

  /** How many elements there are. @param {string} selector @returns {Promise<number>} */
  count(selector) {
    return this.evaluate((at) => document.querySelectorAll(at).length, selector);
  }

  /** Waits until there are this many. @param {string} selector @param {number} count */
  waitForCount(selector, count) {
    return this.waitFor((at, wanted) => document.querySelectorAll(at).length === wanted, selector, count);
  }

  /** Waits until there is one. @param {string} selector */
  waitForElement(selector) {
    return this.waitFor((at) => document.querySelector(at), selector);
  }

  /** The text of the first such element. @param {string} selector @returns {Promise<string | undefined>} */
  text(selector) {
    return this.evaluate((at) => document.querySelector(at)?.textContent, selector);
  }

  /** Waits until its text matches. @param {string} selector @param {RegExp} like */
  waitForText(selector, like) {
    return this.waitFor((at, pattern) => new RegExp(pattern).test(document.querySelector(at)?.textContent.replaceAll('\u00a0', ' ') ?? ''), selector, like.source);
  }

  /** The value of a field. @param {string} selector @returns {Promise<string>} */
  value(selector) {
    return this.evaluate((at) => document.querySelector(at).value, selector);
  }

  /** Waits until this lesson is on show and the whole page has come. @param {string} id */
  waitForLesson(id) {
    return this.waitFor((lesson) => {
      const chapter = document.getElementById('chapter');
      return document.body.dataset.first == null && chapter.checkVisibility() && chapter.dataset.lesson === lesson;
    }, id);
  }

  /** Has the scheduler try all schedules, which may take minutes, and returns what it says then. */
  async tryAllSchedules() {
    const said = async () => (await this.text('#schedule-say')) ?? '';
    await this.press('#schedule-all');
    await waitUntil(async () => /所有 \d+ 种顺序/.test(await said()), 'all schedules', ALL_SCHEDULES_LIMIT_MS);
    return said();
  }

  /** Waits until a run can be started. */
  waitUntilRunnable() {
    return this.waitForElement('#run[aria-disabled=false]');
  }

  /** The statuses on the wire of requests whose address contains this. @param {string} part */
  statusesOf(part) {
    return this.#answers.filter(({ url }) => url.includes(part)).map(({ wire }) => wire);
  }

  clearAnswers() {
    this.#answers = [];
  }

  /** Goes to another view of the same page. @param {string} hash */
  go(hash) {
    return this.evaluate((to) => void (location.hash = to), `#/${hash}`);
  }

  /** Clicks an element wherever it is. @param {string} selector */
  click(selector) {
    return this.evaluate((at) => document.querySelector(at).click(), selector);
  }

  /**
   * Clicks an element as soon as a pointer could: enabled, in sight, and not covered. Look and click are one turn of the page, so that it
   * does not move between them.
   * @param {string} selector
   */
  press(selector) {
    return this.waitFor((at) => {
      /** @type {HTMLButtonElement} */
      const button = document.querySelector(at);
      button?.scrollIntoView({ block: 'center', behavior: 'instant' });
      const box = button?.getBoundingClientRect();
      const top = box && document.elementFromPoint((box.left + box.right) / 2, (box.top + box.bottom) / 2);
      const reached = top && !button.disabled && button.ariaDisabled !== 'true' && button.contains(top);
      if (reached) button.click();
      return reached;
    }, selector);
  }

  /** Types this into a field and leaves it. @param {string} selector @param {string} typed */
  fill(selector, typed) {
    return this.evaluate((at, text) => {
      const field = document.querySelector(at);
      field.value = text;
      for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, { bubbles: true }));
    }, selector, typed);
  }

  /** Presses a key. @param {string} key @param {string} [selector] */
  pressKey(key, selector = 'body') {
    return this.evaluate((at, name) => void document.querySelector(at).dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true })), selector, key);
  }

  /** Is the page wider than the window? A phone's browser makes `innerWidth` as wide as the page. @returns {Promise<boolean>} */
  isWiderThanWindow() {
    return this.evaluate((width) => document.documentElement.scrollWidth > width, this.page.viewport().width);
  }

  /** The serious and critical violations that axe-core finds. @returns {Promise<string[]>} */
  async accessibilityViolations() {
    await this.evaluate(await readFile(AXE, 'utf8'));
    const { violations } = await this.evaluate('axe.run(document)');
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  }

  async assertAccessible() {
    assert.deepEqual(await this.accessibilityViolations(), []);
  }

  /** No error, no violation of the page's policy, and no request to another host. */
  assertNoErrors() {
    assert.deepEqual({ wrong: this.errors, elsewhere: this.foreignRequests }, { wrong: [], elsewhere: [] });
  }

  /** Saves a picture to target/screens, where `OVERSELL_SCREENS=1` asks for it: it takes a while. @param {string} name */
  async screenshot(name) {
    if (process.env.OVERSELL_SCREENS !== '1') return;
    const folder = join(TARGET, 'screens');
    await mkdir(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
}
