/** The words of a race, its guess, and the commands sent, in both languages. */

import { choose } from './choose.js';
import { refusalText } from './replay-events.js';

/** @type {import('./all.js').Words} */
export const zh = {
  raceAgain: '再演一遍',
  raceIdle: (s) => `在真实的服务器上演，有问题的和修正后的一起，约 ${s} 秒。`,
  raceOrdered: ({ sold }) => (sold > 1 ? `一个人下了 ${sold} 单。` : '一个人一单。'),
  legendOf: (kind) => choose({ waits: '等待中', inside: '在临界区：从拿到锁或读到库存，到写完', leaves: '写完，还没解锁', overlap: '和别人同时在临界区，或用旧值', stopped: '停住', shared: '一起在临界区（允许）', vain: '失败的一次尝试', shut: '自以为在临界区，令牌已旧', wedge: '锁：谁的，还剩多少租约', message: '发给服务器', carry: '读到的旧值，盖掉了别人的写', arrow: '作用在锁或行上', open: '读', full: '写或其他一步', place: '在排队', red: '红：错在这一步', times: '×2：重入的次数', repeated: '× 3：连着 3 次', bang: '!：库存没有减少' }, kind), legend: '图例',
  bothFlaw: '时间线：有问题', bothCure: '时间线：修正后',
  replayOther: (lesson, which) => `正在演 ${lesson}（${which}），演完才能演这一课。`,
  why: '为什么：', cureIs: '修正：',
  anomaly: (name) => choose({
    'late-release': '这种错叫误删：迟到的释放（late release）。', 'lost-update': '这种错叫丢失更新（lost update）。',
    'check-then-act': '这种错叫先检查后执行（check-then-act）。', 'two-holders': '这种错叫两个持有者（mutual exclusion broken）。',
    stuck: '这种错叫卡死：锁没有人还，谁也进不去（stuck）。', overtaken: '这种错叫插队：后来的先进去（overtaken，不公平）。', doubled: '这种错叫重复扣减：一次购买扣了两次（doubled）。',
    interleaved: '这种错叫命令交错：两条命令之间插进了别人的，不是原子的（interleaving）。', unavailable: '这种错叫不可用：剩下的节点不够多数（unavailable）。',
    early: '这种错叫抢跑：没等到该等的就往下走（too early）。', 'over-limit': '这种错叫超过限额：进来的比许可的多（over the limit）。', deadlock: '这种错叫死锁：互相等待，一个被回滚（deadlock）。',
    herd: '这种错叫羊群效应：释放一次，等待的全被唤醒（herd effect）。', serialized: '这种错叫多余的排队：能同时读的也一个个来（needlessly serialized）。',
  }, name),
  guessRight: (answer) => `猜对了：${answer}`, guessAnswer: (answer) => `答案：${answer}`,
  linesFlaw: '实际发出的语句（有问题）', linesCure: '实际发出的语句（修正后）', linesRefused: '· 没抢到', linesUnlisted: '· 由锁库发出，没有逐条列出', linesForeign: (owner) => `· 删的是 ${owner} 的`,
  lineSpoken: ({ event, value, token }) => choose({
    locked: `拿到锁${token ? `，令牌 ${token}` : ''}`, waits: '等', released: '解锁', lost: '解锁：锁已经不是它的', 'refused-by-row': '行拒绝：令牌太旧', failed: `失败：${refusalText('zh', value)}`,
    stopped: '停住了', continued: '继续执行', statement: value ?? '',
  }, event),
  linesSent: '实际发出的语句', linesLongLease: '（十分钟：这里只由时钟让它到期）', scheduleOpen: '你来排顺序', scheduleClose: '收起',
  timingOpen: '拖动时间', timingTitle: '拖动时间：松手就在真实的服务器上演', timingAt: 'A 停在：', timingLocked: '拿到锁，还没读', timingRead: '读完，还没写', timingWritten: '写完，还没解锁',
  timingPause: 'A 停多久', timingLease: '租约多长', timingAfter: 'B 多久后来', timingIs: (s) => `${s} 秒`, timingKept: '这样的时间没有超卖：A 停得比租约短，或者停的时候还没读、已经写完。',
  next: (name, place) => `下一课${place ? `（${place}）` : ''}：${name} →`, spineEnd: '90 分钟到此为止：没有锁、锁错地方、锁会到期、锁也要令牌。还可以看：', spineLibraries: '现成的锁（§2.10）', spineTable: '用表做锁（第 4 章）', ninety: '90 分钟', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · 还要 ${minutes} 分钟` : ''}`, ninetySeen: '演过了',
  sharedReplay: (id) => `全班在看 ${id} 的竞态。`,
  votes: (n) => ` · ${n} 人`, votesAsk: '让全班猜', votesJoin: '手机怎么加入', votesAsked: (n) => `手机在猜：${n} 人`,
  besideLink: '并排跑这几种', noButton: '这一课没有按钮：读一读，或者在终端里亲手做。', verdictAny: '全部',
  searchFound: (n) => `找到 ${n} 课`, loadTitle: ({ threads, loops }) => (threads === 1 ? `一个人，买 ${loops} 次` : '再跑一场：很多人同时买'), sayWhy: (id, isOversold) => `${isOversold ? '为什么' : '两个人同时买呢'}？看两个人的竞态（${id}）`, raceErrata: '原文在这里写错的：',
};

/** @type {import('./all.js').Words} */
export const en = {
  raceAgain: 'Play again',
  raceIdle: (s) => `Played on the real servers, the flaw and its cure together, in about ${s} s.`,
  raceOrdered: ({ sold }) => (sold > 1 ? `${sold} orders of one user. ` : 'One order of one user. '),
  legendOf: (kind) => choose({ waits: 'waits', inside: 'inside: from the lock, or the read, to the write', leaves: 'has written, not unlocked yet', overlap: 'inside with another, or on a stale value', stopped: 'stopped', shared: 'inside with others, as allowed', vain: 'a vain attempt', shut: 'believes to be inside; its token is old', wedge: 'lock: its owner, and the rest of its lease', message: 'sent to the server', carry: 'a stale value that overwrites another', arrow: 'hits the lock or the row', open: 'a read', full: 'a write or another step', place: 'in the queue', red: 'red: this step did it', times: '×2: held how often', repeated: '× 3: three times in a row', bang: '!: the stock is not less' }, kind), legend: 'Legend',
  bothFlaw: 'Timeline: flaw', bothCure: 'Timeline: cure',
  replayOther: (lesson, which) => `Lesson ${lesson} (${which}) is being played; this one can be once it is over.`,
  why: 'Why: ', cureIs: 'The cure: ',
  anomaly: (name) => choose({
    'late-release': 'The fault is a late release. ', 'lost-update': 'The fault is a lost update. ',
    'check-then-act': 'The fault is check-then-act. ', 'two-holders': 'The fault is two holders of one lock. ',
    stuck: 'The fault is a stuck lock: nobody releases the lock, and nobody gets in. ', overtaken: 'The fault is overtaking: a later one gets in first (unfair). ', doubled: 'The fault is a doubled deduction: one purchase has taken two. ',
    interleaved: 'The fault is an interleaving: another’s commands come between, so it is not atomic. ', unavailable: 'The fault is unavailability: too few nodes are left for a majority. ',
    early: 'The fault is going on too early, without those whom it should wait for. ', 'over-limit': 'The fault is that more get in than the limit allows. ', deadlock: 'The fault is a deadlock: each waits for the other, and one is rolled back. ',
    herd: 'The fault is the herd effect: one release wakes all who wait. ', serialized: 'The fault is needless waiting: readers that could read together come one by one. ',
  }, name),
  guessRight: (answer) => `Right: ${answer}`, guessAnswer: (answer) => `The answer: ${answer}`,
  linesFlaw: 'Really sent: flaw', linesCure: 'Really sent: cure', linesRefused: '· taken', linesUnlisted: '· sent by the lock library, not listed', linesForeign: (owner) => `· it was ${owner}'s`,
  lineSpoken: ({ event, value, token }) => choose({
    locked: `has the lock${token ? `, token ${token}` : ''}`, waits: 'waits', released: 'unlocks', lost: 'unlocks: the lock is no longer its own',
    'refused-by-row': 'refused by the row: an old token', failed: `fails: ${refusalText('en', value)}`, stopped: 'stands still', continued: 'goes on', statement: value ?? '',
  }, event),
  linesSent: 'Really sent', linesLongLease: ' (ten minutes: here the clock alone ends it)', scheduleOpen: 'You schedule', scheduleClose: 'Close',
  timingOpen: 'Drag times', timingTitle: 'Drag the times: let go, and the servers play it', timingAt: 'A stands still: ', timingLocked: 'inside, before it reads', timingRead: 'between read and write', timingWritten: 'before it unlocks',
  timingPause: 'A stands for', timingLease: 'Lease', timingAfter: 'B comes after', timingIs: (s) => `${s} s`, timingKept: 'At these times nothing is oversold: A stands for less than its lease, or before it reads, or after it has written. ',
  next: (name, place) => `Next${place ? ` (${place})` : ''}: ${name} →`, spineEnd: 'The ninety minutes end here: no lock, a lock in the wrong place, a lock that ends, a lock that needs a token. From here: ', spineLibraries: 'ready-made locks (§2.10)', spineTable: 'a table as a lock (chapter 4)', ninety: '90 minutes', ninetyDone: (seen, all, minutes) => `${seen} / ${all}${minutes ? ` · ${minutes} min left` : ''}`, ninetySeen: 'played',
  sharedReplay: (id) => `The class watches the race of lesson ${id}.`,
  votes: (n) => ` · ${n}`, votesAsk: 'Ask the class', votesJoin: 'How phones join', votesAsked: (n) => `Phones guess: ${n}`,
  besideLink: 'Run these side by side', noButton: 'This lesson has no button: read it, or do it by hand in a terminal.', verdictAny: 'all',
  searchFound: (n) => `${n} lessons`, loadTitle: ({ threads, loops }) => (threads === 1 ? `One buyer, ${loops} times` : 'And a run: many who buy at once'), sayWhy: (id, isOversold) => `${isOversold ? 'Why' : 'And two at once'}? See the race of two (${id})`, raceErrata: 'What the text has wrong here:',
};
