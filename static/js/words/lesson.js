/** The words of lessons, runs and the comparison, in both languages. */

import { choose } from './choose.js';
import * as deadlockWords from './deadlock.js';
import * as stepWords from './steps.js';

export { eventText, nodeName, refusalText } from './replay-events.js';

/** @param {Date} at */
const clock = (at) => `${at.getMonth() + 1}-${at.getDate()} ${String(at.getHours()).padStart(2, '0')}:${String(at.getMinutes()).padStart(2, '0')}`;
/** @type {Record<string, string>} */
const STORES = { mysql: 'MySQL', redis: 'Redis' };
/** @type {Record<string, Record<string, string>>} */
const VERDICTS = {
  zh: { reproduced: '已复现', 'not-reproduced': '未复现', noise: '误差范围内', unavailable: '未验证' },
  en: { reproduced: 'reproduced', 'not-reproduced': 'not reproduced', noise: 'noise', unavailable: 'could not be tried' },
};

/** @type {import('./all.js').Words} */
export const zh = {
  ...deadlockWords.zh, ...stepWords.zh,
  which: '这一课的策略', unknownTitle: '没有这一课',
  unknownLesson: (name) => `课程里没有“${name}”。请从目录里选一课。`,
  breaks: (where) => (/^(不会|没有)/.test(where) ? where : `何时失效：${where}`),
  promised: (p) => choose({ unsafe: '会超卖', 'one-process': '一个实例不超卖，三个超卖', lease: '租约之内不超卖', safe: '不超卖' }, p),
  sells: (store) => `卖的是 ${STORES[store] ?? store} 里的库存`,
  lease: (s) => `租约 ${s} 秒`,
  chapter: (n) => choose({ 1: '1 传统锁', 2: '2 Redis', 3: '3 ZooKeeper', 4: '4 MySQL', 5: '5 总结', '001': '001 分布式锁', '002': '002 秒杀', '003': '003 锁的极限' }, n) ?? n,

  ruleWhole: (least, most) => `要填 ${least.toLocaleString('en-US')} 到 ${most.toLocaleString('en-US')} 的整数`,
  ruleRequests: (n, most) => `并发 × 次数 = ${n.toLocaleString('en-US')}，最多 ${most.toLocaleString('en-US')}`,
  ruleHeld: (s, most) => `一个接一个要停留 ${Math.round(s).toLocaleString('en-US')} 秒，最多 ${most} 秒`,
  wrongField: '有一格填得不对，改好了才能跑。',
  planned: (n, times) => (times > 1 ? `${times} 场，每场 ${n} 次` : `共 ${n} 次`),

  space: '', notRunYet: '还没跑。', otherSettings: '下面是另一组设置的结果。按现在的设置，',
  willTake: (s) => `大约要 ${s} 秒。`,
  willSellNone: '一件也卖不出去：库存是 0。',
  willOversell: (n) => `将看到：卖出 ${n} 件，库存却没有减少这么多。`,
  mayDiffer: '原文代码的缺陷要碰巧才看得到：卖出的件数和库存减少的件数可能对不上；重演里每次都看得到。',
  mayOversell: (n) => `请求太少，不一定会撞上：卖出 ${n} 件，库存可能没有减少这么多。`,
  willSellTooMany: (n) => `将看到：只有 ${n} 件，却卖出去更多。`,
  willBeExact: (n) => `将看到：卖出 ${n} 件，库存正好减少 ${n} 件。`,
  exactWithinLease: (n) => `停留比租约短，就是卖出 ${n} 件、少 ${n} 件；比租约长，会有两个同时在临界区。`,
  willOutlive: (lease, hold) => `租约 ${lease} 秒，却要停留 ${hold} 秒：锁中途到期，会有两个同时在临界区，卖出的比少的多。`,
  willWaitTooLong: (s, most) => `排到最后要等 ${s} 秒，等锁一般最多 ${most} 秒：等不到的会失败，卖出的比请求少；卖出多少，还是少多少。`,
  queued: (ahead, seconds) => `排队：前面还有 ${ahead} 场压测${seconds ? `，约 ${seconds} 秒后开始` : ''}。`,
  running: (done, all, left) => `正在跑：${done} / ${all}${left ? `，约还要 ${left} 秒` : ''}`,
  stuck: (done, all, n, of, name) => `停住了（${done} / ${all}）：${of} 个没有应答的请求里，${n} 个在等 ${name}。`,
  stalled: (done, all, of, dead) => `停住了（${done} / ${all}）：过去一秒没有一个回答，${of} 个请求在等。${dead ? `实例 ${dead} 没有应答，它可能还占着锁。` : ''}`,
  apart: '卖出与库存减少对不上：有的请求没有应答，或者有别人动了库存。这一场不能算数。',
  waits: (mean, most) => `进去以前平均等 ${mean} ms，最久 ${most} ms`, leftThere: (n) => `库存还剩 ${n} 件`,
  waitedMost: (ms) => `最久等 ${ms} ms`,
  mostInside: (n) => `临界区内最多 ${n} 个`,
  noAnswerYet: (n) => `${n} 个没回答`,
  polled: (ms) => `每 ${ms} ms 左右问一次锁：谁先问到谁进，速度由间隔决定，不能和有通知的锁比`,
  polls: (ms) => `每 ${ms} ms 问一次，快慢由间隔决定`,

  smallOver: (sold, gone, over) => `卖 ${sold}，少 ${gone}：超卖 ${over}`,
  smallExact: (sold) => `卖 ${sold}，少 ${sold}：正好`,
  smallErrors: (sold, errors) => `卖 ${sold}，${errors} 个没有成功：不算数`,
  otherStores: '注意：有的卖 Redis 里的库存，有的卖 MySQL 里的库存，快慢不能直接比。',
  strip: '上次的结果',

  toOne: (name) => (name ? `都在一个实例上买：${name}` : '都在一个实例上买'), toThree: '经过 nginx，三个实例轮流',
  shelfBusy: '正在跑的一场用它自己的商品，跑完就删；这里等它跑完再买。',
  throughNginx: '这里不能指定实例，两个请求都经过了 nginx。',
  buying: (s) => `已经 ${s} 秒，还没有应答…`,

  figuresTitle: '原文的数字和这里的', figuresCourse: '原文', figuresHere: '这里', figureAverage: '平均请求时间', figureMedian: '中位数', figureRate: '每秒吞吐量', figureLeft: '库存还剩', figureWait: '要等的那个，最久用了', figureBatches: '每批放出几个', figureAbout: (s) => `约 ${s} s`,
  tries: '在浏览器里试', tryNote: '每按一次就是一个人来；一个浏览器最多同时 6 个。课堂模式下，手机也能打开这一页。', who: '名字', someone: '同学', tryWaits: '等待中…',
  how: '怎么做的', courseJava: '课程里的 Java：', rustHere: '这里的 Rust', frameworks: '用你的框架时：Hibernate、MyBatis、Prisma、Django 把同样的读写变成了什么', survives: '能承受：', breaksIt: '何时失效：', wokenSum: (n, sum) => `释放锁 ${n} 次，一共唤醒 ${sum} 个`, raw: '下载这一场 JSON', allVerdicts: '全部结论', verdictsJson: '原始数据 JSON', verdictsCount: (n, ran, all, when) => `跑了 ${ran} 课，已复现 ${n} 课；课程一共 ${all} 课（${when}）。`, verdictOf: (v) => VERDICTS.zh[v] ?? '没有跑', lessonHead: '课', verdictHead: '结论', seenHead: '看到的', readme: '说明', wholeFile: '整个文件',
  byHand: '在终端里亲手做', byHandNote: '按编号的顺序，下面是会看到的。“在这里跑”由服务器所在的机器来输入；也可以在自己的终端里输入：oversell 就是 target/release/oversell；redis-cli、mysql 随系统的软件包来；zkCli.sh 在 ZooKeeper 的 bin 目录里（Debian：/usr/share/zookeeper/bin）。', terminal: (n) => `终端 ${n}`, copy: '复制', copied: '复制了', selected: '选中了，请按 Ctrl+C', prints: '会看到', again: '没看到下面这样的结果，就再输一遍：', typeIt: '在这里跑', typeOwnLab: '这一课自己启动一个实验环境：请在终端里输入。', typeNeeds: (options) => `这一行要用 oversell lab ${options} 启动的实验环境。`, typeAll: '依次跑完', typing: '正在跑…', printed: '实际打印的：', printedAsSaid: '实际打印的，和上面说的一样：',
  seen: '本课的结论', restsOnTiming: '结果取决于计时，每次可能不同',
  stockLeft: (n) => `库存 ${n}`,
  storedRun: (date, version, commit, cpu, cores) => `随程序附带的完整运行：${date}，oversell ${version}，提交 ${commit}，${cpu}，${cores} 核`,
  notFound: '还没有跑过：在终端里输入 oversell course。', notRun: '这一课不自动跑：',
  lessonsWait: (ids) => `等待中的课：${ids}；其余照常。`,
  andMore: (n) => ` …… 共 ${n} 课`,
  serverDown: (servers) => `${servers} 停了。`,
  instanceDown: (names) => `实例 ${names} 停了，其余的接着卖。`,

  compare: '对比', compareClaim: '几种策略跑同样的一场，一个实例与三个实例，并排看。', runAll: '依次跑',
  pick: '比哪些', picked: (n, names) => `比这 ${n} 种：${names}`, and: '、', pickTargets: '跑在', compareReady: '选好了就可以跑，一场接一场。', comparePick: '请先选策略和目标。',
  comparing: (what, n, all, percent) => `正在跑第 ${n} / ${all} 场：${what}，${percent}%`,
  compareBusy: (what) => `另一场正在跑：${what}。`,
  seriesName: (at) => `${clock(at)} 的对比`, seriesLabel: '保存下来的对比', seriesRename: '名称',
  seriesPlan: (p) => `${p.threads} × ${p.loops} · 停留 ${p.hold_ms} ms · 库存 ${p.count}`,
  json: '下载 JSON', html: '下载报告', remove: '删除', strategy: '策略', onOne: '一个实例', onThree: '三个实例', rateOne: '一个实例 每秒', rateThree: '三个实例 每秒',
  curveRate: '每秒几个', curveConnections: '连接数',
  ratesTitle: '谁快', ratesRun: (n, rounds) => `比一比：${n} 种，各 ${rounds} 轮`, ratesCurve: (from, to) => `从 ${from} 个连接到 ${to} 个`, ratesGoing: (n, all) => `正在跑第 ${n} / ${all} 场…`,
  ratesErrors: (slug) => `${slug} 有一轮出错，不算数。`, connections: (n) => `${n} 个连接`,
  ratesSaid: ({ first, second, ratio, low, high, least, most, says }) => `${first} 是 ${second} 的 ${ratio} 倍（各轮 ${low} 到 ${high}）。原文的话要 ${most == null ? `至少 ${least} 倍` : `${least} 到 ${most} 倍`}：${choose({ holds: '这里是这样。', not: '这里不是这样。', apart: '各轮不一致，说明不了什么。' }, says)}`,
  retriesHead: '重试', waitHead: '最久等', insideHead: '临界区内最多',
  keys: [['↑ ↓', '换一课'], ['Enter', '运行'], ['Esc', '取消'], ['R', '竞态：演一遍'], ['P', '投影：放大，收起目录'], ['空格', '竞态：播放、暂停'], ['← →', '竞态：上一句、下一句'], ['Shift ← →', '竞态：上一刻、下一刻'], ['/', '找一课'], ['L', '中文 / English'], ['?', '这一页']],
};

/** @type {import('./all.js').Words} */
export const en = {
  ...deadlockWords.en, ...stepWords.en,
  which: 'Strategies of this lesson', unknownTitle: 'No such lesson',
  unknownLesson: (name) => `The course has no “${name}”. Choose a lesson from the list.`,
  breaks: (where) => (/^(nothing|never)/.test(where) ? where[0].toUpperCase() + where.slice(1).replace(/^othing/, 'othing breaks it') : `Where it breaks: ${where}`),
  promised: (p) => choose({ unsafe: 'oversells', 'one-process': 'exact on one, oversells on three', lease: 'exact within the lease', safe: 'never oversells' }, p),
  sells: (store) => `sells the stock in ${STORES[store] ?? store}`,
  lease: (s) => `lease of ${s} s`,
  chapter: (n) => choose({ 1: '1 Local locks', 2: '2 Redis', 3: '3 ZooKeeper', 4: '4 MySQL', 5: '5 Summary', '001': '001 Distributed locks', '002': '002 Seckill', '003': '003 Where locks end' }, n) ?? n,

  ruleWhole: (least, most) => `a whole number from ${least.toLocaleString('en-US')} to ${most.toLocaleString('en-US')}`,
  ruleRequests: (n, most) => `threads × loops = ${n.toLocaleString('en-US')}; at most ${most.toLocaleString('en-US')}`,
  ruleHeld: (s, most) => `one after the other they stay ${Math.round(s).toLocaleString('en-US')} s; at most ${most} s`,
  wrongField: 'A field is wrong: nothing is run until it is mended.',
  planned: (n, times) => (times > 1 ? `${times} runs of ${n} requests` : `${n} requests`),

  space: ' ', notRunYet: 'Not run yet.', otherSettings: 'Below is the result of other settings. With these:',
  willTake: (s) => `It takes about ${s} s.`,
  willSellNone: 'Nothing can be sold: the stock is 0.',
  willOversell: (n) => `You will see ${n} sold, and the stock fall by fewer.`,
  mayDiffer: 'The flaw of the printed code shows by chance: sold and gone may differ; in its replay it shows each time.',
  mayOversell: (n) => `So few requests may miss each other: ${n} sold, and perhaps the stock falls by fewer.`,
  willSellTooMany: (n) => `You will see more sold than the ${n} that there are.`,
  willBeExact: (n) => `You will see ${n} sold, and the stock fall by exactly ${n}.`,
  exactWithinLease: (n) => `While the hold is shorter than the lease: ${n} sold and ${n} gone. If it is longer, two will be inside at once.`,
  willOutlive: (lease, hold) => `The lease is ${lease} s and each stays ${hold} s: locks end midway, two will be inside at once, and more is sold than is gone.`,
  willWaitTooLong: (s, most) => `The last in line would wait ${s} s, and a wait is ${most} s at most unless set otherwise: some fail, fewer are sold than asked for; what is sold is gone.`,
  queued: (ahead, seconds) => `Waiting: ${ahead} ${ahead === 1 ? 'run comes' : 'runs come'} first${seconds ? `; yours begins in about ${seconds} s` : ''}.`,
  running: (done, all, left) => `Running: ${done} / ${all}${left ? `, about ${left} s left` : ''}`,
  stuck: (done, all, n, of, name) => `Nothing moves (${done} / ${all}): ${n} of ${of} requests without an answer wait for ${name}.`,
  stalled: (done, all, of, dead) => `Nothing moves (${done} / ${all}): no answer within the last second, ${of} requests wait. ${dead ? `Instance ${dead} does not answer, and may hold the lock.` : ''}`,
  apart: 'Sold and gone disagree: some requests were never answered, or somebody else changed the stock. This run proves nothing.',
  waits: (mean, most) => `waited ${mean} ms before getting in on average, ${most} ms at most`, leftThere: (n) => `${n} left in stock`,
  waitedMost: (ms) => `waited ${ms} ms at most`,
  mostInside: (n) => `${n} inside at once at most`,
  noAnswerYet: (n) => `${n} without an answer`,
  polled: (ms) => `who waits asks about every ${ms} ms: the pace is that of the asking, and not to be compared with locks that tell`,
  polls: (ms) => `asks every ${ms} ms, which sets its pace`,

  smallOver: (sold, gone, over) => `${sold} sold, ${gone} gone: ${over} too many`,
  smallExact: (sold) => `${sold} sold, ${sold} gone: exact`,
  smallErrors: (sold, errors) => `${sold} sold, ${errors} without success: proves nothing`,
  otherStores: 'Note: some sell the stock in Redis and some that in MySQL; their rates are not to be compared.',
  strip: 'Last results',

  toOne: (name) => (name ? `all at one instance: ${name}` : 'all at one instance'), toThree: 'through nginx, at three in turn',
  shelfBusy: 'The run has a product of its own, which is removed at its end; buy here when it is over.',
  throughNginx: 'No instance can be chosen here: both requests went through nginx.',
  buying: (s) => `${s} s, no answer yet…`,

  figuresTitle: 'The course’s figures and those of this place', figuresCourse: 'course', figuresHere: 'here', figureAverage: 'average', figureMedian: 'median', figureRate: 'throughput', figureLeft: 'left in stock', figureWait: 'the longest, of those that wait', figureBatches: 'answered together', figureAbout: (s) => `about ${s} s`,
  tries: 'Try it in the browser', tryNote: 'Each press is one more person; one browser has at most 6 under way. In a class, phones open this page too.', who: 'Name', someone: 'student', tryWaits: 'waits…',
  how: 'How it is done', courseJava: 'The course’s Java:', rustHere: 'The Rust here:', frameworks: 'In your framework: what Hibernate, MyBatis, Prisma and Django make of the same reads and writes', survives: 'It survives:', breaksIt: 'What breaks it:', wokenSum: (n, sum) => `${n} releases have woken ${sum} in all`, raw: 'This run as JSON', allVerdicts: 'All verdicts', verdictsJson: 'Raw data, JSON', verdictsCount: (n, ran, all, when) => `${ran} lessons were run, and ${n} reproduced what the course says; it has ${all} in all (${when}).`, verdictOf: (v) => VERDICTS.en[v] ?? 'not run', lessonHead: 'Lesson', verdictHead: 'Verdict', seenHead: 'What was seen', readme: 'Read me', wholeFile: 'The whole file',
  byHand: 'By hand, in a terminal', byHandNote: 'In the order of the numbers; below each is what it prints. “Run here” types it on the machine of the servers; or type it in a terminal of your own: oversell is target/release/oversell; redis-cli and mysql come with your system’s packages; zkCli.sh is in the bin folder of ZooKeeper (Debian: /usr/share/zookeeper/bin).', terminal: (n) => `Terminal ${n}`, copy: 'Copy', copied: 'Copied', selected: 'Selected: press Ctrl+C', prints: 'It prints', again: 'Type it again until it prints this:', typeIt: 'Run here', typeOwnLab: 'This lesson starts a lab of its own: type its lines in a terminal.', typeNeeds: (options) => `This line needs a lab that was started with ${options}.`, typeAll: 'Run all in order', typing: 'Running…', printed: 'It printed:', printedAsSaid: 'It printed what stands above:',
  seen: 'The verdict on this lesson', restsOnTiming: 'rests on timing: it may differ from run to run',
  stockLeft: (n) => `stock ${n}`,
  storedRun: (date, version, commit, cpu, cores) => `the full run that comes with the program: ${date}, oversell ${version}, commit ${commit}, ${cpu}, ${cores} cores`,
  notFound: 'Not run yet: type oversell course in a terminal.', notRun: 'This lesson is not run:',
  lessonsWait: (ids) => `Lessons that wait: ${ids}. All else goes on.`,
  andMore: (n) => ` …, ${n} in all`,
  serverDown: (servers) => `${servers} is down.`,
  instanceDown: (names) => `Instance ${names} is down; the others go on selling.`,

  compare: 'Compare', compareClaim: 'The same run with several strategies, on one instance and on three, side by side.', runAll: 'Run all',
  pick: 'Strategies', picked: (n, names) => `These ${n}: ${names}`, and: ', ', pickTargets: 'On', compareReady: 'Ready: one run after the other.', comparePick: 'Choose strategies and targets first.',
  comparing: (what, n, all, percent) => `Run ${n} of ${all}: ${what}, ${percent}%`,
  compareBusy: (what) => `Another run is in progress: ${what}.`,
  seriesName: (at) => `Comparison of ${clock(at)}`, seriesLabel: 'Kept comparisons', seriesRename: 'Name',
  seriesPlan: (p) => `${p.threads} × ${p.loops} · hold ${p.hold_ms} ms · stock ${p.count}`,
  json: 'Download JSON', html: 'Download report', remove: 'Delete', strategy: 'Strategy', onOne: 'One', onThree: 'Three', rateOne: 'One, /s', rateThree: 'Three, /s',
  curveRate: 'per second', curveConnections: 'connections',
  ratesTitle: 'Which is faster', ratesRun: (n, rounds) => `Compare: ${n}, ${rounds} rounds each`, ratesCurve: (from, to) => `From ${from} connection to ${to}`, ratesGoing: (n, all) => `Run ${n} of ${all}…`,
  ratesErrors: (slug) => `A round of ${slug} had errors, and is none.`, connections: (n) => `${n} connections`,
  ratesSaid: ({ first, second, ratio, low, high, least, most, says }) => `${first} is ${ratio} times as fast as ${second} (the rounds: ${low} to ${high}). What the text says asks for ${most == null ? `${least} times at least` : `${least} to ${most} times`}: ${choose({ holds: 'so it is here.', not: 'it is not so here.', apart: 'the rounds do not agree, and prove nothing.' }, says)}`,
  retriesHead: 'Retries', waitHead: 'Longest wait', insideHead: 'Inside at once',
  keys: [['↑ ↓', 'another lesson'], ['Enter', 'run'], ['Esc', 'cancel'], ['R', 'play the race'], ['P', 'projector: larger, no sidebar'], ['Space', 'race: play, pause'], ['← →', 'race: caption by caption'], ['Shift ← →', 'race: moment by moment'], ['/', 'find a lesson'], ['L', '中文 / English'], ['?', 'this page']],
};
