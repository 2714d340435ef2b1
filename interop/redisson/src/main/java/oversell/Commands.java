package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * What a thread of the peer can be told, on the objects of one Redisson client. A lock's KIND is {@code lock},
 * {@code fair}, {@code read} or {@code write}; times are milliseconds.
 *
 * <pre>
 * owner                        as Redisson writes it: client uuid, colon, thread id
 * lock KIND NAME [LEASE]       waits; without a lease the watchdog renews it
 * try KIND NAME WAIT [LEASE]   true, false
 * unlock KIND NAME
 * holds|locked|held|ttl KIND NAME
 * permits NAME N               trySetPermits: true, false
 * acquire NAME N               waits
 * tryacquire NAME N WAIT       true, false
 * release NAME N
 * available NAME
 * count NAME N                 trySetCount: true, false
 * down NAME
 * await NAME WAIT              true, false
 * left NAME                    getCount
 * sections KIND NAME N         N times: take it, read NAME:counter, write one more, free it; KIND may be semaphore.
 *                              The answer is the most that were inside at once, as seen here on NAME:inside
 * turns KIND NAME N            takes it, counts one on NAME:counter, frees it, until N have been counted by whomever.
 *                              The answer is how many of them were its own
 * </pre>
 */
final class Commands {
    private final RedissonClient redisson;

    Commands(RedissonClient redisson) {
        this.redisson = redisson;
    }

    Object run(String[] words) throws InterruptedException {
        switch (words[0]) {
            case "owner":
                return redisson.getId() + ":" + Thread.currentThread().getId();
            case "permits":
                return redisson.getSemaphore(words[1]).trySetPermits(Integer.parseInt(words[2]));
            case "acquire":
                redisson.getSemaphore(words[1]).acquire(Integer.parseInt(words[2]));
                return "acquired";
            case "tryacquire":
                return redisson.getSemaphore(words[1])
                        .tryAcquire(Integer.parseInt(words[2]), Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                redisson.getSemaphore(words[1]).release(Integer.parseInt(words[2]));
                return "released";
            case "available":
                return redisson.getSemaphore(words[1]).availablePermits();
            case "count":
                return redisson.getCountDownLatch(words[1]).trySetCount(Long.parseLong(words[2]));
            case "down":
                redisson.getCountDownLatch(words[1]).countDown();
                return "down";
            case "await":
                return redisson.getCountDownLatch(words[1]).await(Long.parseLong(words[2]), MILLISECONDS);
            case "left":
                return redisson.getCountDownLatch(words[1]).getCount();
            case "sections":
                return sections(words[1], words[2], Integer.parseInt(words[3]));
            case "turns":
                return turns(lock(words[1], words[2]), words[2], Long.parseLong(words[3]));
            default:
                return onLock(words[0], lock(words[1], words[2]), words);
        }
    }

    private Object onLock(String command, RLock lock, String[] words) throws InterruptedException {
        switch (command) {
            case "lock":
                lock.lock(words.length > 3 ? Long.parseLong(words[3]) : -1, MILLISECONDS);
                return "locked";
            case "try":
                long lease = words.length > 4 ? Long.parseLong(words[4]) : -1;
                return lock.tryLock(Long.parseLong(words[3]), lease, MILLISECONDS);
            case "unlock":
                lock.unlock();
                return "unlocked";
            case "holds":
                return lock.getHoldCount();
            case "locked":
                return lock.isLocked();
            case "held":
                return lock.isHeldByCurrentThread();
            case "ttl":
                return lock.remainTimeToLive();
            default:
                throw new IllegalArgumentException("no such command: " + command);
        }
    }

    private RLock lock(String kind, String name) {
        switch (kind) {
            case "lock":
                return redisson.getLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            default:
                throw new IllegalArgumentException("no such kind of lock: " + kind);
        }
    }

    private long turns(RLock lock, String name, long all) {
        RAtomicLong counter = redisson.getAtomicLong(name + ":counter");
        for (long own = 0; ; own++) {
            lock.lock();
            long counted = counter.incrementAndGet();
            lock.unlock();
            if (counted > all) {
                return own;
            }
        }
    }

    private long sections(String kind, String name, int times) throws InterruptedException {
        RBucket<String> counter = redisson.getBucket(name + ":counter", StringCodec.INSTANCE);
        RAtomicLong inside = redisson.getAtomicLong(name + ":inside");
        RSemaphore semaphore = kind.equals("semaphore") ? redisson.getSemaphore(name) : null;
        RLock lock = semaphore == null ? lock(kind, name) : null;
        long most = 0;
        for (int i = 0; i < times; i++) {
            if (semaphore == null) {
                lock.lock();
            } else {
                semaphore.acquire();
            }
            most = Math.max(most, inside.incrementAndGet());
            String before = counter.get();
            counter.set(String.valueOf(before == null ? 1 : Long.parseLong(before) + 1));
            inside.decrementAndGet();
            if (semaphore == null) {
                lock.unlock();
            } else {
                semaphore.release();
            }
        }
        return most;
    }
}
