/** The words of a lesson's race, its guess, what was sent, and of deciding the order oneself, in both languages. See words.js. */

import { refusedIn } from './words-replay.js';

/** One of several words. @param {Record<string, string>} words @param {string} name */
const of = (words, name) => words[name];

/** @type {import('./words.js').Words} */
export const zh = {
  raceAgain: '再演一遍',
  raceIdle: (s) => `在真的服务器上演，有问题的和修正后的一起，约 ${s} 秒。`,
  raceOrdered: ({ sold }) => (sold > 1 ? `一个人下了 ${sold} 单。` : '一个人一单。'),
  bothFlaw: '时间线：有问题', bothCure: '时间线：修正后',
  replayOther: (lesson, which) => `正在演第 ${lesson} 课（${which}），演完才能演这一课。`,
  why: '为什么：', cureIs: '修正：',
  anomaly: (name) => of({
    'late-release': '这叫误删：迟到的释放（late release）。', 'lost-update': '这叫丢失更新（lost update）。',
    'check-then-act': '这叫先检查后执行（check-then-act）。', 'two-holders': '这叫两个持有者（mutual exclusion broken）。',
  }, name),
  guessRight: (n) => `猜对了：${n}`, guessWrong: (n) => `其实是 ${n}`,
  linesFlaw: '真的发出的：有问题', linesCure: '真的发出的：修正后', linesRefused: '→ 没抢到', linesForeign: (owner) => `✓ 删的是 ${owner} 的`,
  lineSpoken: ({ event, value, token }) => of({
    locked: `拿到锁${token ? `，令牌 ${token}` : ''}`, waits: '等', released: '解锁', lost: '解锁：锁已经不是它的', 'refused-by-row': '行拒绝：令牌太旧', failed: `失败：${refusedIn('zh', value)}`,
    stopped: '停住了', continued: '接着走', statement: value ?? '',
  }, event),
  linesSent: '真的发出的', orderTitle: '你来决定谁先走', orderOpen: '你来排顺序', orderClose: '收起', orderWhich: '哪一种', orderAgain: '从头再来', orderAll: '把所有顺序都试一遍',
  orderGoalFlaw: '用最少的次数，让它超卖。真的请求停在原地，你按谁，谁走一步。', orderGoalCure: '同样的请求，修正后的代码：你还能让它超卖吗？',
  orderPresses: (n, best) => `按了 ${n} 次${best ? `，最少 ${best} 次就超卖` : ''}`,
  orderNext: (point, isFirst) => `${isFirst ? '来买：' : ''}${of({ read: '读库存', written: '写回', checked: '看锁是谁的', released: '解锁', conflict: '重来', '': isFirst ? '一步做完' : '收尾（解锁、提交、回答）' }, point) ?? point}`,
  orderClock: (owner) => (owner ? `时钟走到头：${owner} 的租约到期` : '时钟：现在没有租约'),
  orderEnd: '走完了', orderWaits: (owner) => (owner ? `在等：锁在 ${owner} 手里` : '在路上，或在等'),
  orderTrying: (n, over) => `试到第 ${n + 1} 种顺序，${over} 种超卖…`,
  orderTried: (n, over) => `所有 ${n} 种顺序都试过了：${over ? `${over} 种超卖。` : '没有一种超卖。'}`,
  orderWon: (n) => `按了 ${n} 次，做到了。`, orderLost: '这个顺序没有超卖。',
  next: (name, place) => `下一课${place ? `（${place} / 12）` : ''}：${name} →`, ninety: '90 分钟，十二课', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · 还要 ${minutes} 分钟` : ''}`, ninetySeen: '演过了',
  votes: (n) => ` · ${n} 人`, votesAsk: '让全班猜', votesAsked: (n) => `手机在猜：${n} 人`,
  besideLink: '并排跑这几种', noButton: '这一课没有按钮：读一读，或者在终端里亲手做。', verdictAny: '全部',
  searchFound: (n) => `找到 ${n} 课`, loadTitle: '再跑一场：很多人同时买',
};

/** @type {import('./words.js').Words} */
export const en = {
  raceAgain: 'Play it again',
  raceIdle: (s) => `Played on the real servers, the flaw and its cure together, in about ${s} s.`,
  raceOrdered: ({ sold }) => (sold > 1 ? `${sold} orders of one user. ` : 'One order of one user. '),
  bothFlaw: 'Timeline: flaw', bothCure: 'Timeline: cure',
  replayOther: (lesson, which) => `Lesson ${lesson} (${which}) is being played; this one can be once it is over.`,
  why: 'Why: ', cureIs: 'The cure: ',
  anomaly: (name) => of({
    'late-release': 'This is a late release. ', 'lost-update': 'This is a lost update. ',
    'check-then-act': 'This is check-then-act. ', 'two-holders': 'These are two holders of one lock. ',
  }, name),
  guessRight: (n) => `Right: ${n}`, guessWrong: (n) => `It is ${n}`,
  linesFlaw: 'Really sent: flaw', linesCure: 'Really sent: cure', linesRefused: '→ taken', linesForeign: (owner) => `✓ it was ${owner}'s`,
  lineSpoken: ({ event, value, token }) => of({
    locked: `has the lock${token ? `, token ${token}` : ''}`, waits: 'waits', released: 'unlocks', lost: 'unlocks: the lock is no longer its own',
    'refused-by-row': 'refused by the row: an old token', failed: `fails: ${refusedIn('en', value)}`, stopped: 'stands still', continued: 'goes on', statement: value ?? '',
  }, event),
  linesSent: 'Really sent', orderTitle: 'You decide who goes on', orderOpen: 'Be the scheduler', orderClose: 'Close', orderWhich: 'Which one', orderAgain: 'From the start', orderAll: 'Try all orders',
  orderGoalFlaw: 'Make it oversell in the fewest presses. The real requests stand still; whom you press takes a step.', orderGoalCure: 'The same requests, on the cure: can you still make it oversell?',
  orderPresses: (n, best) => `${n} ${n === 1 ? 'press' : 'presses'}${best ? `; ${best} are enough to oversell` : ''}`,
  orderNext: (point, isFirst) => `${isFirst ? 'comes: ' : ''}${of({ read: 'reads the stock', written: 'writes', checked: 'looks whose lock it is', released: 'unlocks', conflict: 'begins again', '': isFirst ? 'does it in one step' : 'ends (unlocks, commits, answers)' }, point) ?? point}`,
  orderClock: (owner) => (owner ? `time passes: the lease of ${owner} ends` : 'the clock: no lease now'),
  orderEnd: 'is through', orderWaits: (owner) => (owner ? `waits: ${owner} has the lock` : 'is on its way, or waits'),
  orderTrying: (n, over) => `Trying order ${n + 1}; ${over} have oversold…`,
  orderTried: (n, over) => `All ${n} orders were tried: ${over ? `${over} oversell.` : 'none oversells.'}`,
  orderWon: (n) => `Done in ${n} presses. `, orderLost: 'This order does not oversell. ',
  next: (name, place) => `Next${place ? ` (${place} of 12)` : ''}: ${name} →`, ninety: '90 minutes, twelve lessons', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · ${minutes} min left` : ''}`, ninetySeen: 'was played',
  votes: (n) => ` · ${n}`, votesAsk: 'Let the class guess', votesAsked: (n) => `Phones guess: ${n}`,
  besideLink: 'Run these side by side', noButton: 'This lesson has no button: read it, or do it by hand in a terminal.', verdictAny: 'all',
  searchFound: (n) => `${n} lessons`, loadTitle: 'And a run: many who buy at once',
};
