/**
 * The words of the page in both languages. Titles of lessons come from the service (GET /strategies).
 *
 * A text is a string, or a function of its arguments.
 */

import { choose } from './choose.js';
import { shortStatement } from './deadlock.js';
import * as firstViewWords from './first-view.js';
import * as lessonWords from './lesson.js';
import * as faultWords from './faults.js';
import * as raceWords from './race.js';
import { isCancelled, reasonText } from './reasons.js';

/** A caption has both languages. @param {string} value @param {'zh' | 'en'} lang @returns {string} */
function stepIn(value, lang) {
  try {
    return JSON.parse(value)[lang];
  } catch {
    return value;
  }
}

/** A text, or a function that makes one; some names have a list. @typedef {Record<string, string | string[][] | ((...about: any[]) => any)>} Words */

/** @type {Words} */
const zh = {
  ...firstViewWords.zh,
  ...lessonWords.zh,
  settings: '这一场怎么跑',
  figures: '卖出与库存减少', close: '关闭',
  up: '正常', down: '停了', unknown: '不知道',
  role: (role) => choose({ primary: '主', replica: '从', writer: '写', standby: '备', leader: 'Leader', follower: 'Follower' }, role) ?? role,
  themeNext: '明暗',
  theme: (name) => `明暗：${choose({ system: '跟随系统', light: '亮', dark: '暗' }, name)}`,

  promiseLong: (p) => choose({
    unsafe: '读和写之间，谁都可以插进来。', 'one-process': '一个实例上，一次只进去一个。',
    lease: '租约没到期，一次只进去一个。', safe: '无论几个实例，卖出多少，库存就减少多少。',
  }, p),
  stop: '。', colon: '：', comma: '，',
  needs: (servers) => `需要 ${servers}`,
  code: '代码',

  target: '目标', one: '一个实例', three: '三个实例', threads: '并发', loops: '次数', hold: '停留 ms', count: '库存',
  run: '运行', cancel: '取消',
  alone: '这里只有一个实例，所以只能选一个实例。三个实例要用 oversell lab 启动。',

  sold: '卖出', gone: '库存减少', over: '超卖', errors: '出错', soldOut: '售罄', noAnswer: '没有应答',
  waitsFor: (servers) => `${servers} 停了，这一课在等它回来。`,
  starting: '正在重置库存…',
  lost: (done, all) => `连接断了，正在接上；那边照常在跑（${done} / ${all}）。`,
  exact: '分毫不差：卖出多少，库存就减少多少。', exactOnly: '这一场没有超卖：卖出多少，库存就减少多少。这一课说的是另一件事，这一场看不出来。',
  oversold: (sold, left, over, isTooMany) => (isTooMany ? `库存没有这么多：卖给了 ${sold} 人，多卖了 ${over} 件。` : `${sold} 人都买到了，库存却还显示 ${left} 件：${over === left ? '这些' : `其中 ${over} 件`}会再卖给别人。`),
  failing: (n) => `有 ${n} 次出错，这一场不能算数。`,
  cancelled: (done, all) => `取消了，停在 ${done} / ${all}。`,
  reason: (why) => reasonText('zh', why), failed: (why) => (isCancelled(why) ? '已取消。' : `没有跑成：${reasonText('zh', why)}`),
  vanished: '服务重启过，这一场没有了。',
  busy: (who, done, all, left) => `另一场正在跑：${who}，${done} / ${all}${left ? `，约还要 ${left} 秒` : ''}。`,
  watch: '去看',
  plan: (p) => `${p.target === 'three' ? '三个实例' : '一个实例'} · ${p.threads} × ${p.loops} · 停留 ${p.hold_ms} ms · 库存 ${p.count}`,

  shelf: '库存', absent: '停了', version: (v) => `版本 ${v}`, reset: (n) => `重置为 ${n}`,
  buy: '买一件', buyTwo: '两人同时买', buyTwoWhy: '两个请求一起出发，各在临界区停留至少 200 ms',
  token: '管理口令', tokenWanted: '这一步要管理口令。', tokenAt: '老师用 lab 打印的第一个地址打开页面，就不用输。演大多数竞态、写自己的锁，不要口令。',
  bought: '买到了', left: (n) => `剩 ${n}`, waited: (ms) => `等 ${ms} ms`, held: (ms) => `停留 ${ms} ms`,
  lockLost: (n) => `解锁时锁已丢 ${n} 次`,
  beyond: '课程之外',
  retries: (n) => `重试 ${n} 次`, fence: (n) => `令牌 ${n}`,
  sameAnswer: (n) => `两人都写回 ${n}：卖出两件，只少一件`,

  disconnected: '连不上这里的服务，每 3 秒再试一次。', unreached: '服务没有应答',
  noInstance: (status) => `nginx 没有等到实例的回答（${status}）：有实例停了。过几秒再试一次；点首页上它的灯，可以启动它。`, shelfUnread: (why) => `库存没有读到：${why}`,

  marks: '记号',
  mark: (p) => choose({ unsafe: '一个实例就超卖', 'one-process': '一个实例不超卖，三个超卖', lease: '租约到期前不超卖', safe: '几个实例都不超卖' }, p),
  addressHelp: '地址记着这一课和它的设置，可以收藏、可以发给别人。',

  classTitle: '一起做', classLink: '全班一起做：每人一条线，手机也能来', called: '老师叫大家到这一课。',
  docsTitle: '接口', mineTitle: '自己的锁', limitsTitle: '限流', limitsSend: (n) => `发 ${n} 个请求`, limitsSaid: (through, refused, failed) =>
    `放行 ${through}，拒绝 ${refused}${failed ? `，出错 ${failed}` : ''}`,
  limitsClaim: '每个请求画在它得到回答的时刻，每 100 ms 一列：● 放行（上），× 拒绝（下）；虚线从发出的时刻开始，那是在排队等。秒数后面是那一秒放行了几个。每 20 ms 发一个。桶画的是此刻：● 是里面的令牌、排队的或进去的，空圈是空位。',
  limitsNow: ({ through, refused, waiting }) => `这一秒：放行 ${through}，拒绝 ${refused}${waiting == null ? '' : `，等着 ${waiting}`}`,
  limitsNginx: '这个限流在 nginx 那里，这里只有一个实例。',
  limiter: (id) => choose({
    bucket: '令牌桶：每个实例每秒 10 个', shared: '所有实例一起每秒 10 个', queued: 'nginx 漏桶：1r/s burst=5',
    nodelay: 'nginx：1r/s burst=5 nodelay',
    address: 'nginx：limit_conn，同一个 IP 同时 20 个', server: 'nginx：limit_conn，整个 server 同时 100 个',
  }, id),
  limiterNote: (id) => choose({
    bucket: '桶里先有 10 个令牌，之后每 100 ms 来一个；拿不到就马上拒绝。三个实例就有三个桶：合起来每秒 30 个。',
    shared: '任何一秒之内最多 10 个：先来的 10 个马上放行，要等它们满一秒才有下 10 个。',
    queued: '每 1000 ms 漏一个，5 个排队等着，再多的马上拒绝。',
    nodelay: '1 + 5 个立即处理，之后每 1000 ms 才释放一个排队位置。',
    address: '不管多快，只限并发连接数：20 个进去停留 2.5 秒，其余马上拒绝。浏览器最多 6 个连接，所以由服务来发。',
    server: '同样只限并发连接数，所有 IP 合起来 100 个。',
  }, id),

  errataTitle: '勘误', errataClaim: '原文写错的地方：每条一句话，和演示它的那一课。', errataTerms: '第 5 章的定义',
  glossaryTitle: '术语', glossaryClaim: '第 5 章的锁分类：每一种一句话，和看得到它的那一课。原文的定义有错的，写在下面。', glossaryLesson: (id) => `看这一课（${id}）→`,
  cacheTitle: '浏览器缓存', cacheAgain: '再来一次',
  cacheClaim: '先看过期没有，再比 ETag，再比 Last-Modified。',
  cacheNote: (id) => choose({
    fresh: '60 秒之内没有过期：浏览器什么都不问。', etag: '每次都问：ETag 一样，就回 304，不再传内容。',
    'last-modified': '每次都问：从 Last-Modified 以后没有改过，就回 304。', never: '不许缓存：每次都是 200，整个传一遍。',
  }, id),
  cacheSaid: (cost) => choose({ none: '这次：没有问服务器', head: '这次：304，只传了头', all: '这次：200，传了内容' }, cost),

  // ---- replays: the timeline
  replayOff: '这里不能重演：只有 oversell lab 或 docker compose 起的实例才行。',
  replayLive: '正在演…',
  flaw: '有问题', cured: '修正后',
  play: '播放', pause: '暂停', back: '上一句（按住 Shift：上一个时刻）', forward: '下一句（按住 Shift：下一个时刻）', speed: '播放速度', slower: (n) => (n === 1 ? '原速' : `慢 ${n} 倍`),
  at: (s) => `${s} s`, unscaled: '一步一格，不按时间',
  lanes: '时间线', cursor: '时间',
  lockLane: '锁', rowLane: '行.fence', asSentences: '用文字看这一遍',
  laneNow: (kind) => choose({ waits: '等待中', inside: '在临界区', shared: '在临界区', vain: '尝试', shut: '被行挡住', leaves: '写完了', stopped: '停住了' }, kind) ?? '',
  lockNow: (held) => (held ? `${held.owner}${held.count > 1 ? ` ×${held.count}` : ''}${held.left < 0 || held.left > 99_000 ? '' : ` 剩 ${(held.left / 1000).toFixed(1)} s`}` : '空闲'),
  tick: (e) => choose({
    waits: e.value === 'self' ? '等自己' : '等', statement: shortStatement(e.value), error: e.value, watched: 'WATCH', read: `读 ${e.value ?? ''}`, written: `写 ${e.value ?? ''}`, checked: e.owner ? `GET = ${e.owner}` : '查：没有订单', deleted: 'DEL',
    released: e.value ?? '解锁', lost: e.value === 'unseen' ? 'DEL：键已不在' : '不是我的', conflict: e.value ?? '被抢先', 'refused-by-row': '409', committed: '提交', failed: lessonWords.refusalText('zh', e.value), retries: `重试 ${e.value}`, sold: '卖出',
  }, e.event) ?? lessonWords.eventText('zh', e),
  arrow: ({ from, to, owner, event }) => (to === 'lock'
    ? `${from} 删掉了${owner ? ` ${owner} ` : '别人'}的锁` : `${event.token ?? '旧令牌'} < ${event.value ?? '新令牌'}：行不收`),
  replaySold: ({ sold, gone }) => `卖出 ${sold}，库存减少 ${gone}${sold > gone ? `：超卖 ${sold - gone}` : ''}。`,
  replayInside: (n) => (n > 1 ? `临界区内最多 ${n} 个。` : '临界区内始终只有一个。'),
  replayApart: '这一次和平时不一样。',
  told: (e) => {
    const who = choose({ lock: `锁${lessonWords.nodeName(e.key)}`, stock: '库存', row: '行', step: '' }, e.actor) ?? e.actor;
    const text = choose({
      start: `开始（${e.value ?? ''}）`, waits: '等锁', refused: '没抢到', taken: '拿到锁', locked: '进去了', read: `读${e.value == null ? '了' : `到 ${e.value}`}`, written: `写${e.value == null ? '了' : `回 ${e.value}`}`, sent: `发 ${e.value ?? ''}`,
      checked: e.owner ? `看锁是谁的：${e.owner}` : '查订单：没有', deleted: e.value === 'foreign' ? `删掉了 ${e.owner ?? '别人'} 的锁` : '删掉锁', released: '解锁', lost: '解锁时锁已不是它的',
      renewed: '续期', conflict: '被别人抢先，重来', 'refused-by-row': `被行拒绝：令牌 ${e.token ?? ''} 比 ${e.value ?? ''} 旧`, stopped: '停住', continued: '继续执行',
      committed: '提交', sold: `卖出一件${e.value == null ? '' : `，剩 ${e.value}`}`, failed: `失败：${lessonWords.refusalText('zh', e.value)}`, done: '做完了', retries: `重试了 ${e.value} 次`,
      held: `${e.owner ?? ''} 持有${e.pttl > 0 ? `，租约还有 ${e.pttl} ms` : ''}`, free: '空了', expired: '到期了', queue: `排队 ${e.value ?? ''}`, stock: `${e.value} 件`, fence: `见过令牌 ${e.token}`,
    }, e.event) ?? lessonWords.eventText('zh', e);
    if (e.actor === 'step') return stepIn(e.value, 'zh');
    return `${who}：${text}`;
  },
};

/** @type {Words} */
const en = {
  ...firstViewWords.en,
  ...lessonWords.en,
  settings: 'How to run it', figures: 'What was sold, and what the stock fell by', close: 'Close',
  up: 'up', down: 'down', unknown: 'unknown',
  role: (role) => role,
  themeNext: 'Theme',
  theme: (name) => `Theme: ${name}`,

  promiseLong: (p) => choose({
    unsafe: 'Anybody may step in between the read and the write.', 'one-process': 'On one machine, one at a time gets in.',
    lease: 'One at a time gets in, until the lease ends.', safe: 'On any number of machines, the stock falls by what is sold.',
  }, p),
  stop: '.', colon: ': ', comma: ', ',
  needs: (servers) => `needs ${servers}`,
  code: 'Code',

  target: 'Target', one: 'One', three: 'Three', threads: 'Threads', loops: 'Loops', hold: 'Hold ms', count: 'Stock',
  run: 'Run', cancel: 'Cancel',
  alone: 'There is one instance here, so a run goes to that one. For three, start oversell lab.',

  sold: 'Sold', gone: 'Stock fell by', over: 'Oversold', errors: 'errors', soldOut: 'sold out', noAnswer: 'unanswered',
  waitsFor: (servers) => `${servers} is down; this lesson waits for it.`,
  starting: 'Resetting the stock…',
  lost: (done, all) => `Connection lost, trying again; the run itself goes on (${done} / ${all}).`,
  exact: 'Exact: the stock fell by what was sold.', exactOnly: 'This run has not oversold: the stock fell by what was sold. What this lesson claims is something else, which no run shows.',
  oversold: (sold, left, over, isTooMany) => (isTooMany ? `There were not so many: ${sold} people have one, which is ${over} too many.` : `${sold} people have one, and the stock still says ${left}: ${over === left ? 'these' : `${over} of them`} will be sold again.`),
  failing: (n) => `${n} requests failed; this run proves nothing.`,
  cancelled: (done, all) => `Cancelled at ${done} / ${all}.`,
  reason: (why) => why, failed: (why) => (isCancelled(why) ? 'Cancelled.' : `The run did not work: ${why}`),
  vanished: 'the service was restarted, and the run went with it.',
  busy: (who, done, all, left) => `Another run is in progress: ${who}, ${done} / ${all}${left ? `, about ${left} s left` : ''}.`,
  watch: 'Watch it',
  plan: (p) => `${p.target === 'three' ? 'three' : 'one'} · ${p.threads} × ${p.loops} · hold ${p.hold_ms} ms · stock ${p.count}`,

  shelf: 'Stock', absent: 'down', version: (v) => `version ${v}`, reset: (n) => `Reset to ${n}`,
  buy: 'Buy one', buyTwo: 'Two buy at once', buyTwoWhy: 'two requests leave together and stay inside for at least 200 ms each',
  token: 'Admin token', tokenWanted: 'This needs the admin token.', tokenAt: 'The teacher opens the first address that the lab prints, and is not asked. Most races, and a lock of your own, need none.',
  bought: 'bought', left: (n) => `${n} left`, waited: (ms) => `waited ${ms} ms`, held: (ms) => `held ${ms} ms`,
  lockLost: (n) => `${n} unlocks found the lock lost`, beyond: 'beyond the course',
  retries: (n) => (String(n) === '1' ? '1 retry' : `${n} retries`), fence: (n) => `token ${n}`,
  sameAnswer: (n) => `Both wrote ${n}: two sold, one gone`,

  disconnected: 'The service here does not answer; trying again every 3 s.', unreached: 'the service did not answer',
  noInstance: (status) => `nginx had no answer from an instance (${status}): one is down. Try again in a few seconds; its light on the main page starts it.`, shelfUnread: (why) => `The stock was not read: ${why}`,

  marks: 'Marks',
  mark: (p) => choose({
    unsafe: 'oversells on one instance', 'one-process': 'exact on one, oversells on three',
    lease: 'exact until a lease ends', safe: 'exact on any number',
  }, p),
  addressHelp: 'The address holds the lesson and its settings: keep it, or send it to somebody.',

  classTitle: 'Together', classLink: 'Try it with the whole class: a lane for each person, phones too', called: 'The teacher has called everybody to this lesson.',
  docsTitle: 'API', mineTitle: 'Your own lock', limitsTitle: 'Limits', limitsSend: (n) => `Send ${n} requests`, limitsSaid: (through, refused, failed) =>
    `${through} let through, ${refused} refused${failed ? `, ${failed} failed` : ''}`,
  limitsClaim: 'Each request at the time of its answer, in columns of 100 ms: ● let through (above), × refused (below); a dotted line begins where a request was sent that has waited. Beside each second: how many were let through in it. One is sent every 20 ms. Each bucket is drawn as it is at the moment: ● tokens, or those who wait or are inside; a ring is a free place.',
  limitsNow: ({ through, refused, waiting }) => `within the last second: ${through} let through, ${refused} refused${waiting == null ? '' : `; ${waiting} waiting`}`,
  limitsNginx: 'This limit is at nginx, and there is one instance alone here.',
  limiter: (id) => choose({
    bucket: 'Token bucket: 10 a second in each instance', shared: '10 a second in all instances together',
    queued: 'Leaky bucket of nginx: 1r/s burst=5', nodelay: 'nginx: 1r/s burst=5 nodelay',
    address: 'nginx: limit_conn, 20 at once of one address', server: 'nginx: limit_conn, 100 at once in all',
  }, id),
  limiterNote: (id) => choose({
    bucket: 'The bucket holds 10 tokens, and one comes every 100 ms; who gets none is refused at once. Three instances have three buckets: 30 a second.',
    shared: '10 at most within any second: the first 10 at once, the next 10 when those are a second old.',
    queued: 'One leaks out every 1000 ms, five wait for their turn, more are refused at once.',
    nodelay: '1 + 5 are let through at once; then room for one more every 1000 ms.',
    address: 'Only who is inside at once is counted, however fast they come: 20 stay for 2.5 s, the others are refused at once. A browser has six connections, so the service sends them.',
    server: 'Again only who is inside at once: 100 of all addresses together.',
  }, id),

  errataTitle: 'Errata', errataClaim: 'What the course has wrong: a sentence for each, and the lesson that shows it.', errataTerms: '第 5 章的定义',
  glossaryTitle: 'Glossary', glossaryClaim: 'The kinds of locks in chapter 5: a sentence for each, and the lesson that shows it. Where the text defines one wrongly, it says so.', glossaryLesson: (id) => `The lesson (${id}) →`,
  cacheTitle: 'The browser’s cache', cacheAgain: 'Once more',
  cacheClaim: 'First whether it has expired, then the ETag, then Last-Modified.',
  cacheNote: (id) => choose({
    fresh: 'Not expired for 60 s: the browser asks nothing.', etag: 'It asks each time: the same ETag is answered 304, without the body.',
    'last-modified': 'It asks each time: not modified since Last-Modified is answered 304.',
    never: 'Never stored: 200 each time, with the whole body.',
  }, id),
  cacheSaid: (cost) => choose({ none: 'this time: the server was not asked', head: 'this time: 304, a head alone', all: 'this time: 200, with the body' }, cost),

  // ---- replays: the timeline
  replayOff: 'No replays here: only instances of oversell lab or of docker compose play them.',
  replayLive: 'Playing…',
  flaw: 'Flaw', cured: 'Cure',
  play: 'Play', pause: 'Pause', back: 'The caption before (Shift: the moment before)', forward: 'The next caption (Shift: the next moment)', speed: 'Speed', slower: (n) => (n === 1 ? 'as it was' : `${n} × slower`),
  at: (s) => `${s} s`, unscaled: 'one step each, not to scale',
  lanes: 'Timeline', cursor: 'Time',
  lockLane: 'Lock', rowLane: 'row.fence', asSentences: 'The same in words',
  laneNow: (kind) => choose({ waits: 'waits', inside: 'inside', shared: 'inside', vain: 'tries', shut: 'shut out', leaves: 'has written', stopped: 'stands still' }, kind) ?? '',
  lockNow: (held) => (held ? `${held.owner}${held.count > 1 ? ` ×${held.count}` : ''}${held.left < 0 || held.left > 99_000 ? '' : `, ${(held.left / 1000).toFixed(1)} s left`}` : 'free'),
  tick: (e) => choose({
    waits: e.value === 'self' ? 'waits for itself' : 'waits', statement: shortStatement(e.value), error: e.value, watched: 'WATCH', read: `reads ${e.value ?? ''}`, written: `writes ${e.value ?? ''}`, checked: e.owner ? `GET = ${e.owner}` : 'finds no order', deleted: 'DEL',
    released: e.value ?? 'unlocks', lost: e.value === 'unseen' ? 'DEL: no key' : 'not mine', conflict: e.value ?? 'beaten', 'refused-by-row': '409', committed: 'commits', failed: lessonWords.refusalText('en', e.value), retries: `retries ${e.value}`, sold: 'sells',
  }, e.event) ?? lessonWords.eventText('en', e),
  arrow: ({ from, to, owner, event }) => (to === 'lock'
    ? `${from} deletes ${owner ? `${owner}'s` : "another's"} lock` : `${event.token ?? 'old token'} < ${event.value ?? 'new token'}: refused`),
  replaySold: ({ sold, gone }) => `${sold} sold, ${gone} gone${sold > gone ? `: oversold by ${sold - gone}` : ''}. `,
  replayInside: (n) => (n > 1 ? `At most ${n} were inside at once. ` : 'Never more than one inside. '),
  replayApart: 'This time it did not go as it does.',
  told: (e) => {
    const who = choose({ lock: `Lock${lessonWords.nodeName(e.key)}`, stock: 'Stock', row: 'Row', step: '' }, e.actor) ?? e.actor;
    const text = choose({
      start: `starts (${e.value ?? ''})`, waits: 'waits for the lock', refused: 'does not get the lock', taken: 'has the lock', locked: 'is inside', read: `reads ${e.value ?? ''}`, written: `writes ${e.value ?? ''}`, sent: `sends ${e.value ?? ''}`,
      checked: e.owner ? `looks whose lock it is: ${e.owner}` : 'asks for the order, and finds none', deleted: e.value === 'foreign' ? `deletes the lock of ${e.owner ?? 'another'}` : 'deletes its lock', released: 'unlocks', lost: 'finds that the lock is no longer its own',
      renewed: 'renews', conflict: 'was beaten, and tries anew', 'refused-by-row': `is refused by the row: token ${e.token ?? ''} is older than ${e.value ?? ''}`, stopped: 'stands still', continued: 'goes on',
      committed: 'commits', sold: `has sold one${e.value == null ? '' : `, ${e.value} left`}`, failed: `fails: ${lessonWords.refusalText('en', e.value)}`, done: 'is done', retries: `tried anew ${e.value} times`,
      held: `held by ${e.owner ?? ''}${e.pttl > 0 ? `, ${e.pttl} ms of the lease left` : ''}`, free: 'free', expired: 'its lease is over', queue: `queue ${e.value ?? ''}`, stock: `${e.value} pieces`, fence: `has seen token ${e.token}`,
    }, e.event) ?? lessonWords.eventText('en', e);
    if (e.actor === 'step') return stepIn(e.value, 'en');
    return `${who}: ${text}`;
  },
};

export const languages = { zh: { ...zh, ...faultWords.zh, ...raceWords.zh }, en: { ...en, ...faultWords.en, ...raceWords.en } };
