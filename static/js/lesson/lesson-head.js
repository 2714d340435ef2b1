/** The head of a lesson: its title, claim, strategy, and what breaks it. */

import { nameInTitle } from './course.js';
import { $, el, setText } from '../shared/dom.js';
import * as headline from './headline.js';
import { currentLanguage, t } from '../shared/language.js';
import { promiseMark } from './promise-mark.js';
import { nameOf } from './lesson-number.js';
import * as ninetyMinutes from './ninety-minutes.js';
import { formatAddress, isOneBuyer } from '../page/address.js';

/** @typedef {import('./course.js').Lesson} Lesson */
/** @typedef {import('./course.js').Strategy} Strategy */

/** @type {Record<string, string>} */
const SERVERS = { mysql: 'MySQL', redis: 'Redis', zookeeper: 'ZooKeeper', etcd: 'etcd' };

/** Strategies whose lock one can edit as scripts. */
const HAS_SCRIPTS = /^(redis-setnx|redis-reentrant$|redis-watchdog$|mine$)/;

/** @param {string[]} names @returns {string} */
export const serverNames = (names) => names.map((n) => SERVERS[n] ?? n).join(' + ');

/** @param {Lesson} lesson @param {Strategy | null} strategy @returns {string} */
function claimText({ claim: own }, strategy) {
  const lang = currentLanguage();
  if (own) return own[lang];
  if (!strategy) return '';
  const title = strategy.title[lang];
  const rest = title.slice(nameInTitle(title).length).replace(/^(：|: )/, '');
  return rest ? rest[0].toUpperCase() + rest.slice(1) + t('stop') : t('promiseLong', strategy.promise);
}

/**
 *
 * @param {Lesson} lesson @param {Strategy | null} strategy @param {import('../page/address.js').Settings} settings
 * @param {Lesson | null} next the lesson after it
 */
export function draw(lesson, strategy, settings, next) {
  const lang = currentLanguage();
  headline.draw(lesson, claimText(lesson, strategy));
  // One buyer alone shows nothing of what the strategy promises.
  $('promise').replaceChildren(...(strategy && !isOneBuyer(lesson.id) ? [promiseMark(strategy.promise), ' ', t('promised', strategy.promise)] : []));
  setText($('breaks'), strategy ? t('breaks', strategy.breaks[lang]) : '');
  const facts = strategy ? [strategy.slug, t('sells', strategy.store), t('needs', serverNames(strategy.needs))] : [];
  if (strategy?.lease_ms != null) facts.push(t('lease', strategy.lease_ms / 1000));
  if (strategy?.beyond) facts.push(t('beyond'));
  setText($('needs'), facts.join(' · '));
  const isLast = ninetyMinutes.positionOf(lesson.id) > 0 && !ninetyMinutes.nextAfter(lesson.id);
  $('next').replaceChildren(...(isLast ? [t('spineEnd'), ' ', el('a', { href: '#/2.10.5' }, t('spineLibraries')), ' · ', el('a', { href: '#/4.2' }, t('spineTable')), ' · ', el('a', { href: 'mine.html' }, t('mineTitle')), ' · ', el('a', { href: '#/verdicts' }, t('allVerdicts'))] : next ? [el('a', { href: `#/${encodeURIComponent(next.id)}` }, t('next', nameOf(next, lang), ninetyMinutes.positionOf(lesson.id) && ninetyMinutes.nextAfter(lesson.id) === next.id ? ninetyMinutes.positionOf(next.id) : 0))] : []));

  $('beside').hidden = lesson.strategies.length < 2;
  $('beside').href = `#/compare?strategy=${lesson.strategies.map((s) => s.slug).join(',')}`;
  $('own').hidden = !strategy || !HAS_SCRIPTS.test(strategy.slug);
  $('which').hidden = lesson.strategies.length < 2;
  $('which').replaceChildren(...lesson.strategies.map((s, i) => el('a', {
    href: formatAddress(lesson.id, settings, i ? s.slug : null), 'aria-current': s === strategy && 'true', title: s.title[lang],
  }, s.slug)));
}
