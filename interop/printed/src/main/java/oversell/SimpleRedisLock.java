package oversell;

import java.util.Collections;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.springframework.core.io.ClassPathResource;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;

/** {@code SimpleRedisLock} of [002] in its three versions: the id is a thread's, a UUID is added, the unlock is a script. */
class SimpleRedisLock {
    static final String KEY_PREFIX = "lock:";

    protected String name;
    protected StringRedisTemplate stringRedisTemplate;

    public SimpleRedisLock(String name, StringRedisTemplate stringRedisTemplate) {
        this.name = name;
        this.stringRedisTemplate = stringRedisTemplate;
    }

    public boolean tryLock(long timeoutSec) {
        long threadId = Thread.currentThread().getId();
        Boolean success = stringRedisTemplate.opsForValue()
                .setIfAbsent(KEY_PREFIX + name, threadId + "", timeoutSec, TimeUnit.SECONDS);
        return Boolean.TRUE.equals(success);
    }

    public void unlock() {
        stringRedisTemplate.delete(KEY_PREFIX + name);
    }

    /** With a UUID, which is compared before the key is deleted. */
    static class Comparing extends SimpleRedisLock {
        /** The text takes Hutool's {@code toString(true)}: a UUID without dashes. */
        static final String ID_PREFIX = UUID.randomUUID().toString().replace("-", "") + "-";

        Comparing(String name, StringRedisTemplate stringRedisTemplate) {
            super(name, stringRedisTemplate);
        }

        @Override
        public boolean tryLock(long timeoutSec) {
            String threadId = ID_PREFIX + Thread.currentThread().getId();
            Boolean success = stringRedisTemplate.opsForValue()
                    .setIfAbsent(KEY_PREFIX + name, threadId, timeoutSec, TimeUnit.SECONDS);
            return Boolean.TRUE.equals(success);
        }

        @Override
        public void unlock() {
            String threadId = ID_PREFIX + Thread.currentThread().getId();
            String id = stringRedisTemplate.opsForValue().get(KEY_PREFIX + name);
            if (threadId.equals(id)) {
                stringRedisTemplate.delete(KEY_PREFIX + name);
            }
        }
    }

    /** With {@code unlock.lua}. */
    static class Scripted extends Comparing {
        private static final DefaultRedisScript<Long> UNLOCK_SCRIPT;

        static {
            UNLOCK_SCRIPT = new DefaultRedisScript<>();
            UNLOCK_SCRIPT.setLocation(new ClassPathResource("unlock.lua"));
            UNLOCK_SCRIPT.setResultType(Long.class);
        }

        Scripted(String name, StringRedisTemplate stringRedisTemplate) {
            super(name, stringRedisTemplate);
        }

        @Override
        public void unlock() {
            stringRedisTemplate.execute(UNLOCK_SCRIPT, Collections.singletonList(KEY_PREFIX + name),
                    ID_PREFIX + Thread.currentThread().getId());
        }
    }
}
