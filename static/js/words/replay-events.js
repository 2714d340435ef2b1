/** The words of events that only some replays have. An unknown event is shown as it came. */

import { reasonText } from './reasons.js';

/** @typedef {import('../timeline/events.js').ReplayEvent} ReplayEvent */
/** @typedef {{zh: (...found: string[]) => string, en: (...found: string[]) => string}} EventWords */

/** @type {Record<string, EventWords>} */
const EVENTS = {
  set: { zh: (n) => `设成 ${n}`, en: (n) => `sets it to ${n}` },
  incr: { zh: (n) => `数到 ${n}`, en: (n) => `counts to ${n}` },
  counted: { zh: () => '数完了', en: () => 'has counted' },
  compared: { zh: () => '比过了', en: () => 'has compared' },
  woken: { zh: (n) => `唤醒 ${n} 个`, en: (n) => `${n} woken` },
  out: { zh: (n) => (n === '-' ? '出来了' : `出来了，还有 ${n} 位`), en: (n) => (n === '-' ? 'goes out' : `goes out, ${n} left`) },
  door: { zh: () => '锁门', en: () => 'locks the door' },
  delivered: { zh: () => '收到消息', en: () => 'gets the message' },
  worked: { zh: () => '做完了业务', en: () => 'has done its work' },
  renew: { zh: () => '要续期', en: () => 'is about to renew' },
  renewed: { zh: () => '续期了', en: () => 'has renewed' },
  commit: { zh: () => '要提交', en: () => 'is about to commit' },
  unlock: { zh: () => '要解锁', en: () => 'is about to unlock' },
  leaves: { zh: () => '走了', en: () => 'leaves' },
  left: { zh: () => '走了', en: () => 'has left' },
  'upgrade-refused': { zh: () => '升级被拒绝', en: () => 'the upgrade is refused' },
  downgraded: { zh: () => '降级了', en: () => 'has downgraded' },
  'let-through': { zh: () => '放行', en: () => 'let through' },
  limited: { zh: () => '被限流', en: () => 'limited' },
  answered: { zh: (text) => `得到 ${text}`, en: (text) => `is answered ${text}` },
  statement: { zh: (sql) => `发 ${sql}`, en: (sql) => `sends ${sql}` },
  watched: { zh: () => 'WATCH', en: () => 'WATCH' },
  count: { zh: (n) => `计数 ${n}`, en: (n) => `count ${n}` },
};

/** Reasons of refusals. @type {Record<'zh' | 'en', Record<string, string>>} */
const REFUSED = {
  zh: { 'not-had': '没等到', 'sold-out': '售罄', 'already-ordered': '已经下过单', 'under-way': '另一单还没完', lost: '锁丢了', dead: '死了', killed: 'kill -9', 'hung-up': '挂断了', 'rolled-back': '被 MySQL 回滚' },
  en: { 'not-had': 'waited in vain', 'sold-out': 'sold out', 'already-ordered': 'has ordered already', 'under-way': 'another order is under way', lost: 'has lost the lock', dead: 'dies', killed: 'kill -9', 'hung-up': 'hangs up', 'rolled-back': 'rolled back by MySQL' },
};

/** @param {'zh' | 'en'} lang @param {string | undefined} kind @returns {string} */
export const refusalText = (lang, kind) => REFUSED[lang][kind ?? ''] ?? reasonText(lang, kind ?? '');

/** @param {'zh' | 'en'} lang @param {ReplayEvent} event */
export const eventText = (lang, { event, value }) => EVENTS[event]?.[lang](value ?? '') ?? `${event} ${value ?? ''}`.trim();

/** The node, where a lock has several. @param {string | undefined} key @returns {string} */
export const nodeName = (key) => (/^redis(-\d+)? /.test(key ?? '') ? ` ${(key ?? '').split(' ')[0]}` : '');
