/** What is true of every race, of those too that need a lab whose links can be cut and whose Redis fails over. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NEEDS_OPTIONS, QUICK_WITH_OPTIONS, UNLISTED, linesIn, play, problemsOf, wrongCaptions } from './race-events.mjs';
import { BREAKABLE, getJson, itInSoak, lab } from './support.mjs';

/** Each half of these lasts some seconds. */
const SLOW = ['003.master', '003.redlock.answers', '003.redlock.restart', '2.8', '2.9', 'beyond.etcd-still'];
const QUICK = ['003.redlock.clock', '2.10.4', '2.9.nodes'];

describe('the races that break links and servers', () => {
  const suite = lab(...BREAKABLE);

  it('are all that a lab without options cannot play', async () => {
    const { replays } = await getJson(`${suite.at.http}/replays`);
    assert.deepEqual(replays.filter(({ cannot }) => cannot).map(({ lesson }) => lesson), []);
    assert.deepEqual([...SLOW, ...QUICK].sort(), NEEDS_OPTIONS);
  });

  for (const lesson of [...QUICK, ...QUICK_WITH_OPTIONS, ...SLOW]) {
    (SLOW.includes(lesson) ? itInSoak : it)(`${lesson} tells what was sent, and each caption with its event`, async () => {
      const tab = await suite.openTab('#/1.1');
      await tab.waitForLesson('1.1');
      for (const cured of [false, true]) {
        const { events } = await play(suite.at.http, lesson, cured);
        assert.deepEqual(problemsOf(events), [], `cured: ${cured}`);
        assert.deepEqual(wrongCaptions(events), [], `cured: ${cured}`);
        assert.deepEqual((await linesIn(tab, events)).filter(({ came }) => UNLISTED.test(came)), [], `cured: ${cured}`);
      }
    });
  }
});
