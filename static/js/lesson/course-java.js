/** What the course's Java is called that does the same as a strategy, in our own words: its classes and methods, to be found in its text. */

/** @typedef {import('./course.js').Title} Title */

/** By strategy. @type {Record<string, Title>} */
const JAVA = {
  none: { zh: 'StockService.checkAndLock：StockMapper 的 selectById，减一，再 updateById；中间没有锁。', en: 'StockService.checkAndLock: selectById of StockMapper, one less, updateById; nothing locks in between.' },
  mutex: { zh: 'StockService 的方法加上 synchronized，或者用一个 ReentrantLock。', en: 'The method of StockService is synchronized, or takes a ReentrantLock.' },
  'select-for-update': { zh: 'StockMapper 多一个方法 selectStockForUpdate，SQL 以 for update 结尾，写在 StockMapper.xml 里。', en: 'StockMapper has a method selectStockForUpdate, whose SQL in StockMapper.xml ends with for update.' },
  'version-cas': { zh: 'StockMapper.update 带一个 UpdateWrapper，比较 id 和 version；改了 0 行就递归调用自己，再来一次。', en: 'StockMapper.update with an UpdateWrapper that compares id and version; of 0 changed rows the method calls itself again.' },
  'redis-watch': { zh: 'StringRedisTemplate.execute 一个 SessionCallback，里面依次 watch、multi、exec；exec 是空的就睡一会儿再递归。', en: 'StringRedisTemplate.execute of a SessionCallback: watch, multi, exec; of an empty exec it sleeps and calls itself again.' },
  'redis-setnx': { zh: 'opsForValue().setIfAbsent 抢锁，抢不到就睡一会儿再试；finally 里 delete。', en: 'opsForValue().setIfAbsent takes the lock, with a sleep between tries; delete stands in finally.' },
  'redis-setnx-ttl': { zh: '同一个 setIfAbsent，多带两个参数：时间和 TimeUnit，一条命令带上租约。', en: 'The same setIfAbsent with two more arguments, a time and a TimeUnit: the lease comes in one command.' },
  'redis-setnx-owner': { zh: '锁的值是 UUID.randomUUID()；delete 之前先 get 出来比一比。', en: 'The value is a UUID.randomUUID(), and is got and compared before delete.' },
  'redis-setnx-lua': { zh: '比较和删除写成一段 Lua，用 DefaultRedisScript 交给 StringRedisTemplate.execute。', en: 'Comparison and deletion are one Lua script, a DefaultRedisScript that StringRedisTemplate.execute sends.' },
  'redis-reentrant': { zh: 'DistributedRedisLock 实现 java.util.concurrent.locks.Lock，由 DistributedLockClient 造出来；tryLock 和 unlock 各发一段 Lua。', en: 'DistributedRedisLock implements java.util.concurrent.locks.Lock, and DistributedLockClient makes it; tryLock and unlock send a Lua script each.' },
  'redis-watchdog': { zh: 'DistributedRedisLock 多一个方法 renewExpire：Timer 每隔三分之一租约续一次，续成了再定下一次。', en: 'DistributedRedisLock has renewExpire: a Timer renews after a third of the lease, and sets the next one if it could.' },
  'redis-lock': { zh: 'Redisson：RedissonClient.getLock 得到一个 RLock，然后 lock 和 unlock。', en: 'Redisson: RedissonClient.getLock gives an RLock, with lock and unlock.' },
  'redis-fair': { zh: 'Redisson：RedissonClient.getFairLock。', en: 'Redisson: RedissonClient.getFairLock.' },
  'redis-redlock': { zh: 'Redisson：几个节点各一个 RLock，合成一个 RedissonRedLock。', en: 'Redisson: an RLock of each node, together a RedissonRedLock.' },
  'zk-ephemeral': { zh: 'ZkDistributedLock：ZooKeeper.create 一个临时节点就是锁，失败了睡一会儿再 create。', en: 'ZkDistributedLock: ZooKeeper.create of an ephemeral node is the lock; it sleeps and creates again after a failure.' },
  'zk-sequential': { zh: 'ZkDistributedLock：create 一个临时顺序节点，getChildren 看自己是不是最小的，不是就用 exists 监听前一个。', en: 'ZkDistributedLock: create makes an ephemeral sequential node, getChildren says whether it is the least, exists watches the one before.' },
  'zk-mutex': { zh: 'Curator：InterProcessMutex 的 acquire 和 release。', en: 'Curator: acquire and release of InterProcessMutex.' },
  'zk-semaphore-mutex': { zh: 'Curator：InterProcessSemaphoreMutex，不可重入。', en: 'Curator: InterProcessSemaphoreMutex, which is not re-entrant.' },
  'table-lock': { zh: 'LockMapper.insert 一行，唯一索引让第二个人失败；用完 deleteById。', en: 'LockMapper.insert of a row, of which a unique index allows one; deleteById afterwards.' },
};

/** @param {string} slug @returns {Title | null} */
export const javaOf = (slug) => JAVA[slug] ?? null;
