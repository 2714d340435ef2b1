/** The words of the fault panel and of a run's lanes, in both languages. */

import { choose } from './choose.js';

/** @type {import('./all.js').Words} */
export const zh = {
  breaking: '弄坏它', lightOpens: '按一下，看能把它怎么样', breakingClose: '收起', breakingAll: '全部恢复', breakingAsk: '正在问 lab…',
  breakingNone: '所有实例都没有应答，没有人能把命令交给 lab。请在终端里用 oversell lab fault。',
  breakingGoing: '正在照做…',
  memberState: (state) => choose({ running: '在跑', paused: '暂停了', killed: '被杀掉了' }, state) ?? state,
  memberMeans: (state, instance) => choose({
    running: '在跑。',
    paused: instance ? '暂停了：它占着的还占着，什么也不做，像一次很长的 GC。' : '暂停了：连接还在，什么也不回答。',
    killed: instance ? '被杀掉了：行锁马上空出来，别的锁要等租约或会话到期。' : '被杀掉了。',
  }, state) ?? '',
  wayMeans: (server, state) => (state === 'cut' ? `到 ${server} 断开了。` : `${server} 的回答慢了。`),
  fault: (action) => choose({
    pause: '暂停', resume: '继续', kill: '杀掉', start: '启动', expire: '让 ZooKeeper 会话过期', promote: '升为主节点', cut: '断开', slow: '慢 200 ms', jump: '时钟拨快 60 s', mend: '恢复',
  }, action) ?? action,
  faultWay: (action, server) => `${action === 'cut' ? '断开到' : '接好到'} ${server}`,
  faultDone: (member, action) => `${member}：${choose({
    pause: '暂停了', resume: '继续了', kill: '杀掉了', start: '启动了', expire: '会话过期了', promote: '现在是主节点', cut: '断开了', slow: '变慢了', jump: '时钟拨快了', mend: '恢复了',
  }, action) ?? action}。`,
  faultAll: '全部恢复了。', faultLeft: '还有没恢复的，请再按一次。', senderStill: (done, all, name) => `停在 ${done} / ${all}：发请求的实例 ${name} 没有应答，要等它继续。`,

  lanesRead: '一行是一个请求（线程·第几次）：点线是等待，实条在临界区；红的是不止一个同时在临界区。',
  lanesShared: '一行是一个请求（线程·第几次）：点线是等待，灰条在临界区；共享锁下可以有几个同时在临界区。',
  lanesTries: '一行是一个请求（线程·第几次）：谁也不独占，可以同时进行。空框是失败的一次尝试，别人先写了；灰条是写成的那次，从读到（一条语句的，从发出）到写完；点线在等。',
  lanesCrowd: (of, n) => `${of} 个请求里只画 ${n} 个：同时进行的最多的那一刻前后，一个接一个开始的。`,
  lanesMiddle: (of, n) => `${of} 个请求里只画 ${n} 个：中间一段，一个接一个开始的。`,
  lanesOf: (of, n) => `${of} 个请求里的 ${n} 个`,
  lanesOut: (n) => `另有 ${n} 个没有进去，没有画。`,
  stayTold: ({ thread, turn, instance, begun_us, entered_us, left_us, vain }) => (vain
    ? `${thread}·${turn}（${instance}）：${vain.length ? `失败 ${vain.length} 次，` : ''}写成的那次从第 ${(entered_us / 1000).toFixed(1)} ms 到第 ${(left_us / 1000).toFixed(1)} ms`
    : `${thread}·${turn}（${instance}）：等了 ${Math.round((entered_us - begun_us) / 1000)} ms，第 ${(entered_us / 1000).toFixed(1)} ms 进去，第 ${(left_us / 1000).toFixed(1)} ms 出来`),
};

/** @type {import('./all.js').Words} */
export const en = {
  breaking: 'Break it', lightOpens: 'Press to see what can be done to it', breakingClose: 'Close', breakingAll: 'Put all back', breakingAsk: 'Asking the lab…',
  breakingNone: 'No instance answers, so the lab cannot be reached from here. Use oversell lab fault in a terminal.',
  breakingGoing: 'Being done…',
  memberState: (state) => choose({ running: 'runs', paused: 'paused', killed: 'killed' }, state) ?? state,
  memberMeans: (state, instance) => choose({
    running: 'runs.',
    paused: instance ? 'is paused: it holds what it holds and does nothing, as in a long garbage collection.' : 'is paused: its connections stay, and it answers nothing.',
    killed: instance ? 'is killed: its row locks are free at once, other locks once their lease or session has ended.' : 'is killed.',
  }, state) ?? '',
  wayMeans: (server, state) => (state === 'cut' ? `Its way to ${server} is cut.` : `Answers of ${server} come late.`),
  fault: (action) => choose({
    pause: 'Pause', resume: 'Resume', kill: 'Kill', start: 'Start', expire: 'End its ZooKeeper session', promote: 'Promote', cut: 'Cut off', slow: '200 ms late', jump: 'Clock 60 s ahead', mend: 'Mend',
  }, action) ?? action,
  faultWay: (action, server) => `${action === 'cut' ? 'Cut off from' : 'Mend the way to'} ${server}`,
  faultDone: (member, action) => `${member} ${choose({
    pause: 'is paused', resume: 'goes on', kill: 'is killed', start: 'runs again', expire: 'has lost its session', promote: 'is the main one now', cut: 'is cut off', slow: 'is slow', jump: 'has a clock that is ahead', mend: 'is mended',
  }, action) ?? action}.`,
  faultAll: 'All is put back.', faultLeft: 'Some are not put back yet: press it once more.', senderStill: (done, all, name) => `Stands at ${done} / ${all}: instance ${name}, which sends the requests, does not answer; it goes on when that one does.`,

  lanesRead: 'A line for each request (thread·loop): dotted it waits, solid it is inside; red, more than one are inside.',
  lanesShared: 'A line for each request (thread·loop): dotted it waits, grey it is inside; a shared lock lets several in.',
  lanesTries: 'A line for each request (thread·loop): nobody is alone, and all may be under way at once. An empty box is a try in vain, as another wrote first; grey is the one that wrote, from its read (one statement: from its sending) to its end; dotted it waits.',
  lanesCrowd: (of, n) => `${n} of ${of} requests are drawn: those who began one after the other around the moment at which the most were under way.`,
  lanesMiddle: (of, n) => `${n} of ${of} requests are drawn: some in the middle, who began one after the other.`,
  lanesOf: (of, n) => `${n} of ${of} requests`,
  lanesOut: (n) => `${n} more did not get in, and are not drawn.`,
  stayTold: ({ thread, turn, instance, begun_us, entered_us, left_us, vain }) => (vain
    ? `${thread}·${turn} (${instance}): ${vain.length ? `${vain.length} in vain, ` : ''}wrote from ${(entered_us / 1000).toFixed(1)} ms to ${(left_us / 1000).toFixed(1)} ms`
    : `${thread}·${turn} (${instance}): waited ${Math.round((entered_us - begun_us) / 1000)} ms, in at ${(entered_us / 1000).toFixed(1)} ms, out at ${(left_us / 1000).toFixed(1)} ms`),
};
