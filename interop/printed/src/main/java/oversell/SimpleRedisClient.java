package oversell;

import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.data.redis.core.StringRedisTemplate;
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
}
