package oversell;

import java.util.Collections;
import java.util.Timer;
import java.util.TimerTask;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;

/**
 * The repaired twin of {@link RedisReentrantLock} and {@link RedisWatchdogLock}: the time to wait is no lease, an interrupt is
 * no lock, each hold has an id of its own, and its timer ends with it.
 */
class RedisMendedLock {
    private static final int LEASE_S = 30;

    private final StringRedisTemplate redisTemplate;
    private final String lockName;
    private final String id = UUID.randomUUID().toString();
    private final Timer timer = new Timer(true);

    RedisMendedLock(StringRedisTemplate redisTemplate, String lockName) {
        this.redisTemplate = redisTemplate;
        this.lockName = lockName;
    }

    void lock() throws InterruptedException {
        while (!tryLock(1, TimeUnit.DAYS)) {
            // A day is over.
        }
    }

    boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        return take(System.nanoTime() + unit.toNanos(time), LEASE_S);
    }

    boolean lease(long lease, TimeUnit unit) throws InterruptedException {
        return take(System.nanoTime() + TimeUnit.DAYS.toNanos(1), unit.toSeconds(lease));
    }

    private boolean take(long end, long lease) throws InterruptedException {
        while (!redisTemplate.opsForValue().setIfAbsent(lockName, id, lease, TimeUnit.SECONDS)) {
            if (System.nanoTime() >= end) {
                return false;
            }
            Thread.sleep(50);
        }
        timer.schedule(new TimerTask() {
            @Override
            public void run() {
                ifOwn("return redis.call('expire', KEYS[1], " + lease + ")");
            }
        }, lease * 1000 / 3, lease * 1000 / 3);
        return true;
    }

    /** An ended lease is no failure of the work that is done. */
    void unlock() {
        timer.cancel();
        ifOwn("return redis.call('del', KEYS[1])");
    }

    private void ifOwn(String then) {
        String script = "if redis.call('get', KEYS[1]) == ARGV[1] then " + then + " end return 0";
        redisTemplate.execute(new DefaultRedisScript<>(script, Long.class), Collections.singletonList(lockName), id);
    }
}
