/** The words of the class's page in both languages, beside those that other pages need too. */

import { choose } from './choose.js';

/** @typedef {{room: number, inside: number, waiting: number, reading: number, free: number | null, missing: number, count: number | null, closed: boolean | null}} State */

/** @type {import('./all.js').Words} */
export const zh = {
  classLessons: '一起做的课', classBack: '回到这一课',
  classAct: (name) => choose({
    semaphore: '来一个人', 'semaphore-10': '来十个人', read: '来读一个', write: '来写一个', latch: '班长来了', countdown: '出来一位同学',
    fair: '来一个人', 'fair-5': '来五个人', set: '关上栅栏', wait: '来一个等的', 'wait-5': '来五个等的', remove: '移除栅栏',
    enter: '进来一位', 'enter-3': '进来三位', leave: '里面的都离开',
  }, name),
  classMine: (name) => choose({
    semaphore: '我要进去', read: '我来读', write: '我来写', latch: '我是班长', countdown: '我出来了', fair: '我来排队',
    wait: '我在栅栏前等', enter: '我要进来', leave: '我要离开',
  }, name),
  classWho: (who) => choose({ classmate: '同学', reader: '读者', writer: '写者', monitor: '班长', teacher: '老师' }, who),
  classVisitor: (n) => `访客 ${n}`,
  classState: (kind, /** @type {State} */ s) => choose({
    permits: `${s.room} 个许可：里面 ${s.inside} 人，${s.free == null ? '' : `空着 ${s.free} 个，`}${s.missing ? `${s.missing} 个随停掉的实例丢了，` : ''}等着 ${s.waiting} 人`,
    readWrite: `在读 ${s.reading} 人，在写 ${s.inside} 人，等着 ${s.waiting} 人`,
    lock: `里面 ${s.inside} 人，排队 ${s.waiting} 人`,
    latch: `${s.count == null ? '还没有人出来' : s.count === 0 ? '六位都出来了' : `还有 ${s.count} 位没出来`}，${s.waiting > 0 ? '班长在等' : '班长没在等'}`,
    barrier: `${s.closed == null ? '栅栏开没开还不知道' : s.closed ? '栅栏关着' : '栅栏开着'}，等着 ${s.waiting} 人`,
    meeting: `每 ${s.room} 位一起：里面 ${s.inside} 人，等人到齐的 ${s.waiting} 人`,
  }, kind),
  classCrowded: '超过了！',
  classLeft: (n) => (n === 0 ? '都出来了' : `还有 ${n} 位`),
  classVain: '没等到', classGone: '实例停了',
  classEmpty: '还没有人来。按一个按钮，或者用手机扫码。', classEmptyMine: '还没有人来。按一个按钮。',
  classLanes: '每人一条线', classConsole: (name) => `${name} 的控制台`, classDown: '停了', classQuiet: '还没有输出',
  classLost: '连不上了，正在重连…',
  classPhone: '手机扫码', classScan: '扫码，用手机一起做', classAddress: '这台机器的地址',
  classLoopback: '手机打不开 127.0.0.1。请填这台机器在教室网络里的地址；lab 要加 --lan，compose 要设 HTTP_BIND=0.0.0.0。',
  classOpen: '请确认手机和这台机器在同一个网络里。',
  classNoGuess: '看前面的屏幕。', classGuessed: '记下了；可以改。',
  className: '你的名字', classNameWanted: '先写名字。',
  classTimes: ({ waited, inside, over, passed, failed }) => (failed ? `等了 ${waited} 秒，没等到` : passed ? `等了 ${waited} 秒，过去了`
    : inside == null ? `等待中，${waited} 秒了` : over ? `等了 ${waited} 秒，在里面 ${inside} 秒，出来了` : `在里面，${inside} 秒了（等了 ${waited} 秒）`),
  deskSummary: (here, waiting) => `讲台：${here} 人在${waiting ? `，${waiting} 个在排队` : ''}`, deskToken: '讲台（要口令）',
  deskLesson: '叫大家去哪一课', deskCall: '大家到这一课', deskCalled: (lesson) => `已叫大家到 ${lesson}。`, deskClear: (n) => `清空排队（${n}）`, deskCleared: (n) => `结束了 ${n} 个在排队的。`,
  deskShow: (lesson, running) => `给大家看 ${lesson}${running ? '（正在演）' : ''}`, deskShown: (who, lesson) => `大家在看${who}的 ${lesson}。`,
  deskWaits: (who, what, s) => `${who}：${what}，${s} 秒左右后开始`, deskSomebody: '有人（没开页面）',
  classWords: '用文字看', classWaits: '等待中', classSaid: (who, times) => `${who}：${times}`, seconds: (s) => `${s} 秒`,
  herdRun: '来一次：1 个持有，50 个排队', herdBusy: '正在排队、释放锁…', herdParent: '都监听父节点：', herdPredecessor: '只监听前一个：',
  herdSaid: (sum, times, mean) => `释放锁 ${times} 次，共唤醒 ${sum} 次，平均每次 ${mean} 个`,
};

/** @type {import('./all.js').Words} */
export const en = {
  classLessons: 'Lessons to try together', classBack: 'To the lesson',
  classAct: (name) => choose({
    semaphore: 'One comes', 'semaphore-10': 'Ten come', read: 'One reads', write: 'One writes', latch: 'The monitor comes', countdown: 'A student leaves the room',
    fair: 'One comes', 'fair-5': 'Five come', set: 'Set the barrier', wait: 'One waits', 'wait-5': 'Five wait', remove: 'Remove the barrier',
    enter: 'One enters', 'enter-3': 'Three enter', leave: 'All inside leave',
  }, name),
  classMine: (name) => choose({
    semaphore: 'Let me in', read: 'I read', write: 'I write', latch: 'I am the monitor', countdown: 'I leave the room', fair: 'I queue',
    wait: 'I wait at the barrier', enter: 'I enter', leave: 'I leave',
  }, name),
  classWho: (who) => choose({ classmate: 'Student', reader: 'Reader', writer: 'Writer', monitor: 'Monitor', teacher: 'Teacher' }, who),
  classVisitor: (n) => `Visitor ${n}`,
  classState: (kind, /** @type {State} */ s) => choose({
    permits: `${s.room} permits: ${s.inside} inside, ${s.free == null ? '' : `${s.free} free, `}${s.missing ? `${s.missing} lost with an instance, ` : ''}${s.waiting} waiting`,
    readWrite: `${s.reading} reading, ${s.inside} writing, ${s.waiting} waiting`,
    lock: `${s.inside} inside, ${s.waiting} in the queue`,
    latch: `${s.count == null ? 'Nobody has left yet' : s.count === 0 ? 'All six have left' : `${s.count} still in the room`}; ${s.waiting > 0 ? 'the monitor waits' : 'the monitor is not waiting'}`,
    barrier: `${s.closed == null ? 'Whether the barrier is set is not known' : s.closed ? 'The barrier is set' : 'The barrier is open'}; ${s.waiting} waiting`,
    meeting: `${s.room} meet: ${s.inside} inside, ${s.waiting} waiting for the others`,
  }, kind),
  classCrowded: 'Too many!',
  classLeft: (n) => (n === 0 ? 'all are out' : `${n} left`),
  classVain: 'in vain', classGone: 'instance down',
  classEmpty: 'Nobody has come yet. Press a button, or scan the code with a phone.', classEmptyMine: 'Nobody has come yet. Press a button.',
  classLanes: 'A lane for each person', classConsole: (name) => `Console of ${name}`, classDown: 'down', classQuiet: 'nothing printed yet',
  classLost: 'Connection lost, trying again…',
  classPhone: 'Phones', classScan: 'Scan it to take part', classAddress: 'Address of this machine',
  classLoopback: 'A phone cannot reach 127.0.0.1. Type the address that this machine has in the classroom’s network; a lab needs --lan, compose HTTP_BIND=0.0.0.0.',
  classOpen: 'The phones and this machine must be in the same network.',
  classNoGuess: 'Look at the screen.', classGuessed: 'It counts; you may change it.',
  className: 'Your name', classNameWanted: 'Type your name first.',
  classTimes: ({ waited, inside, over, passed, failed }) => (failed ? `waited ${waited} s in vain` : passed ? `waited ${waited} s, and went on`
    : inside == null ? `waiting for ${waited} s` : over ? `waited ${waited} s, was inside for ${inside} s, and has left` : `inside for ${inside} s (waited ${waited} s)`),
  deskSummary: (here, waiting) => `The teacher’s desk: ${here} here${waiting ? `, ${waiting} in the queue` : ''}`, deskToken: 'The teacher’s desk (needs the token)',
  deskLesson: 'The lesson to call everybody to', deskCall: 'Everybody to this lesson', deskCalled: (lesson) => `Everybody is called to ${lesson}.`, deskClear: (n) => `Clear the queue (${n})`, deskCleared: (n) => `${n} that waited are ended.`,
  deskShow: (lesson, running) => `Show ${lesson} to all${running ? ' (it is being played)' : ''}`, deskShown: (who, lesson) => `Everybody watches ${lesson} by ${who}.`,
  deskWaits: (who, what, s) => `${who}: ${what}, begins in about ${s} s`, deskSomebody: 'Somebody without a page',
  classWords: 'The same in words', classWaits: 'waits', classSaid: (who, times) => `${who}: ${times}`, seconds: (s) => `${s} s`,
  herdRun: 'Run it: 1 holds, 50 queue', herdBusy: 'They queue, and the lock is given back…', herdParent: 'All watch the directory:', herdPredecessor: 'Each watches the node before its own:',
  herdSaid: (sum, times, mean) => `${times} releases woke ${sum} in all, ${mean} each on average`,
};
