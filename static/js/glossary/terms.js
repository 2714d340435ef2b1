/** The kinds of locks in chapter 5 of the course, in its order: what each is, and the lesson in which it is seen. */

/**
 * `errs` is what the course's own definition has wrong.
 *
 * @typedef {{zh: string, en: string}} Text
 * @typedef {{term: Text, is: Text, lesson: string, errs?: Text}} Term
 */

/** @type {Term[]} */
export const TERMS = [
  {
    term: { zh: '悲观锁', en: 'Pessimistic lock' }, lesson: '1.7.2',
    is: { zh: '先加锁再读写，假定一定会有人来抢：写得多时合适，代价是后来的都要等。', en: 'Locks first, then reads and writes, as if somebody were sure to interfere: right where writes are many; all others wait.' },
    errs: { zh: '原文说它“会阻塞读操作”：在 InnoDB 里，普通的 SELECT 读快照，不等 FOR UPDATE；要等的只有加锁的读。', en: 'The text has it block reads: in InnoDB a plain SELECT reads its snapshot and does not wait for FOR UPDATE; only a locking read does.' },
  },
  {
    term: { zh: '乐观锁', en: 'Optimistic lock' }, lesson: '1.7.3',
    is: { zh: '不加锁，写的时候核对版本号，变了就重来：写得少时合适，竞争越激烈，重试越多。', en: 'Takes no lock; the write checks the version and begins again if it has changed: right where writes are few; retries grow with contention.' },
  },
  {
    term: { zh: '独占锁（互斥锁、排他锁）', en: 'Exclusive lock (mutex)' }, lesson: '1.5',
    is: { zh: '同一时刻只有一个持有者，例如 synchronized 和 ReentrantLock。', en: 'Has one holder at a time, as synchronized and ReentrantLock.' },
  },
  {
    term: { zh: '共享锁', en: 'Shared lock' }, lesson: '2.10.6',
    is: { zh: '同一时刻可以有几个持有者，例如信号量的几个许可。', en: 'May have several holders at a time, as the permits of a semaphore.' },
  },
  {
    term: { zh: '可重入锁（递归锁）', en: 'Re-entrant lock' }, lesson: '2.10.1',
    is: { zh: '持有者可以再拿一次同一把锁，只是计数加一；解锁同样多次，才真正释放。', en: 'Its holder may take it again, which raises a count; it is free after as many releases.' },
  },
  {
    term: { zh: '不可重入锁', en: 'Non-re-entrant lock' }, lesson: '2.6',
    is: { zh: '持有者再拿一次，就会一直等自己释放，例如用 SETNX 写的锁。', en: 'Its holder, taking it again, waits for itself for ever, as with a lock of SETNX.' },
    errs: { zh: '原文举的例子是“早期的 synchronized”：它从一开始就是可重入的。', en: 'The text names “early synchronized”, which was re-entrant from the first.' },
  },
  {
    term: { zh: '公平锁', en: 'Fair lock' }, lesson: '2.10.2',
    is: { zh: '先来先得：等待者排成队列，谁先申请，谁先拿到。', en: 'First come, first served: those who wait stand in a queue.' },
  },
  {
    term: { zh: '非公平锁', en: 'Unfair lock' }, lesson: '004.unfair',
    is: { zh: '锁一空谁都可以抢，后来的可能先拿到。', en: 'Whoever tries at the right moment gets it, even the last to come.' },
  },
  {
    term: { zh: '自旋锁', en: 'Spin lock' }, lesson: '3.3.rate',
    is: { zh: '没拿到就反复再试，直到拿到为止：等得短时快，竞争激烈时白白占用 CPU 和服务器。', en: 'Tries again and again until it has the lock: fast for a short wait, a waste of processor and server under contention.' },
  },
  {
    term: { zh: '阻塞锁', en: 'Blocking lock' }, lesson: '5.kinds.blocking',
    is: { zh: '没拿到就停下，等释放的通知把它唤醒。', en: 'Stops where it does not get the lock, and is woken by its release.' },
  },
  {
    term: { zh: '读锁', en: 'Read lock' }, lesson: '2.10.5',
    is: { zh: '读写锁里共享的一半：读者之间不用等，有写者就要等。', en: 'The shared half of a read-write lock: readers wait for no reader, but for a writer.' },
  },
  {
    term: { zh: '写锁', en: 'Write lock' }, lesson: '2.10.5',
    is: { zh: '读写锁里独占的一半：有别的读者或写者就要等。', en: 'The exclusive half of a read-write lock: it waits for every other reader and writer.' },
  },
  {
    term: { zh: '偏向锁', en: 'Biased lock' }, lesson: '1.5',
    is: { zh: 'synchronized 的第一级：只有一个线程用过，再来就不用原子操作（JDK 15 起默认关闭，后来移除）。', en: 'The first stage of synchronized: one thread alone has used it, and needs no atomic operation (off since JDK 15, later removed).' },
  },
  {
    term: { zh: '轻量级锁', en: 'Lightweight lock' }, lesson: '1.5',
    is: { zh: 'synchronized 的第二级：有第二个线程，但不同时，用 CAS 抢，不阻塞。', en: 'The second stage of synchronized: a second thread, though not at the same time; it is taken by CAS, and nobody blocks.' },
  },
  {
    term: { zh: '重量级锁', en: 'Heavyweight lock' }, lesson: '1.5',
    is: { zh: 'synchronized 的第三级：真的同时来抢，自旋不成，就由操作系统让线程阻塞。', en: 'The third stage of synchronized: threads do contend, spinning has failed, and the operating system has them block.' },
  },
  {
    term: { zh: '表级锁', en: 'Table lock' }, lesson: '5.kinds.table',
    is: { zh: '锁住整张表：加锁快、开销小，但并发低。', en: 'Locks the whole table: cheap and quick to take, with little concurrency.' },
    errs: { zh: '原文说它“不会出现死锁”：LOCK TABLES 先放开已有的锁，所以不会；表上的元数据锁却会。', en: 'The text says that it never deadlocks: LOCK TABLES gives up what it has, so it does not; metadata locks, which are on tables, do.' },
  },
  {
    term: { zh: '行级锁', en: 'Row lock' }, lesson: '003.for-update.no-index',
    is: { zh: '只锁用到的行：并发高，但加锁慢、开销大，会死锁；没有索引时，锁住的是所有行。', en: 'Locks the rows in use alone: much concurrency; it costs more and can deadlock; without an index it is all rows.' },
  },
];
