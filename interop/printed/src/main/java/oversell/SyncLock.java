package oversell;

import java.util.UUID;
import org.apache.commons.lang3.StringUtils;

/**
 * {@code SyncLock} of [004].
 *
 * <p>Differs from the print: no log, and no accessors that nobody calls.
 */
class SyncLock {
    private String key;
    private SimpleRedisClient simpleRedisClient;
    private long expire;
    private long safetyTime;
    private long waitMillisPer = 50L;

    public SyncLock(String key, SimpleRedisClient simpleRedisClient, Long expire, Long safetyTime) {
        this.key = key;
        this.simpleRedisClient = simpleRedisClient;
        this.expire = expire;
        if (safetyTime == null) {
            this.safetyTime = expire * 5;
        } else {
            this.safetyTime = safetyTime;
        }
    }

    public boolean lockNow() {
        String value = Thread.currentThread().getId() + "-" + Thread.currentThread().getName();
        boolean locked = simpleRedisClient.setNX(key, value, expire / 1000);
        return locked;
    }

    public boolean lock() throws InterruptedException {
        String value = Thread.currentThread().getId() + "-" + Thread.currentThread().getName();
        long waitMillisAlready = 0L;
        long maxWaitMillis = this.safetyTime;
        while (waitMillisAlready < maxWaitMillis) {
            boolean locked = simpleRedisClient.setNX(key, value, expire / 1000);
            if (locked) {
                return true;
            } else {
                Thread.sleep(waitMillisPer);
                waitMillisAlready += waitMillisPer;
            }
        }
        simpleRedisClient.set(key, value, expire / 1000);
        return true;
    }

    public void unLock() {
        String value = Thread.currentThread().getId() + "-" + Thread.currentThread().getName();
        String redisValue = simpleRedisClient.get(key);
        if (redisValue == null) {
            return;
        }
        if (StringUtils.equals(redisValue, value)) {
            simpleRedisClient.del(key);
        }
    }

    /** What the others need of it, since the print's fields are private. */
    private static class Open extends SyncLock {
        final String key;
        final SimpleRedisClient redis;
        final long expire;

        Open(String key, SimpleRedisClient redis, long expire) {
            super(key, redis, expire, null);
            this.key = key;
            this.redis = redis;
            this.expire = expire;
        }
    }

    /** As the text proposes: a ThreadLocal remembers the value of lock and unlock. */
    static class Remembered extends Open {
        private final ThreadLocal<String> value = ThreadLocal.withInitial(() -> UUID.randomUUID().toString());

        Remembered(String key, SimpleRedisClient redis, long expire) {
            super(key, redis, expire);
        }

        @Override
        public boolean lockNow() {
            return redis.setNX(key, value.get(), expire / 1000);
        }

        @Override
        public void unLock() {
            if (value.get().equals(redis.get(key))) {
                redis.del(key);
            }
            value.remove();
        }
    }

    /** The repaired twin: each asks for its own time, and only one of those who have waited enough is let in. */
    static class Mended extends Open {
        Mended(String key, SimpleRedisClient redis, long expire) {
            super(key, redis, expire);
        }

        @Override
        public boolean lock() throws InterruptedException {
            String value = Thread.currentThread().getId() + "-" + Thread.currentThread().getName();
            while (!lockNow()) {
                String before = redis.get(key);
                long end = System.nanoTime() + expire * 5 * 1_000_000;
                while (before != null && before.equals(redis.get(key)) && System.nanoTime() < end) {
                    Thread.sleep(50);
                }
                if (redis.replace(key, before, value, expire / 1000)) {
                    return true;
                }
            }
            return true;
        }
    }
}
