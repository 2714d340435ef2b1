/**
 * What the tests of the page share: a lab as a teacher starts it, with `oversell lab`, and tabs of a real browser without a window.
 *
 * `node --test tests/page/NAME.test.mjs` runs one file, with the program that `cargo build` has built.
 */

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { after, afterEach, before } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

/** Width and height of a window, in pixels. @typedef {[number, number]} Size */
/** What lab.json says. @typedef {{http: string, instances: {name: string, url: string}[], mysql: {url: string}, redis: {url: string}[]}} Addresses */

/** @type {Size} */
export const PROJECTOR = [1280, 720];
/** @type {Size} */
export const PHONE = [360, 740];

/** The longest that a test waits for what must come, and the time between two looks. */
const LONG_MS = 60_000;
const LOOK_MS = 50;

const TARGET = resolve(fileURLToPath(new URL('../..', import.meta.url)), process.env.CARGO_TARGET_DIR ?? 'target');
export const PROGRAM = join(TARGET, 'debug/oversell');
const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
/** Debian's Chromium without what shows a window, which costs a multiple of what it shows; where it is not, Chrome will do. */
const SHELL = '/usr/bin/chromium-headless-shell';

/**
 * Starts a lab with three instances and a browser before the tests of this suite, and stops both after them.
 * @param {string[]} [options] of `oversell lab` @param {Record<string, string>} [environment]
 */
export function lab(options = [], environment = {}) {
  const suite = new Suite();
  before(() => suite.start(options, environment));
  afterEach(() => suite.closeTabs());
  after(() => suite.stop());
  return suite;
}

let suites = 0;

class Suite {
  /** Where the lab's servers are. @type {Addresses} */
  at;
  /** The folder with the lab's logs; in target, where labs share a database that was set up once. */
  folder = join(TARGET, `page-${process.pid}-${(suites += 1)}`);
  /** @type {import('puppeteer-core').Browser} */
  browser;
  /** @type {import('node:child_process').ChildProcess} */
  #lab;

  /** @param {string[]} options @param {Record<string, string>} environment */
  async start(options, environment) {
    const ports = ['--http-port=0', '--instances=0,0,0', '--mysql-port=0', '--redis-ports=0', '--zookeeper-port=0'];
    const others = ports.filter((port) => !options.some((option) => option.startsWith(port.split('=')[0])));
    this.#lab = spawn(PROGRAM, ['lab', ...others, ...options, `--dir=${this.folder}`], {
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    process.once('exit', () => this.#lab.kill());
    const launched = puppeteer.launch({
      ...(existsSync(SHELL) ? { executablePath: SHELL } : { channel: 'chrome' }),
      // It visits nothing but our own pages, and the sandbox is not to be had as root, nor in most containers.
      args: ['--no-sandbox'],
      timeout: LONG_MS,
    });
    [this.browser] = await Promise.all([launched, said(this.#lab, 'Ctrl-C stops everything')]);
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

  /**
   * A tab that knows nothing of the others, as a private window, with this address in it.
   * @param {string} address @param {Size} [size] @param {string} [base]
   */
  async tab(address, [width, height] = PROJECTOR, base = this.at.http) {
    const context = await this.browser.createBrowserContext();
    const tab = new Tab(await context.newPage());
    await tab.page.setViewport({ width, height, isMobile: width < 600 });
    await tab.page.goto(`${base}/${address}`);
    return tab;
  }
}

/** Waits until this program has printed these words. @param {import('node:child_process').ChildProcess} program @param {string} words */
async function said(program, words) {
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

/**
 * Looks until it is so.
 * @param {() => boolean | Promise<boolean>} holds @param {string} [what] @param {number} [longest]
 */
export async function until(holds, what = String(holds), longest = LONG_MS) {
  const end = performance.now() + longest;
  while (!(await holds())) {
    assert.ok(performance.now() < end, `never: ${what}`);
    await pause(LOOK_MS);
  }
}

/** What this address answers. @param {string} url @returns {Promise<any>} */
export const json = async (url) => (await fetch(url)).json();

/** Sends this, and gives the whole answer. @param {string} url @param {unknown} body @param {string} [method] */
export const send = (url, body, method = 'POST') =>
  fetch(url, { method, headers: { accept: 'application/json', 'content-type': 'application/json' }, body: JSON.stringify(body) });

export class Tab {
  /** What the browser found wrong: errors, and what the page's policy forbids. @type {string[]} */
  wrong = [];
  /** What was asked of another host than the page's. @type {string[]} */
  elsewhere = [];
  /** What came for each request: its status on the wire, or nothing where the browser had it already. @type {{url: string, wire: number | null}[]} */
  #answers = [];

  /** @param {import('puppeteer-core').Page} page */
  constructor(page) {
    this.page = page;
    page.on('pageerror', (error) => this.wrong.push(String(error)));
    page.on('console', (line) => {
      // A refusal is an answer, and some tests ask for one.
      if (line.type() === 'error' && !line.text().startsWith('Failed to load resource')) this.wrong.push(line.text());
    });
    page.on('response', (answer) => {
      this.#answers.push({ url: answer.url(), wire: answer.fromCache() && answer.status() === 200 ? null : answer.status() });
    });
    page.on('request', (request) => {
      const { protocol, host } = new URL(request.url());
      if (protocol.startsWith('http') && host !== new URL(page.url() === 'about:blank' ? request.url() : page.url()).host) this.elsewhere.push(request.url());
    });
  }

  /**
   * What this comes to in the page; a promise is awaited. One turn of the page, so that it draws nothing between a look for an element
   * and what is done to it, as it may in puppeteer's $eval.
   * @param {string | ((...given: any[]) => any)} does @param {unknown[]} given @returns {Promise<any>}
   */
  evaluate(does, ...given) {
    return this.page.evaluate(does, ...given);
  }

  /**
   * Waits until this holds in the page.
   * @param {string | ((...given: any[]) => unknown)} condition @param {unknown[]} given
   */
  async holds(condition, ...given) {
    await this.page.waitForFunction(condition, { timeout: LONG_MS, polling: LOOK_MS }, ...given).catch(async (cause) => {
      const said = await this.evaluate(() => document.body.innerText);
      throw new Error(`never: ${condition} ${JSON.stringify(given)}\nThe page says:\n${said}`, { cause });
    });
  }

  /** How many elements there are. @param {string} selector @returns {Promise<number>} */
  count(selector) {
    return this.evaluate((at) => document.querySelectorAll(at).length, selector);
  }

  /** Waits until there are so many. @param {string} selector @param {number} count */
  counts(selector, count) {
    return this.holds((at, wanted) => document.querySelectorAll(at).length === wanted, selector, count);
  }

  /** Waits until there is one. @param {string} selector */
  has(selector) {
    return this.holds((at) => document.querySelector(at), selector);
  }

  /** The text of the first such element. @param {string} selector @returns {Promise<string | undefined>} */
  text(selector) {
    return this.evaluate((at) => document.querySelector(at)?.textContent, selector);
  }

  /** Waits until its text is like this. @param {string} selector @param {RegExp} like */
  reads(selector, like) {
    return this.holds((at, pattern) => new RegExp(pattern).test(document.querySelector(at)?.textContent ?? ''), selector, like.source);
  }

  /** What stands in this field. @param {string} selector @returns {Promise<string>} */
  value(selector) {
    return this.evaluate((at) => document.querySelector(at).value, selector);
  }

  /** Waits until this lesson is on show, and all of the page has come. @param {string} id */
  shows(id) {
    return this.holds((lesson) => {
      const chapter = document.getElementById('chapter');
      return document.body.dataset.first == null && chapter.checkVisibility() && chapter.textContent === lesson;
    }, id);
  }

  /** Waits until a run can be started. */
  canRun() {
    return this.has('#run[aria-disabled=false]');
  }

  /** What came over the wire for each request of an address with this in it. @param {string} part */
  answers(part) {
    return this.#answers.filter(({ url }) => url.includes(part)).map(({ wire }) => wire);
  }

  forgetAnswers() {
    this.#answers = [];
  }

  /** Goes to another view of the same page. @param {string} hash */
  go(hash) {
    return this.evaluate((to) => void (location.hash = to), `#/${hash}`);
  }

  /** Clicks it wherever it is: what no pointer need reach. @param {string} selector */
  click(selector) {
    return this.evaluate((at) => document.querySelector(at).click(), selector);
  }

  /**
   * Clicks it as soon as a pointer could: it can be pressed, is in sight, and nothing lies over it. Look and click are one turn of the page, so
   * that it does not move between them.
   * @param {string} selector
   */
  press(selector) {
    return this.holds((at) => {
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

  /** Types this into a field, and leaves it. @param {string} selector @param {string} typed */
  fill(selector, typed) {
    return this.evaluate((at, text) => {
      const field = document.querySelector(at);
      field.value = text;
      for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, { bubbles: true }));
    }, selector, typed);
  }

  /** A key, as if it were typed. @param {string} key @param {string} [selector] */
  key(key, selector = 'body') {
    return this.evaluate((at, name) => void document.querySelector(at).dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true })), selector, key);
  }

  /** Whether it is wider than the window. @returns {Promise<boolean>} */
  isWide() {
    return this.evaluate(() => document.documentElement.scrollWidth > innerWidth);
  }

  /** What axe-core finds that is serious or worse. @returns {Promise<string[]>} */
  async serious() {
    await this.evaluate(await readFile(AXE, 'utf8'));
    const { violations } = await this.evaluate('axe.run(document)');
    return violations.filter(({ impact }) => ['serious', 'critical'].includes(impact)).map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
  }

  /** Everybody can use it: axe finds nothing serious. */
  async everybodyCanUseIt() {
    assert.deepEqual(await this.serious(), []);
  }

  /** No error, nothing that the page's policy forbids, and no other host asked. */
  nothingWentWrong() {
    assert.deepEqual({ wrong: this.wrong, elsewhere: this.elsewhere }, { wrong: [], elsewhere: [] });
  }

  /** A picture for people, in target/screens, where `OVERSELL_SCREENS=1` asks for it: it takes longer than what it shows. @param {string} name */
  async screenshot(name) {
    if (process.env.OVERSELL_SCREENS !== '1') return;
    const folder = join(TARGET, 'screens');
    await mkdir(folder, { recursive: true });
    await this.page.screenshot({ path: join(folder, `${name}.png`) });
  }
}
