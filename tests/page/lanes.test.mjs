/**
 * The timeline of a race that is played on the real servers: what is drawn of each event, that no word stands on another, and that
 * everybody can use it.
 */

import assert from 'node:assert/strict';
import process from 'node:process';
import { describe, it } from 'node:test';
import { modelOf } from '../../static/js/timeline/model.js';
import { add, empty } from '../../static/js/timeline/player.js';
import { PROJECTOR, lab, until } from './support.mjs';

/** @typedef {import('./support.mjs').Tab} Tab */

/**
 * What is drawn of each race: whether two are seen inside, and how many arrows are red; without its cure and with it. All of them
 * with `OVERSELL_SOAK=1`; else the first, and those that are drawn side by side.
 */
const RACES = [
  { lesson: '1.3', flaw: { broken: true, arrows: 0 } },
  // Nobody has a lock; of a voucher, the lab's first one.
  { lesson: '002.new-mutex', flaw: { broken: false, arrows: 0 } },
  { lesson: '1.8', flaw: { broken: true, arrows: 0 } },
  // That the key names its owner, as 2.3 has it, does not keep two from being inside when the job outlives its lease.
  { lesson: '2.3', flaw: { broken: true, arrows: 1 }, cure: { broken: true, arrows: 0 } },
  { lesson: '2.3.gap', flaw: { broken: true, arrows: 1 } },
  { lesson: '2.5', flaw: { broken: true, arrows: 1 } },
  // It sells no piece twice: it waits for itself, or wakes too many.
  { lesson: '2.6', flaw: { broken: false, arrows: 0 } },
  { lesson: '3.4.2.herd', flaw: { broken: false, arrows: 0 } },
  { lesson: '2.7', flaw: { broken: true, arrows: 0 } },
  { lesson: '003.pause', flaw: { broken: true, arrows: 0 } },
].filter(({ lesson }) => process.env.OVERSELL_SOAK === '1' || ['1.3', '2.3', '2.3.gap', '003.pause'].includes(lesson));
const NOTHING_RED = { broken: false, arrows: 0 };

describe('what is told of a race that is stepped through', () => {
  const HELD = { actor: 'lock', event: 'held', owner: 'B', pttl: 600_000, t_us: 1_000 };
  const FREE = { actor: 'lock', event: 'free', t_us: 500_000 };
  const DELETED = { actor: 'A', event: 'deleted', value: 'foreign', t_us: 500_000 };
  for (const [first, second] of [[FREE, DELETED], [DELETED, FREE]]) {
    it(`ends the wedge where the arrow is, with ${first.event} told first`, () => {
      const recording = { ...empty(), stepped: true };
      let before = 0;
      for (const event of [HELD, first, second]) {
        add(recording, event, before);
        before = event.t_us;
      }
      const { arrows: [arrow], locks: [{ wedges: [wedge] }] } = modelOf(recording.events);
      assert.ok(wedge.from < arrow.at && arrow.at <= wedge.to, `${arrow.at} in ${wedge.from} to ${wedge.to}`);
    });
  }
});

describe('the timeline of a race', () => {
  const suite = lab();

  // The lease ends between GET and DEL. Its cure shows neither overlap nor arrow, by the same checks.
  it('draws 2.3 step by step, and its cure without overlap or arrow', async () => {
    const tab = await suite.tab('#/replay/2.3.gap');
    await tab.page.select('#replay-pace', 'step');
    await tab.press('#replay-run');
    const step = async () => {
      const steps = await tab.count('#replay-told li');
      await tab.press('#replay-run');
      await tab.holds((before) => document.querySelectorAll('#replay-told li').length > before, steps);
    };
    await tab.reads('#replay-run', /^下一步$/);
    await tab.reads('#replay-caption', /^A 拿到锁/);
    await step();
    await tab.reads('#replay-caption', /^GET 说锁是 A 的/);
    await tab.counts(drawn('inside'), 1);
    await step();
    await tab.reads('#replay-caption', /^B 拿到锁/);
    await step();
    await tab.reads('#replay-caption', /^C 在等/);
    await tab.counts(drawn('wedge'), 2);
    assert.deepEqual(
      await Promise.all(['inside', 'overlap', 'arrow', 'stopped', 'wedge'].map((kind) => tab.count(drawn(kind)))),
      [2, 0, 0, 0, 2],
    );
    await step();
    await tab.reads('#replay-caption', /^A 的 DEL/);
    await step();
    await tab.reads('#replay-caption', /^C 进来了/);
    await tab.has(ARROW);
    assert.equal(await tab.evaluate(wedgeOfArrow), 'B');
    await step();
    await tab.reads('#replay-caption', /^B 写完/);
    await tab.counts(drawn('overlap'), 2);
    await tab.press('#replay-run');
    await tab.reads('#replay-end', /^卖出 3，少了 2/);
    assert.equal(await tab.evaluate(wedgeOfArrow), 'B');
    assert.match(await tab.text('#replay-source .lit'), /Ok\(false\)/, 'B finds that its lock is gone');
    await tab.screenshot('replay-2.3.gap-steps-1280');

    await cured(tab, true);
    await tab.page.select('#replay-pace', 'slow');
    await play(tab);
    assert.equal(await tab.evaluate(wedgeOfArrow), 'no arrow');
    assert.equal(await tab.count(drawn('overlap')), 0);
    tab.nothingWentWrong();
  });

  it('is red where it breaks and nowhere else, and no word stands on another', async () => {
    const tab = await suite.tab('#/replay');
    for (const { lesson } of RACES) {
      for (const mended of [false, true]) {
        await visit(tab, lesson, mended);
        await play(tab);
        if (lesson === '2.3.gap' && !mended) await goesBackAndOn(tab);
        if (!mended) await tab.click('#replay-both');
        assert.equal(await tab.count('#both[hidden]'), 1, 'not yet: the cure has not been played');
      }
    }
    // In the same tab, where what was played stays.
    const browser = await tab.page.createCDPSession();
    const resize = (/** @type {readonly [number, number]} */ [width, height]) =>
      browser.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    const views = /** @type {const} */ ([[PROJECTOR, 'light', 'zh'], [PROJECTOR, 'dark', 'en'], [[390, 844], 'dark', 'zh']]);
    for (const [size, theme, language] of views) {
      await resize(size);
      await tab.click(`#${language}`);
      await tab.evaluate((name) => void (document.documentElement.dataset.theme = name), theme);
      for (const { lesson, flaw, cure = NOTHING_RED } of RACES) {
        for (const mended of [false, true]) {
          await visit(tab, lesson, mended);
          const name = `replay-${lesson}-${mended ? 'cure' : 'flaw'}-${size[0]}-${theme}-${language}`;
          await tab.screenshot(name);
          const seen = { broken: (await tab.count(drawn('overlap'))) > 0, arrows: await tab.count('#replay-lanes .arrow.red') };
          assert.deepEqual(seen, mended ? cure : flaw, name);
          assert.equal(await tab.count(drawn('stopped')), lesson === '003.pause' ? 1 : 0, name);
          assert.deepEqual(await tab.evaluate(wordsInTheWay), [], name);
          if (size === PROJECTOR) assert.deepEqual(await tab.evaluate(outOfSight), [], name);
        }
      }
      await visit(tab, '2.3.gap', false);
      await tab.everybodyCanUseIt();
    }

    await resize(PROJECTOR);
    for (const [lesson, arrows] of /** @type {const} */ ([['2.3', 1], ['2.3.gap', 1], ['003.pause', 0]])) {
      await visit(tab, lesson, false);
      await bothAtOneScale(tab, arrows, `replay-both-${lesson}-1280`);
    }
    tab.nothingWentWrong();

    // The twins: a word that is pushed onto the one beside it, and a button that has lost its name, are found.
    await tab.evaluate(() => {
      const [a, b] = document.querySelectorAll('#replay-lanes .label');
      for (const name of ['x', 'y']) a.setAttribute(name, b.getAttribute(name));
    });
    assert.notDeepEqual(await tab.evaluate(wordsInTheWay), []);
    await tab.evaluate(() => {
      const button = document.getElementById('replay-run');
      button.replaceChildren();
      button.id = 'lost';
    });
    assert.notDeepEqual(await tab.serious(), []);
  });

  for (const { lesson, together } of [{ lesson: '1.3', together: 2 }, { lesson: '2.10.1', together: 0 }]) {
    it(`draws two who buy at once in ${lesson} ${together ? 'together' : 'apart'}`, async () => {
      const tab = await suite.tab(`#/${lesson}?hold_ms=500`);
      await tab.has(`#chapters [aria-current][data-id="${lesson}"]`);
      await tab.press('#buy-two');
      await tab.counts('#answers [data-kind=inside]', 2);
      assert.equal(await tab.count('#answers [data-kind=overlap]'), together);
      tab.nothingWentWrong();
    });
  }
});

const ARROW = '#replay-lanes .arrow.red:not(.later)';

/** Shapes of this kind that are drawn. @param {string} kind */
const drawn = (kind) => `#replay-lanes [data-kind=${kind}]:not(.later)`;

/** Shows a race, and how it went if it was played. @param {Tab} tab @param {string} lesson @param {boolean} mended */
async function visit(tab, lesson, mended) {
  await tab.go(`replay/${lesson}?cured=${mended}`);
  await tab.has(`#replay-all option[value="${lesson}"]:checked`);
  await tab.has(`[name=cured][value=${mended}]:checked`);
}

/** @param {Tab} tab @param {boolean} mended */
async function cured(tab, mended) {
  await tab.click(`[name=cured][value=${mended}]`);
  await tab.holds((end) => location.hash.endsWith(end), `cured=${mended}`);
}

/** Presses the button, and waits until the race has come to its end. @param {Tab} tab */
async function play(tab) {
  await tab.reads('#replay-end', /^\D*$/);
  await tab.press('#replay-run');
  await tab.reads('#replay-end', /\d/);
  assert.doesNotMatch(await tab.text('#replay-end'), /没有跑成|这一次和平时不一样/);
}

/** Back to before the deletion, and on again; then it plays to its end. @param {Tab} tab */
async function goesBackAndOn(tab) {
  const end = await tab.text('#replay-at');
  await tab.evaluate(() => /** @type {HTMLElement} */ (document.activeElement).blur());
  for (const [key, arrows] of /** @type {const} */ ([['ArrowLeft', 0], ['ArrowRight', 1]])) {
    await until(async () => {
      await tab.key(key);
      return (await tab.count(ARROW)) === arrows;
    }, key);
  }
  await tab.key('ArrowLeft');
  assert.notEqual(await tab.text('#replay-at'), end);
  await tab.key(' ');
  await tab.holds((text) => document.getElementById('replay-at').textContent === text, end);
}

/** One press shows flaw and cure one above the other, at one scale; the next one shows one again. @param {Tab} tab @param {number} arrows @param {string} name */
async function bothAtOneScale(tab, arrows, name) {
  await tab.press('#replay-both');
  await tab.has('#both:not([hidden])');
  await tab.has('#replay-lanes[hidden]');
  await tab.screenshot(name);
  assert.equal(await tab.count('#both-flaw .arrow.red'), arrows);
  assert.equal(await tab.count('#both-cure .arrow.red'), 0);
  const [flaw, cure] = await Promise.all(['flaw', 'cure'].map((one) =>
    tab.page.$$eval(`#both-${one} .axis text`, (texts) => texts.map((text) => text.getAttribute('x') + text.textContent))));
  assert.deepEqual(flaw, cure);
  assert.notDeepEqual(flaw, []);
  await tab.everybodyCanUseIt();
  await tab.key('ArrowLeft');
  // Where it stands on the screen changes while it is scrolled.
  await tab.click('#replay-both');
  await tab.has('#both[hidden]');
}

/** In whose wedge the red arrow ends. */
function wedgeOfArrow() {
  const box = (e) => e.getBoundingClientRect();
  const arrow = document.querySelector('#replay-lanes .arrow.red:not(.later)');
  if (!arrow) return 'no arrow';
  const [x, y] = [(box(arrow).left + box(arrow).right) / 2, box(arrow).bottom];
  const wedges = [...document.querySelectorAll('#replay-lanes .wedge')];
  const hit = wedges.find((w) => box(w).left - 2 <= x && x <= box(w).right + 2 && box(w).top <= y && y <= box(w).bottom);
  if (!hit) return 'no wedge';
  const owners = [...document.querySelectorAll('#replay-lanes .owner')];
  return owners.find((o) => Math.abs(box(o).left - box(hit).left) < 12)?.textContent ?? 'no owner';
}

/** The words that are cut off, or stand on others. */
function wordsInTheWay() {
  /** @type {NodeListOf<SVGTextElement>} */
  const words = document.querySelectorAll('#replay-lanes text');
  const shown = [...words].filter((text) => text.textContent.trim() && !text.classList.contains('later'));
  const boxes = shown.map((text) => ({ text: text.textContent, box: text.getBBox() }));
  /** @type {SVGSVGElement} */
  const picture = document.querySelector('#replay-lanes svg');
  const right = picture.width.baseVal.value;
  const cut = boxes.filter(({ box }) => box.x < -1 || box.x + box.width > right + 2).map(({ text }) => `${text} is cut off`);
  const met = boxes.flatMap((a, i) => boxes.slice(i + 1).filter((b) => {
    // The letters, without the line's leading.
    const across = Math.min(a.box.x + a.box.width, b.box.x + b.box.width) - Math.max(a.box.x, b.box.x);
    const down = Math.min(a.box.y + a.box.height, b.box.y + b.box.height) - Math.max(a.box.y, b.box.y);
    return across > 2 && down > 8;
  }).map((b) => `${a.text} on ${b.text}`));
  return [...cut, ...met];
}

/** What of the lanes and the verdict is not seen without scrolling, in type of at least 20 pixels. */
function outOfSight() {
  const small = [...document.querySelectorAll('#replay-lanes .label, #replay-lanes .who')].filter((text) => parseFloat(getComputedStyle(text).fontSize) < 20);
  return [
    ...(document.getElementById('replay-end').getBoundingClientRect().bottom > innerHeight ? ['the verdict'] : []),
    ...(document.documentElement.scrollWidth > innerWidth ? ['what is too wide'] : []),
    ...small.map((text) => text.textContent),
  ];
}
