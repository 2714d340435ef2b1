/** The words of a race, its guess, the commands sent, and the scheduler, in both languages. */

import { choose } from './choose.js';
import { refusalText } from './replay-events.js';

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
  raceAgain: '再演一遍',
  raceIdle: (s) => `在真的服务器上演，有问题的和修正后的一起，约 ${s} 秒。`,
  raceOrdered: ({ sold }) => (sold > 1 ? `一个人下了 ${sold} 单。` : '一个人一单。'),
  legendOf: (kind) => choose({ waits: '在等', inside: '在里面', leaves: '写完，还没解锁', overlap: '和别人同时在临界区，或用旧值', stopped: '停住', shared: '一起在里面（允许）', vain: '失败的一次尝试', shut: '自以为在里面，令牌已旧', wedge: '锁：谁的，还剩多少租约', message: '发给服务器', carry: '读到的旧值，盖掉了别人的写', arrow: '作用在锁或行上', open: '读', full: '写或其他一步', times: '×2：重入的次数', bang: '!：没有少' }, kind), legend: '图例',
  bothFlaw: '时间线：有问题', bothCure: '时间线：修正后',
  replayOther: (lesson, which) => `正在演第 ${lesson} 课（${which}），演完才能演这一课。`,
  why: '为什么：', cureIs: '修正：',
  anomaly: (name) => choose({
    'late-release': '这叫误删：迟到的释放（late release）。', 'lost-update': '这叫丢失更新（lost update）。',
    'check-then-act': '这叫先检查后执行（check-then-act）。', 'two-holders': '这叫两个持有者（mutual exclusion broken）。',
    stuck: '这叫卡死：锁没有人还，谁也进不去（stuck）。', overtaken: '这叫插队：后来的先进去（overtaken，不公平）。', doubled: '这叫重复扣减：一次购买扣了两次（doubled）。',
  }, name),
  guessRight: (n) => `猜对了：${n}`, guessWrong: (n) => `其实是 ${n}`,
  linesFlaw: '真的发出的：有问题', linesCure: '真的发出的：修正后', linesRefused: '· 没抢到', linesForeign: (owner) => `✓ 删的是 ${owner} 的`,
  lineSpoken: ({ event, value, token }) => choose({
    locked: `拿到锁${token ? `，令牌 ${token}` : ''}`, waits: '等', released: '解锁', lost: '解锁：锁已经不是它的', 'refused-by-row': '行拒绝：令牌太旧', failed: `失败：${refusalText('zh', value)}`,
    stopped: '停住了', continued: '继续执行', statement: value ?? '',
  }, event),
  linesSent: '真的发出的', scheduleTitle: '你来决定谁先走', scheduleOpen: '你来排顺序', scheduleClose: '收起', scheduleWhich: '哪一种', scheduleAgain: '从头再来', scheduleAll: '把所有顺序都试一遍',
  scheduleGoalFlaw: (goal) => `用最少的次数，让${WRONG.zh[goal]}。你按谁，谁走一步。`, scheduleGoalCure: (goal) => `同样的请求，修正后的代码：你还能让${WRONG.zh[goal]}吗？`,
  schedulePresses: (n, par) => `按了 ${n} 次${par < Infinity ? `，最少 ${par} 次` : ''}`,
  scheduleNext: (point, isFirst) => `${isFirst ? '来买：' : ''}${choose({ read: '读库存', written: '写回', checked: '看锁是谁的', released: '解锁', conflict: '重来', refused: '再来抢锁', '': isFirst ? '一步做完' : '收尾（解锁、提交、回答）' }, point) ?? point}`,
  scheduleClock: (owner) => (owner ? `时钟走到头：${owner} 的租约到期` : '时钟：现在没有租约'),
  timingOpen: '拖动时间', timingTitle: '拖动时间：松手就在真的服务器上演', timingAt: 'A 停在：', timingLocked: '拿到锁，还没读', timingRead: '读完，还没写', timingWritten: '写完，还没解锁',
  timingPause: 'A 停多久', timingLease: '租约多长', timingAfter: 'B 多久后来', timingIs: (s) => `${s} 秒`, timingKept: '这样的时间没有超卖：A 停得比租约短，或者停的时候还没读、已经写完。',
  scheduleFailover: (state) => choose({ done: '从节点升上来了', way: 'Sentinel 正在切换，要几秒' }, state) ?? '主节点没了：Sentinel 把断了线的从节点升为主节点',
  scheduleDeath: (actor) => `${actor} 死在这一步`, scheduleDead: '死了', scheduleStuck: (owner) => `谁也无法继续${owner ? `：锁在 ${owner} 手里，没有人会还` : ''}。`, scheduleGotIn: (order) => `进去的顺序：${order}。`,
  scheduleEnd: '走完了', scheduleWaits: (owner) => (owner ? `在等：锁在 ${owner} 手里` : '在路上，或在等'),
  scheduleTrying: (n, wrong, goal) => `试到第 ${n + 1} 种顺序，${wrong} 种${SEEN.zh[goal]}…`,
  scheduleTried: (n, wrong, goal, par = 0) => `所有 ${n} 种顺序都试过了：${wrong ? `${wrong} 种` : '没有一种'}${SEEN.zh[goal]}${par ? `，最少按 ${par} 次` : ''}。`,
  scheduleWon: (n, par) => `按了 ${n} 次，做到了${par === Infinity ? '' : n > par ? `；最少 ${par} 次` : '，不能更少'}。`, scheduleStatement: (isFirst) => (isFirst ? '开启事务，发出' : '发出'),
  scheduleWaitsFor: (from, to) => (from === to ? `${from} 在等自己` : `${from} 在等 ${to}`), scheduleNobodyWaits: '没有人在等', scheduleWaitsTitle: '谁在等谁',
  scheduleWrong: (goal, [first, second], { actor, error }) => choose({ oversold: `${second ?? first} 用读到的旧值盖掉了别人的写：超卖。`, overtaken: `${first} 先来，${second} 先进去：插队。`, deadlock: `MySQL 让 ${actor} 出错：${error}。` }, goal) ?? '', scheduleLost: (goal) => `这个顺序没有${SEEN.zh[goal]}。`,
  scheduleTriedOne: (wrong, n, goal) => (wrong ? `第 ${n} 次${SEEN.zh[goal]}` : `没有${SEEN.zh[goal]}`),
  scheduleCureLoses: (clock) => (clock ? '为什么修正后也会：它只保证不删别人的锁；租约在写之前到期，锁就保护不了写，要续期或者令牌。' : '为什么修正后也会：写的时候，锁已经不在它手里，存储没有检查。'), guessAnswer: (n) => `答案是 ${n}`,
  next: (name, place) => `下一课${place ? `（${place} / 12）` : ''}：${name} →`, spineEnd: '十二课到此为止：没有锁、锁错地方、锁会到期、锁也要令牌。还可以看：', spineLibraries: '现成的锁（§2.10）', spineTable: '用表做锁（第 4 章）', ninety: '90 分钟，十二课', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · 还要 ${minutes} 分钟` : ''}`, ninetySeen: '演过了',
  sharedReplay: (id) => `全班在看第 ${id} 课的竞态。`,
  votes: (n) => ` · ${n} 人`, votesAsk: '让全班猜', votesAsked: (n) => `手机在猜：${n} 人`,
  besideLink: '并排跑这几种', noButton: '这一课没有按钮：读一读，或者在终端里亲手做。', verdictAny: '全部',
  searchFound: (n) => `找到 ${n} 课`, loadTitle: '再跑一场：很多人同时买',
};

/** @type {import('./all.js').Words} */
export const en = {
  raceAgain: 'Play it again',
  raceIdle: (s) => `Played on the real servers, the flaw and its cure together, in about ${s} s.`,
  raceOrdered: ({ sold }) => (sold > 1 ? `${sold} orders of one user. ` : 'One order of one user. '),
  legendOf: (kind) => choose({ waits: 'waits', inside: 'inside', leaves: 'has written, not unlocked yet', overlap: 'inside with another, or on a stale value', stopped: 'stopped', shared: 'inside with others, as allowed', vain: 'a vain attempt', shut: 'believes to be inside; its token is old', wedge: 'lock: its owner, and the rest of its lease', message: 'sent to the server', carry: 'a stale value that overwrites another', arrow: 'hits the lock or the row', open: 'a read', full: 'a write or another step', times: '×2: held how often', bang: '!: nothing has left' }, kind), legend: 'Legend',
  bothFlaw: 'Timeline: flaw', bothCure: 'Timeline: cure',
  replayOther: (lesson, which) => `Lesson ${lesson} (${which}) is being played; this one can be once it is over.`,
  why: 'Why: ', cureIs: 'The cure: ',
  anomaly: (name) => choose({
    'late-release': 'This is a late release. ', 'lost-update': 'This is a lost update. ',
    'check-then-act': 'This is check-then-act. ', 'two-holders': 'These are two holders of one lock. ',
    stuck: 'This is stuck: nobody releases the lock, and nobody gets in. ', overtaken: 'This is overtaking: a later one gets in first (unfair). ', doubled: 'This is a doubled deduction: one purchase has taken two. ',
  }, name),
  guessRight: (n) => `Right: ${n}`, guessWrong: (n) => `It is ${n}`,
  linesFlaw: 'Really sent: flaw', linesCure: 'Really sent: cure', linesRefused: '· taken', linesForeign: (owner) => `✓ it was ${owner}'s`,
  lineSpoken: ({ event, value, token }) => choose({
    locked: `has the lock${token ? `, token ${token}` : ''}`, waits: 'waits', released: 'unlocks', lost: 'unlocks: the lock is no longer its own',
    'refused-by-row': 'refused by the row: an old token', failed: `fails: ${refusalText('en', value)}`, stopped: 'stands still', continued: 'goes on', statement: value ?? '',
  }, event),
  linesSent: 'Really sent', scheduleTitle: 'You decide who goes on', scheduleOpen: 'Be the scheduler', scheduleClose: 'Close', scheduleWhich: 'Which one', scheduleAgain: 'From the start', scheduleAll: 'Try all orders',
  scheduleGoalFlaw: (goal) => `Make ${WRONG.en[goal]} in the fewest presses: whom you press takes a step.`, scheduleGoalCure: (goal) => `The same requests, on the cure: can you still make ${WRONG.en[goal]}?`,
  schedulePresses: (n, par) => `${n} ${n === 1 ? 'press' : 'presses'}${par < Infinity ? `; ${par} are enough` : ''}`,
  scheduleNext: (point, isFirst) => `${isFirst ? 'comes: ' : ''}${choose({ read: 'reads the stock', written: 'writes', checked: 'looks whose lock it is', released: 'unlocks', conflict: 'begins again', refused: 'asks for the lock again', '': isFirst ? 'does it in one step' : 'ends (unlocks, commits, answers)' }, point) ?? point}`,
  scheduleClock: (owner) => (owner ? `time passes: the lease of ${owner} ends` : 'the clock: no lease now'),
  timingOpen: 'Drag the times', timingTitle: 'Drag the times: let go, and the servers play it', timingAt: 'A stands still: ', timingLocked: 'inside, before it reads', timingRead: 'between read and write', timingWritten: 'before it unlocks',
  timingPause: 'A stands for', timingLease: 'Lease', timingAfter: 'B comes after', timingIs: (s) => `${s} s`, timingKept: 'At these times nothing is oversold: A stands for less than its lease, or before it reads, or after it has written. ',
  scheduleFailover: (state) => choose({ done: 'the replica leads now', way: 'the Sentinel is at it; that takes seconds' }, state) ?? 'the main one is gone: the Sentinel promotes the replica, which was cut off',
  scheduleDeath: (actor) => `${actor} dies here`, scheduleDead: 'is dead', scheduleStuck: (owner) => `Nobody can go on${owner ? `: ${owner} has the lock, and nobody will release it` : ''}. `, scheduleGotIn: (order) => `They got in in the order ${order}. `,
  scheduleEnd: 'is through', scheduleWaits: (owner) => (owner ? `waits: ${owner} has the lock` : 'is on its way, or waits'),
  scheduleTrying: (n, wrong, goal) => `Trying schedule ${n + 1}; ${SEEN.en[goal]} in ${wrong} so far…`,
  scheduleTried: (n, wrong, goal, par = 0) => `All ${n} schedules were tried: ${SEEN.en[goal]} in ${wrong || 'none'}${par ? `, after ${par} presses at the earliest` : ''}.`,
  scheduleWon: (n, par) => `Done in ${n} ${n === 1 ? 'press' : 'presses'}${par === Infinity ? '' : n > par ? `; ${par} are enough` : ', and fewer are not enough'}. `, scheduleStatement: (isFirst) => (isFirst ? 'begins a transaction, sends' : 'sends'),
  scheduleWaitsFor: (from, to) => (from === to ? `${from} waits for itself` : `${from} waits for ${to}`), scheduleNobodyWaits: 'nobody waits', scheduleWaitsTitle: 'Who waits for whom',
  scheduleWrong: (goal, [first, second], { actor, error }) => choose({ oversold: `${second ?? first} has overwritten another's write with its stale value: oversold. `, overtaken: `${first} came first, and ${second} got in first: overtaken. `, deadlock: `MySQL has ended ${actor}'s statement: error ${error}. ` }, goal) ?? '', scheduleLost: (goal) => `Not ${SEEN.en[goal]} in this schedule. `,
  scheduleTriedOne: (wrong, n, goal) => (wrong ? `${SEEN.en[goal]} after ${n}` : `not ${SEEN.en[goal]}`),
  scheduleCureLoses: (clock) => (clock ? 'Why on the cure too: it only keeps from deleting the lock of another. The lease ended before the write; only a renewal or a token helps. ' : 'Why on the cure too: at its write the lock was no longer its own, and the store did not look. '), guessAnswer: (n) => `It is ${n}`,
  next: (name, place) => `Next${place ? ` (${place} of 12)` : ''}: ${name} →`, spineEnd: 'The twelve lessons end here: no lock, a lock in the wrong place, a lock that ends, a lock that needs a token. From here: ', spineLibraries: 'ready-made locks (§2.10)', spineTable: 'a table as a lock (chapter 4)', ninety: '90 minutes, twelve lessons', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · ${minutes} min left` : ''}`, ninetySeen: 'was played',
  sharedReplay: (id) => `The class watches the race of lesson ${id}.`,
  votes: (n) => ` · ${n}`, votesAsk: 'Let the class guess', votesAsked: (n) => `Phones guess: ${n}`,
  besideLink: 'Run these side by side', noButton: 'This lesson has no button: read it, or do it by hand in a terminal.', verdictAny: 'all',
  searchFound: (n) => `${n} lessons`, loadTitle: 'And a run: many who buy at once',
};
