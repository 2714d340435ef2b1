package oversell;

import com.baomidou.mybatisplus.core.conditions.update.UpdateWrapper;
import java.util.Date;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.dao.DataAccessException;
import org.springframework.data.redis.core.RedisOperations;
import org.springframework.data.redis.core.SessionCallback;
import org.springframework.data.redis.core.StringRedisTemplate;
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
