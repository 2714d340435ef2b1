package oversell;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.annotation.Resource;
import org.springframework.stereotype.Component;

/** {@code SyncLockFactory} of [004]: one object for each key, with the time of whoever asks first. */
@Component
class SyncLockFactory {
    @Resource
    private SimpleRedisClient simpleRedisClient;

    private Map<String, SyncLock> syncLockMap = new ConcurrentHashMap<>();

    public synchronized SyncLock build(String key, long expire, Long safetyTime) {
        if (!syncLockMap.containsKey(key)) {
            syncLockMap.put(key, new SyncLock(key, simpleRedisClient, expire, safetyTime));
        }
        return syncLockMap.get(key);
    }
}
