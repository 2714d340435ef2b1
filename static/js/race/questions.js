/**
 * The questions of the ninety minutes, each before its race is played: the claim does not answer them, the race does, and the wrong answers are
 * what one may well believe.
 */

/** The question and its four answers in each language; `is`: the right one, from 0. @typedef {{is: number, zh: string[], en: string[]}} Question */

/** By lesson. @type {Record<string, Question>} */
export const QUESTIONS = {
  '1.1': {
    is: 1,
    zh: ['两个人都买到了，库存只减少一件：谁的写入丢失了？', 'B 的：先写入的为准', 'A 的：被 B 盖掉', '都在：MySQL 合成一次', '都丢失：都回滚'],
    en: ['Both have bought, one piece is gone: whose write is lost?', 'B’s: the first one counts', 'A’s: B writes over it', 'neither: MySQL joins them', 'both: they are rolled back'],
  },
  '1.6': {
    is: 2,
    zh: ['A 拿着锁。B 到了另一个实例，会怎样？', '等 A 释放', 'nginx 让它排队', '直接进去：那里的锁没人占', '被拒绝，要重试'],
    en: ['A has the lock. B comes to another instance, and', 'waits for A', 'nginx queues it', 'gets in: nobody has the lock there', 'is refused, and must try again'],
  },
  '1.7.2': {
    is: 1,
    zh: ['修正后，B 等到了 A 的行锁，它读到几？', '5,000：事务开始时的快照', '4,999：A 提交以后的', '读不到：等锁超时', '5,000，写的时候报错'],
    en: ['With the cure B waits for A’s row lock. What does it read then?', '5,000: the snapshot of its start', '4,999: what A has committed', 'nothing: its wait times out', '5,000, and its write fails'],
  },
  '1.7.3': {
    is: 2,
    zh: ['修正后，A、B 各买一件，一共读几次库存？', '1 次', '2 次', '3 次', '4 次'],
    en: ['With the cure A and B buy one each: how often is the stock read?', 'once', 'twice', '3 times', '4 times'],
  },
  '2.2': {
    is: 0,
    zh: ['修正后，租约到期，B 怎么知道锁空了？', '自己一遍遍地试', 'Redis 通知它', '键到期会推送消息', 'A 的连接断了'],
    en: ['With the cure the lease ends. How does B learn that the lock is free?', 'it tries again and again', 'Redis tells it', 'the end of a key is published', 'A’s connection breaks'],
  },
  '2.3': {
    is: 1,
    zh: ['修正后，删锁以前先看是不是自己的。还会超卖吗？', '不会：删不到别人的锁', '会：业务还是比租约长', '不会：B 等 A 写完', '会：C 照样进来'],
    en: ['The cure looks whose lock it is before it deletes. Does it still oversell?', 'no: nobody deletes another’s lock', 'yes: the job still outlives its lease', 'no: B waits until A has written', 'yes: C gets in as before'],
  },
  '2.3.gap': {
    is: 1,
    zh: ['修正后，A 的脚本来晚了，Redis 答什么？', '1：删掉了', '0：不是它的，没删', 'nil：没有这个键', '报错：脚本被打断'],
    en: ['With the cure A’s script comes late. What does Redis answer?', '1: deleted', '0: not A’s, and not deleted', 'nil: there is no such key', 'an error: the script was interrupted'],
  },
  '2.7': {
    is: 1,
    zh: ['租约 3 秒，定时器多久续一次？', '3 秒：到期时', '1 秒：租约的三分之一', '每次读写时', '只续一次，直到做完'],
    en: ['A lease of 3 s: how often does the timer renew it?', 'every 3 s: at its end', 'every 1 s: a third of it', 'at each read and write', 'once, until the job is done'],
  },
  '2.10.6': {
    is: 0,
    zh: ['修正后，许可用完了。C 什么时候进来？', '有一个走了，还了许可', '里面的都走了', '马上：每个实例各有许可', '不进来：被拒绝'],
    en: ['With the cure no permit is left. When does C come in?', 'once one leaves and gives its permit back', 'once all have left', 'at once: each instance has permits of its own', 'never: it is refused'],
  },
  '3.4.2.herd': {
    is: 2,
    zh: ['50 个在等待，都监听父节点。锁一次次释放，一共唤醒几个？', '50', '100', '1,275', '2,500'],
    en: ['50 wait, and all watch the directory. They release in turn: how many are woken in all?', '50', '100', '1,275', '2,500'],
  },
  '4.3.2': {
    is: 1,
    zh: ['修正后，谁清掉死者 A 的那一行？', 'MySQL：A 的连接断了', 'B：看到租约过了', 'A 的实例重启以后', '谁也不清：B 换一行'],
    en: ['With the cure, who sweeps the row of A, which is dead?', 'MySQL: A’s connection is broken', 'B: it sees that the lease is over', 'A’s instance, once it runs again', 'nobody: B inserts another row'],
  },
  '003.pause': {
    is: 2,
    zh: ['修正后，谁拒绝了 A 迟到的写？', 'Redis：锁不是它的了', 'A 自己：租约过了', 'MySQL 的那一行：见过更大的令牌', 'B：它还在临界区'],
    en: ['With the cure, who refuses A’s late write?', 'Redis: the lock is no longer A’s', 'A itself: its lease is over', 'the row in MySQL: it has a greater token', 'B, which is still inside'],
  },
  '002.new-mutex': {
    is: 0,
    zh: ['修正后，同一个人的 B 在哪一步失败？', '查订单：已经有一单', '拿锁：A 占着', '写订单：唯一索引不让', '提交：A 先提交了'],
    en: ['With the cure, at which step does B, of the same user, fail?', 'the look: there is an order', 'the lock: A has it', 'the order: the unique key refuses it', 'the commit: A was first'],
  },
};
