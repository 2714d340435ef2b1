/**
 * The two layouts in which a race is watched: projected at 1280 x 720, and on a phone of 390 x 844. Where every box is while it plays and at
 * its end. All lessons, and the other sizes, with `OVERSELL_SOAK=1`; else that of the highest pictures.
 */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NINETY_MINUTES } from '../../static/js/lesson/ninety-minutes.js';
import { PROJECTOR, SOAK, describeInSoak, getJson, itInSoak, lab, ownLab, sendJson } from './support.mjs';

/** @type {import('./support.mjs').Size} */
const TALL_PHONE = [390, 844];
const MIN_LABEL_PX = 20;
/** The least height of a button for a finger. */
const MIN_TARGET_PX = 40;
/** What a flaw shows while it plays: a dot; or who is inside, if nobody sells. */
const PLAYING_MARK = '#race.playing #race-flaw :is(circle, .inside):not(.later)';
/** This race has charts and no lanes. */
const COUNTED = '3.4.2.herd';
/** The last mark is at least here, as a share of the picture: the axis ends where the race ends. */
const LAST_MARK_AT = 0.8;

describe('the two layouts of a race', () => {
  const suite = lab();

  /** The lessons whose boxes are looked at. @returns {Promise<string[]>} */
  async function lessons() {
    if (!SOAK) return ['2.3'];
    const { replays } = await getJson(`${suite.at.http}/replays`);
    return replays.filter((race) => !race.cannot && race.lasts_ms > 0 && race.lesson !== COUNTED).map((race) => race.lesson);
  }

  it('projected: all height is the two pictures', async () => {
    const tab = await suite.openTab('#/1.1', PROJECTOR);
    await tab.waitForLesson('1.1');
    await tab.click('#projector');
    for (const lesson of await lessons()) {
      await tab.go(lesson);
      await tab.waitForLesson(lesson);
      await tab.waitForElement('#race-run[aria-disabled=false]');
      await tab.evaluate(watchHeights);
      await tab.evaluate(() => scrollTo({ top: 300, behavior: 'instant' }));
      await tab.pressKey('r');
      await tab.waitForElement(PLAYING_MARK);
      const playing = await tab.evaluate(boxes);
      assert.ok(playing.least >= MIN_LABEL_PX, `${lesson}: a word of ${playing.least} px`);
      assert.ok(playing.pictures[0] - playing.claim.bottom < 60, `${lesson}: nothing is between claim and picture: ${JSON.stringify(playing)}`);
      assert.ok(playing.claim.top >= 0, `${lesson}: the pictures are in sight wherever the page was: ${JSON.stringify(playing)}`);
      assert.equal(playing.lights, false, lesson);
      await tab.waitForElement('#race.ended');
      const ended = await tab.evaluate(boxes);
      assert.deepEqual(await tab.evaluate('window.changes.playing'), [], `${lesson}: it stands still`);
      assert.ok(ended.least >= MIN_LABEL_PX, `${lesson}: a word of ${ended.least} px`);
      assert.ok(ended.claim.top >= 0 && ended.why.bottom <= ended.height, `${lesson}: claim and why are on one screen: ${JSON.stringify(ended)}`);
      assert.ok(Math.max(...ended.last) >= LAST_MARK_AT, `${lesson}: the axis ends with the race: ${ended.last}`);
      await tab.screenshot(`projected-${lesson}`);
    }
    tab.assertNoErrors();
  });

  // Long verdicts and explanations, in English, leave least height.
  itInSoak('a desk shows the end when it happens', async () => {
    const tab = await suite.openTab('#/2.3', PROJECTOR);
    await tab.waitForLesson('2.3');
    await tab.click('#en');
    await tab.press('#race-run');
    await tab.waitForElement(PLAYING_MARK);
    assert.equal(await tab.count('#race-guess:not([hidden])'), 0, 'the guess gives its place to the pictures');
    await tab.waitForElement('#race.ended');
    const { why, height } = await tab.evaluate(boxes);
    assert.ok(why.top >= 0 && why.bottom <= height, `the explanation: ${JSON.stringify(why)}`);
    await tab.screenshot('desk-2.3');
    tab.assertNoErrors();
  });

  // The cure is played after the flaw.
  for (const size of [PROJECTOR, TALL_PHONE]) {
    (size === PROJECTOR ? it : itInSoak)(`a flaw alone has the height, and is explained while its cure plays, at ${size.join(' × ')}`, async () => {
      const tab = await suite.openTab('#/003.pause', size);
      await tab.waitForLesson('003.pause');
      if (size === PROJECTOR) await tab.click('#projector');
      await tab.evaluate(watchHeights);
      await tab.press('#race-run');
      await tab.waitForElement(PLAYING_MARK);
      const alone = await tab.evaluate(boxes);
      assert.ok(size !== PROJECTOR || alone.flaw.bottom > alone.height * 0.8, `the picture: ${JSON.stringify(alone)}`);
      await tab.waitForElement('#race.playing #race-why:not(.later)');
      const told = await tab.evaluate(boxes);
      assert.ok(told.why.bottom <= told.height, `told: ${JSON.stringify(told.why)}`);
      await tab.waitForElement('#race.playing #race-cure circle:not(.later)');
      const { why, height } = await tab.evaluate(boxes);
      assert.ok(why.bottom <= height, `beside the cure: ${JSON.stringify(why)}`);
      await tab.waitForElement('#race.ended');
      const ended = await tab.evaluate(boxes);
      assert.ok(ended.why.bottom <= height, `at the end: ${JSON.stringify(ended.why)}`);
      assert.deepEqual(await tab.evaluate('window.changes.playing'), [], 'it stands still');
      tab.assertNoErrors();
    });
  }

  for (const size of [PROJECTOR, TALL_PHONE]) {
    itInSoak(`the charts of the herd are on the screen at the end, at ${size.join(' × ')}`, async () => {
      const tab = await suite.openTab(`#/${COUNTED}`, size);
      await tab.waitForLesson(COUNTED);
      if (size === PROJECTOR) await tab.click('#projector');
      await tab.press('#race-run');
      await tab.waitForElement('#race.ended');
      const { woken, why, height, pictures } = await tab.evaluate(boxes);
      assert.ok(woken.top >= 0 && woken.bottom > woken.top && woken.bottom <= why.top && why.bottom <= height, JSON.stringify({ woken, why }));
      assert.deepEqual(pictures, [], 'no lanes');
      await tab.screenshot(`herd-${size[0]}`);
      tab.assertNoErrors();
    });
  }

  it('a phone shows the end when it happens', async () => {
    const tab = await suite.openTab('#/1.1', TALL_PHONE);
    for (const lesson of await lessons()) {
      await tab.go(lesson);
      await tab.waitForLesson(lesson);
      await tab.evaluate(watchHeights);
      await tab.press('#race-run');
      await tab.waitForElement(PLAYING_MARK);
      // The pictures begin below one line of buttons; a race whose cure comes later has no second picture yet.
      const { pictures: [, second = 0], bar } = await tab.evaluate(boxes);
      assert.ok(bar.bottom < 60 || second < TALL_PHONE[1] * 0.6, `${lesson}: both pictures are in sight: ${JSON.stringify([bar, second])}`);
      await tab.waitForElement('#race.ended');
      assert.deepEqual(await tab.evaluate('window.changes.playing'), [], `${lesson}: it stands still`);
      const { inSight, why, height } = await tab.evaluate(boxes);
      assert.deepEqual(inSight, [true, true], `${lesson}: the last marks and words of both pictures`);
      assert.ok(why.top >= 0 && why.bottom <= height, `${lesson}: the explanation: ${JSON.stringify(why)}`);
      assert.ok(!(await tab.isWiderThanWindow()), lesson);
      // From the first mark on: nothing is scrolled, and no word is cut.
      const beyond = await tab.evaluate(() => ['flaw', 'cure'].flatMap((half) => {
        const host = document.getElementById(`race-${half}`);
        const box = host.getBoundingClientRect();
        const out = [...host.querySelectorAll('.label, circle')].filter((one) => one.textContent || one.matches('circle')).map((one) => one.getBoundingClientRect()).filter(({ left, right }) => left < box.left - 1 || right > box.right + 1);
        return host.scrollWidth > host.clientWidth || out.length ? [`${half}: ${host.scrollWidth} in ${host.clientWidth}, ${out.length} beyond`] : [];
      }));
      assert.deepEqual(beyond, [], lesson);
      await tab.screenshot(`phone-${lesson}`);
    }
    // English words are the longest.
    await tab.go('2.3');
    await tab.waitForLesson('2.3');
    await tab.click('#en');
    await tab.waitForText('#race-run', /^Play/);
    const buttons = await tab.page.$$eval('#race-run, #race-schedule, #race-timing', (all) => all.map((one) => ({
      top: one.getBoundingClientRect().top, height: one.getBoundingClientRect().height, isCut: one.scrollWidth > one.clientWidth,
    })));
    assert.equal(buttons.length, 3);
    assert.ok(buttons.every(({ top, height, isCut }) => top === buttons[0].top && height >= MIN_TARGET_PX && !isCut), JSON.stringify(buttons));
    await tab.screenshot('phone-buttons');
    tab.assertNoErrors();
  });
});

describeInSoak('a race whose class has voted', () => {
  const suite = ownLab();

  // English answers have more lines.
  it('projected: votes, pictures and explanation are on one screen', async () => {
    const tab = await suite.openTab('#/1.1', PROJECTOR);
    await tab.waitForLesson('1.1');
    await tab.click('#en');
    await tab.click('#projector');
    await tab.press('#race-class');
    for (const [lesson] of NINETY_MINUTES) {
      await tab.go(lesson);
      await tab.waitForLesson(lesson);
      await tab.waitForElement('#race-run[aria-disabled=false]');
      await tab.waitForElement('#race-guess .share');
      for (const [who, guess] of [['小明', 1], ['小红', 1], ['小刚', 0]]) await sendJson(`${suite.at.http}/classroom/guesses`, { lesson, who, guess });
      await tab.waitForText('#race-class', /3/);
      await tab.pressKey('r');
      await tab.waitForElement('#race-run.cancel');
      await tab.waitForElement('#race.ended');
      const { guess, pictures, why, woken, height, least } = await tab.evaluate(boxes);
      assert.ok(guess.top >= 0 && guess.bottom > guess.top && guess.bottom <= (pictures[0] ?? woken.top), `${lesson}: the votes: ${JSON.stringify([guess, pictures])}`);
      assert.ok(Math.max(why.bottom, woken.bottom) <= height, `${lesson}: the end: ${JSON.stringify([why, woken])}`);
      assert.ok(least >= MIN_LABEL_PX, `${lesson}: a word of ${least} px`);
      await tab.screenshot(`projected-votes-${lesson}`);
    }
    tab.assertNoErrors();
  });
});

/** From now on, the heights that a half gets while a race plays, after its first; a flaw that was alone gets another beside its cure. */
function watchHeights() {
  const changes = (/** @type {any} */ (window).changes = { playing: [], watch: new ResizeObserver(() => {
    const isPlaying = document.querySelector('#race-run.cancel') != null;
    for (const half of ['flaw', 'cure']) {
      const height = isPlaying ? document.getElementById(`race-${half}-part`).offsetHeight : 0;
      if (half === 'flaw' && !heights.get('cure') && document.getElementById('race-cure-part').offsetHeight) heights.delete(half);
      const first = heights.get(half);
      if (height && first && height !== first) changes.playing.push({ half, first, height });
      heights.set(half, height && (first || height));
    }
  }) });
  /** @type {Map<string, number>} */
  const heights = new Map();
  for (const half of ['flaw', 'cure']) for (const id of [`race-${half}-part`, `race-${half}`]) changes.watch.observe(document.getElementById(id));
}

/** Where everything is. */
function boxes() {
  const box = (/** @type {string} */ id) => document.getElementById(id).getBoundingClientRect();
  const of = (/** @type {string} */ id) => ({ top: Math.round(box(id).top), bottom: Math.round(box(id).bottom) });
  const halves = ['flaw', 'cure'].filter((half) => document.getElementById(`race-${half}`).checkVisibility());
  const marks = halves.map((half) => {
    const last = [...document.querySelectorAll(`#race-${half} :is(circle, .waits, .inside):not(.later)`)].map((one) => one.getBoundingClientRect()).sort((a, b) => a.right - b.right).at(-1);
    const words = Math.max(...[...document.querySelectorAll(`#race-${half} .label:not(.later)`)].map((one) => one.getBoundingClientRect().right));
    const names = document.querySelector(`#race-${half} .names .ground`).getBoundingClientRect();
    return { last, words, names, host: box(`race-${half}`) };
  });
  return {
    height: innerHeight, claim: of('claim'), bar: of('race-run'), guess: of('race-guess'), flaw: of('race-flaw'), why: of('race-why'), woken: of('race-woken'), pictures: halves.map((half) => of(`race-${half}`).top),
    least: Math.min(...[...document.querySelectorAll('#race .timeline text')].map((one) => parseFloat(getComputedStyle(one).fontSize))),
    lights: document.getElementById('lights').checkVisibility(),
    last: marks.map(({ last, host }) => (last ? (last.right - host.left) / host.width : 0)),
    inSight: marks.map(({ last, words, names, host }) => last != null && last.right > names.right && last.right <= host.right && last.top >= 0 && words <= host.right + 1),
  };
}
