package oversell;

import com.baomidou.mybatisplus.core.conditions.update.UpdateWrapper;
import java.util.Arrays;
import java.util.Date;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.commons.lang3.StringUtils;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** {@code StockService}, section by section; each is the service of its section alone. */
final class StockServices {
    private StockServices() {
    }

    /** What the stand calls. */
    interface StockService {
        void checkAndLock();
    }

    /** §1.3. */
    @Service("1.3")
    static class Simple implements StockService {
        @Autowired
        private StockMapper stockMapper;

        @Override
        public void checkAndLock() {
            Stock stock = this.stockMapper.selectById(1L);

            if (stock != null && stock.getCount() > 0) {
                stock.setCount(stock.getCount() - 1);
                this.stockMapper.updateById(stock);
            }
        }
    }

    /** §1.5.1: the text shows its code as a picture; {@code synchronized}, and the {@code ReentrantLock} that it names. */
    @Service("1.5.1")
    static class Synchronized extends Simple {
        @Override
        public synchronized void checkAndLock() {
            super.checkAndLock();
        }
    }

    @Service("1.5.1-reentrant")
    static class Reentrant extends Simple {
        private final ReentrantLock lock = new ReentrantLock();

        @Override
        public void checkAndLock() {
            lock.lock();
            try {
                super.checkAndLock();
            } finally {
                lock.unlock();
            }
        }
    }

    /** §1.7.2: the text shows the service as a picture; the mapper's statement is printed. */
    @Service("1.7.2")
    static class ForUpdate implements StockService {
        @Autowired
        private StockMapper stockMapper;

        @Override
        @Transactional
        public void checkAndLock() {
            Stock stock = this.stockMapper.selectStockForUpdate(1L);

            if (stock != null && stock.getCount() > 0) {
                stock.setCount(stock.getCount() - 1);
                this.stockMapper.updateById(stock);
            }
        }
    }

    /** §1.7.3. */
    @Service("1.7.3")
    static class Versioned implements StockService {
        @Autowired
        private StockMapper stockMapper;

        @Override
        public void checkAndLock() {
            Stock stock = this.stockMapper.selectById(1L);

            if (stock != null && stock.getCount() > 0) {
                Long version = stock.getVersion();

                stock.setCount(stock.getCount() - 1);
                stock.setVersion(stock.getVersion() + 1);
                if (this.stockMapper.update(stock,
                        new UpdateWrapper<Stock>().eq("id", stock.getId()).eq("version", version)) == 0) {
                    checkAndLock();
                }
            }
        }
    }

    /** §1.8. Differs from the print: the key of the stock is given. */
    @Service("1.8")
    static class Watching implements StockService {
        @Autowired
        private StringRedisTemplate redisTemplate;

        @Autowired
        private Stand stand;

        @Override
        public void checkAndLock() {
            String key = stand.stockKey();
            this.redisTemplate.execute(new SessionCallback<Object>() {
                @Override
                @SuppressWarnings("unchecked")
                public Object execute(RedisOperations operations) throws DataAccessException {
                    operations.watch(key);
                    Object stock = operations.opsForValue().get(key);
                    int st = 0;
                    if (stock != null && (st = Integer.parseInt(stock.toString())) > 0) {
                        operations.multi();
                        operations.opsForValue().set(key, String.valueOf(--st));
                        List<?> exec = operations.exec();
                        if (exec == null || exec.size() == 0) {
                            try {
                                Thread.sleep(50);
                            } catch (InterruptedException e) {
                                e.printStackTrace();
                            }
                            checkAndLock();
                        }
                        return exec;
                    }
                    return null;
                }
            });
        }
    }

    /** What §2.1 to §2.7 do under their locks. Differs from the print: the keys of the stock and of the lock are given. */
    abstract static class InRedis implements StockService {
        @Autowired
        protected StringRedisTemplate redisTemplate;

        @Autowired
        protected Stand stand;

        final void deduct() {
            String stock = redisTemplate.opsForValue().get(stand.stockKey()).toString();

            if (stock != null && stock.length() != 0) {
                Integer st = Integer.valueOf(stock);
                if (st > 0) {
                    redisTemplate.opsForValue().set(stand.stockKey(), String.valueOf(--st));
                }
            }
        }
    }

    /** §2.1. */
    @Service("2.1")
    static class UnderSetnx extends InRedis {
        @Override
        public void checkAndLock() {
            Boolean lock = this.redisTemplate.opsForValue().setIfAbsent(stand.lockKey(), "111");
            if (!lock) {
                try {
                    Thread.sleep(50);
                    this.checkAndLock();
                } catch (InterruptedException e) {
                    e.printStackTrace();
                }
            } else {
                try {
                    deduct();
                } finally {
                    this.redisTemplate.delete(stand.lockKey());
                }
            }
        }
    }

    /** §2.2: the text shows its code as a picture, and names the command, {@code set key value ex 3 nx}. */
    @Service("2.2")
    static class UnderSetnxFor3Seconds extends InRedis {
        @Override
        public void checkAndLock() {
            while (!this.redisTemplate.opsForValue().setIfAbsent(stand.lockKey(), "111", 3, TimeUnit.SECONDS)) {
                pause();
            }
            try {
                deduct();
            } finally {
                this.redisTemplate.delete(stand.lockKey());
            }
        }
    }

    /** §2.3: a picture, too; the prose says that the value is compared before the key is deleted. */
    @Service("2.3")
    static class UnderOwnKey extends InRedis {
        @Override
        public void checkAndLock() {
            String uuid = UUID.randomUUID().toString();
            while (!this.redisTemplate.opsForValue().setIfAbsent(stand.lockKey(), uuid, 3, TimeUnit.SECONDS)) {
                pause();
            }
            try {
                deduct();
            } finally {
                if (StringUtils.equals(this.redisTemplate.opsForValue().get(stand.lockKey()), uuid)) {
                    this.redisTemplate.delete(stand.lockKey());
                }
            }
        }
    }

    /** §2.5. */
    @Service("2.5")
    static class UnderScript extends InRedis {
        @Override
        public void checkAndLock() {
            String uuid = UUID.randomUUID().toString();
            while (!this.redisTemplate.opsForValue().setIfAbsent(stand.lockKey(), uuid, 3, TimeUnit.SECONDS)) {
                pause();
            }
            try {
                deduct();
            } finally {
                String script = "if redis.call('get', KEYS[1]) == ARGV[1] "
                        + "then "
                        + "   return redis.call('del', KEYS[1]) "
                        + "else "
                        + "   return 0 "
                        + "end";
                this.redisTemplate.execute(
                        new DefaultRedisScript<>(script, Boolean.class), Arrays.asList(stand.lockKey()), uuid);
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(50);
        } catch (InterruptedException e) {
            e.printStackTrace();
        }
    }

    /** §2.6.4. */
    @Service("2.6")
    static class UnderReentrantLock extends InRedis {
        @Override
        public void checkAndLock() {
            under(new RedisReentrantLock(redisTemplate, stand.lockKey(), Peer.ID));
        }

        final void under(java.util.concurrent.locks.Lock redisLock) {
            redisLock.lock();

            try {
                deduct();
            } finally {
                redisLock.unlock();
            }
        }
    }

    /** The service of §2.6.4 with the lock of §2.7. */
    @Service("2.7")
    static class UnderWatchdogLock extends UnderReentrantLock {
        @Override
        public void checkAndLock() {
            under(new RedisWatchdogLock(redisTemplate, stand.lockKey(), Peer.ID));
        }
    }

    /** §2.10.1: no {@code finally}. Differs from the print: the name of the lock is given. */
    @Service("2.10.1")
    static class UnderRLock extends Simple {
        @Autowired
        private RedissonClient redissonClient;

        @Autowired
        private Stand stand;

        @Override
        public void checkAndLock() {
            RLock lock = this.redissonClient.getLock(stand.lockKey());
            lock.lock();
            super.checkAndLock();
            lock.unlock();
        }
    }

    /** §3.3: no {@code finally}. */
    @Service("3.3")
    static class UnderSpinLock implements StockService {
        @Autowired
        private StockMapper stockMapper;

        @Autowired
        private ZkClient client;

        @Override
        public void checkAndLock() {
            ZkSpinLock lock = this.client.spinLock("lock");
            lock.lock();

            Stock stock = this.stockMapper.selectById(1L);
            if (stock != null && stock.getCount() > 0) {
                stock.setCount(stock.getCount() - 1);
                this.stockMapper.updateById(stock);
            }

            lock.unlock();
        }
    }

    /** The repaired twin of §3.3. */
    @Service("3.3-mended")
    static class UnderSpinLockMended extends Simple {
        @Autowired
        private ZkClient client;

        @Override
        public void checkAndLock() {
            ZkSpinLock lock = this.client.spinLock("lock");
            lock.lock();
            try {
                super.checkAndLock();
            } finally {
                lock.unlock();
            }
        }
    }

    /** The service of §3.3 with the lock of §3.4.1. */
    @Service("3.4.1")
    static class UnderSequentialLock extends Simple {
        @Autowired
        private ZkClient client;

        @Override
        public void checkAndLock() {
            ZkSequentialLock lock = this.client.sequentialLock("lock");
            lock.lock();
            super.checkAndLock();
            lock.unlock();
        }
    }

    /** The service of §3.3 with the lock of §3.4.2. */
    @Service("3.4.2")
    static class UnderWatchLock extends Simple {
        @Autowired
        private ZkClient client;

        @Override
        public void checkAndLock() {
            ZkWatchLock lock = this.client.watchLock("lock");
            lock.lock();
            super.checkAndLock();
            lock.unlock();
        }
    }

    /** The service of §3.3 with the lock of §3.5. */
    @Service("3.5")
    static class UnderCountedNode extends Simple {
        @Autowired
        private ZkClient client;

        @Override
        public void checkAndLock() {
            ZkReentrantLock lock = this.client.reentrantLock("lock");
            lock.lock();
            super.checkAndLock();
            lock.unlock();
        }
    }

    /** §3.7.1.1: an error leaves the lock, since the release stands in the {@code try}. */
    @Service("3.7.1")
    static class UnderMutex extends Simple {
        @Autowired
        private CuratorFramework curatorFramework;

        @Override
        public void checkAndLock() {
            InterProcessMutex mutex = new InterProcessMutex(curatorFramework, "/curator/lock");
            try {
                mutex.acquire();
                super.checkAndLock();
                mutex.release();
            } catch (Exception e) {
                e.printStackTrace();
            }
        }
    }

    /** §3.7.2. */
    @Service("3.7.2")
    static class UnderSemaphoreMutex extends InRedis {
        @Autowired
        private CuratorFramework curatorFramework;

        @Override
        public void checkAndLock() {
            InterProcessSemaphoreMutex mutex = new InterProcessSemaphoreMutex(curatorFramework, "/curator/lock");
            try {
                mutex.acquire();
                deduct();
            } catch (Exception e) {
                e.printStackTrace();
            } finally {
                try {
                    mutex.release();
                } catch (Exception e) {
                    e.printStackTrace();
                }
            }
        }
    }

    /** §4.2: no {@code return} in the {@code catch}, and no {@code finally}. */
    @Service("4.2")
    static class UnderRow implements StockService {
        @Autowired
        private StockMapper stockMapper;

        @Autowired
        private LockMapper lockMapper;

        @Override
        public void checkAndLock() {
            Lock lock = new Lock(null, "lock", this.getClass().getName(), new Date(), null);
            try {
                this.lockMapper.insert(lock);
            } catch (Exception ex) {
                try {
                    Thread.sleep(50);
                    this.checkAndLock();
                } catch (InterruptedException e) {
                    e.printStackTrace();
                }
            }

            Stock stock = this.stockMapper.selectById(1L);

            if (stock != null && stock.getCount() > 0) {
                stock.setCount(stock.getCount() - 1);
                this.stockMapper.updateById(stock);
            }

            this.lockMapper.deleteById(lock.getId());
        }
    }

    /** The repaired twin of §4.2: the retry is a loop, and the row goes in a {@code finally}. */
    @Service("4.2-mended")
    static class UnderRowMended extends Simple {
        @Autowired
        private LockMapper lockMapper;

        @Override
        public void checkAndLock() {
            Lock lock = new Lock(null, "lock", this.getClass().getName(), new Date(), null);
            while (!isInserted(lock)) {
                try {
                    Thread.sleep(50);
                } catch (InterruptedException stopped) {
                    throw new IllegalStateException(stopped);
                }
            }
            try {
                super.checkAndLock();
            } finally {
                this.lockMapper.deleteById(lock.getId());
            }
        }

        private boolean isInserted(Lock lock) {
            try {
                return this.lockMapper.insert(lock) == 1;
            } catch (org.springframework.dao.DuplicateKeyException taken) {
                return false;
            }
        }
    }
}
