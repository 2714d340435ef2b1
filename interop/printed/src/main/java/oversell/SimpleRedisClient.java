package oversell;

import java.util.Collections;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;
import org.springframework.stereotype.Component;

/**
 * {@code SimpleRedisClient} of [004], which the text does not print: {@code setNX} with a time is one command here. The text's
 * words "SETNX and EXPIRE are two steps" may mean two; no verdict rests on it.
 */
@Component
class SimpleRedisClient {
    @Autowired
    private StringRedisTemplate redis;

    boolean setNX(String key, String value, long seconds) {
        return Boolean.TRUE.equals(redis.opsForValue().setIfAbsent(key, value, seconds, TimeUnit.SECONDS));
    }

    void set(String key, String value, long seconds) {
        redis.opsForValue().set(key, value, seconds, TimeUnit.SECONDS);
    }

    String get(String key) {
        return redis.opsForValue().get(key);
    }

    void del(String key) {
        redis.delete(key);
    }

    /** Of the repaired twin. */
    boolean replace(String key, String before, String value, long seconds) {
        String script = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                + "redis.call('set', KEYS[1], ARGV[2], 'EX', ARGV[3]) return 1 end return 0";
        Long done = before == null ? 0L : redis.execute(new DefaultRedisScript<>(script, Long.class),
                Collections.singletonList(key), before, value, String.valueOf(seconds));
        return Long.valueOf(1).equals(done);
    }
}
