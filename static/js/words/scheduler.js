/** The words of the scheduler, in both languages. */

import { choose } from './choose.js';

/** The goal of whoever decides the schedule, and what is said once it is reached. @type {Record<'zh' | 'en', Record<string, string>>} */
const WRONG = {
  zh: { oversold: '它超卖', stuck: '所有请求都阻塞', overtaken: '后来的先进去', deadlock: ' MySQL 报错' },
  en: { oversold: 'it oversell', stuck: 'everybody wait for ever', overtaken: 'a later one get in first', deadlock: 'MySQL end a transaction with an error' },
};
/** @type {Record<'zh' | 'en', Record<string, string>>} */
const SEEN = {
  zh: { oversold: '超卖', stuck: '卡死', overtaken: '插队', deadlock: '报错' },
  en: { oversold: 'oversold', stuck: 'stuck', overtaken: 'overtaken', deadlock: 'ended with an error' },
};

/** @type {import('./all.js').Words} */
export const zh = {
  scheduleTitle: '你来决定谁先走',
  scheduleLevelsTitle: '关卡',
  scheduleLevels: (won, all) => `过了 ${won} / ${all} 关`,
  scheduleLevelWon: (n, par) => `过了：${n} 次，最少 ${par} 次`,
  scheduleNextLevel: (name) => `下一关：${name} →`,
  scheduleWhich: '哪一种',
  scheduleAgain: '从头再来',
  scheduleAll: '把所有顺序都试一遍',
  scheduleGoalFlaw: (goal) => `用最少的次数，让${WRONG.zh[goal]}。你按谁，谁走一步。`,
  scheduleGoalCure: (goal) => `同样的请求，修正后的代码：你还能让${WRONG.zh[goal]}吗？`,
  schedulePresses: (n, par) => `按了 ${n} 次${par < Infinity ? `，最少 ${par} 次` : ''}`,
  scheduleNext: (point, isFirst) => `${isFirst ? '来买：' : ''}${choose({ read: '读库存', written: '写回', checked: '看锁是谁的', released: '解锁', conflict: '重来', refused: '再来抢锁', asks: '抢锁', '': isFirst ? '一步做完' : '收尾（解锁、提交、回答）' }, point) ?? point}`,
  scheduleClock: (owner) => (owner ? `时钟走到头：${owner} 的租约到期` : '时钟：现在没有租约'),
  scheduleFailover: (state) => choose({ done: '从节点升上来了', way: 'Sentinel 正在切换，要几秒' }, state) ?? '主节点没了：Sentinel 把断了线的从节点升为主节点',
  scheduleDeath: (actor) => `${actor} 死在这一步`,
  scheduleDead: '死了',
  scheduleStuck: (owner) => `谁也无法继续${owner ? `：锁在 ${owner} 手里，没有人会还` : ''}。`,
  scheduleGotIn: (order) => `进去的顺序：${order}。`,
  scheduleEnd: '走完了',
  scheduleWaits: (owner) => (owner ? `等待中：锁在 ${owner} 手里` : '在途中，或等待中'),
  scheduleTrying: (n, wrong, goal) => `试到第 ${n + 1} 种顺序，${wrong} 种${SEEN.zh[goal]}…`,
  scheduleTried: (n, wrong, goal, par = 0) => `所有 ${n} 种顺序都试过了：${wrong ? `${wrong} 种` : '没有一种'}${SEEN.zh[goal]}${par ? `，最少按 ${par} 次` : ''}。`,
  scheduleWon: (n, par) => `按了 ${n} 次，做到了${par === Infinity ? '' : n > par ? `；最少 ${par} 次` : '，不能更少'}。`,
  scheduleStatement: (isFirst) => (isFirst ? '开启事务，发出' : '发出'),
  scheduleWaitsFor: (from, to) => (from === to ? `${from} 等待自己` : `${from} 等待 ${to}`),
  scheduleNobodyWaits: '没有人在等待',
  scheduleWaitsTitle: '谁在等待谁',
  scheduleWrong: (goal, [first, second], { actor, error }) => choose({ oversold: `${second ?? first} 用读到的旧值盖掉了别人的写：超卖。`, overtaken: `${first} 先来，${second} 先进去：插队。`, deadlock: `MySQL 让 ${actor} 出错：${error}。` }, goal) ?? '',
  scheduleLost: (goal) => `这个顺序没有${SEEN.zh[goal]}。`,
  scheduleTriedOne: (wrong, n, goal) => (wrong ? `第 ${n} 次${SEEN.zh[goal]}` : `没有${SEEN.zh[goal]}`),
  scheduleCureLoses: (cure, clock) => `为什么修正后也会：${choose({
    'redis-setnx-owner': '它只在删锁以前看一眼锁是谁的；租约在写之前到期，锁就保护不了写，要续期或者令牌。',
    'redis-setnx-lua': '它只保证不删别人的锁；租约在写之前到期，锁就保护不了写，要续期或者令牌。',
    'redis-watchdog': '它只保证不给别人的锁续期；已经到期的租约，续期救不回来，锁就保护不了写，要令牌。',
  }, clock ? cure : '') ?? '写的时候，锁已经不在它手里，存储没有检查。'}`,
};

/** @type {import('./all.js').Words} */
export const en = {
  scheduleTitle: 'You decide who goes on',
  scheduleLevelsTitle: 'Levels',
  scheduleLevels: (won, all) => `${won} of ${all} won`,
  scheduleLevelWon: (n, par) => `won in ${n}; ${par} are enough`,
  scheduleNextLevel: (name) => `Next level: ${name} →`,
  scheduleWhich: 'Which one',
  scheduleAgain: 'Restart',
  scheduleAll: 'Try all orders',
  scheduleGoalFlaw: (goal) => `Make ${WRONG.en[goal]} in the fewest presses: whom you press takes a step.`,
  scheduleGoalCure: (goal) => `The same requests, on the cure: can you still make ${WRONG.en[goal]}?`,
  schedulePresses: (n, par) => `${n} ${n === 1 ? 'press' : 'presses'}${par < Infinity ? `; ${par} are enough` : ''}`,
  scheduleNext: (point, isFirst) => `${isFirst ? 'comes: ' : ''}${choose({ read: 'reads the stock', written: 'writes', checked: 'looks whose lock it is', released: 'unlocks', conflict: 'begins again', refused: 'asks for the lock again', asks: 'asks for the lock', '': isFirst ? 'does it in one step' : 'ends (unlocks, commits, answers)' }, point) ?? point}`,
  scheduleClock: (owner) => (owner ? `time passes: the lease of ${owner} ends` : 'the clock: no lease now'),
  scheduleFailover: (state) => choose({ done: 'the replica leads now', way: 'the Sentinel is at it; that takes seconds' }, state) ?? 'the main one is gone: the Sentinel promotes the replica, which was cut off',
  scheduleDeath: (actor) => `${actor} dies here`,
  scheduleDead: 'is dead',
  scheduleStuck: (owner) => `Nobody can go on${owner ? `: ${owner} has the lock, and nobody will release it` : ''}. `,
  scheduleGotIn: (order) => `They got in in the order ${order}. `,
  scheduleEnd: 'is through',
  scheduleWaits: (owner) => (owner ? `waits: ${owner} has the lock` : 'is on its way, or waits'),
  scheduleTrying: (n, wrong, goal) => `Trying schedule ${n + 1}; ${SEEN.en[goal]} in ${wrong} so far…`,
  scheduleTried: (n, wrong, goal, par = 0) => `All ${n} schedules were tried: ${SEEN.en[goal]} in ${wrong || 'none'}${par ? `, after ${par} presses at the earliest` : ''}.`,
  scheduleWon: (n, par) => `Done in ${n} ${n === 1 ? 'press' : 'presses'}${par === Infinity ? '' : n > par ? `; ${par} are enough` : ', and fewer are not enough'}. `,
  scheduleStatement: (isFirst) => (isFirst ? 'begins a transaction, sends' : 'sends'),
  scheduleWaitsFor: (from, to) => (from === to ? `${from} waits for itself` : `${from} waits for ${to}`),
  scheduleNobodyWaits: 'nobody waits',
  scheduleWaitsTitle: 'Who waits for whom',
  scheduleWrong: (goal, [first, second], { actor, error }) => choose({ oversold: `${second ?? first} has overwritten another's write with its stale value: oversold. `, overtaken: `${first} came first, and ${second} got in first: overtaken. `, deadlock: `MySQL has ended ${actor}'s statement: error ${error}. ` }, goal) ?? '',
  scheduleLost: (goal) => `Not ${SEEN.en[goal]} in this schedule. `,
  scheduleTriedOne: (wrong, n, goal) => (wrong ? `${SEEN.en[goal]} after ${n}` : `not ${SEEN.en[goal]}`),
  scheduleCureLoses: (cure, clock) => `Why on the cure too: ${choose({
    'redis-setnx-owner': 'it only looks whose lock it is before it deletes. The lease ended before the write; only a renewal or a token helps. ',
    'redis-setnx-lua': 'it only keeps from deleting the lock of another. The lease ended before the write; only a renewal or a token helps. ',
    'redis-watchdog': 'it only keeps from renewing the lock of another. No renewal brings back a lease that has ended before the write; only a token helps. ',
  }, clock ? cure : '') ?? 'at its write the lock was no longer its own, and the store did not look. '}`,
};
