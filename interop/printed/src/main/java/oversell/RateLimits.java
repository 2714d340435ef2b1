package oversell;

import com.google.common.util.concurrent.RateLimiter;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.BooleanSupplier;

/** The limiter of [003]. */
final class RateLimits {
    private RateLimits() {
    }

    /** {@code AccessLimitServiceImpl}. */
    static final class AccessLimit {
        private RateLimiter seckillRateLimiter = RateLimiter.create(10);

        public boolean tryAcquireSeckill() {
            return seckillRateLimiter.tryAcquire();
        }
    }

    /** The repaired twin: ten in any second. */
    static final class TenInAnySecond {
        private final Deque<Long> last = new ArrayDeque<>();

        boolean tryAcquireSeckill() {
            long now = System.nanoTime();
            while (!last.isEmpty() && now - last.peek() > 1_000_000_000L) {
                last.remove();
            }
            return last.size() < 10 && last.add(now);
        }
    }

    /** How many of those that come all the time, for so long, are let through. */
    static int through(BooleanSupplier limit, long millis) throws InterruptedException {
        int through = 0;
        for (long end = System.nanoTime() + millis * 1_000_000; System.nanoTime() < end; Thread.sleep(1)) {
            through += limit.getAsBoolean() ? 1 : 0;
        }
        return through;
    }
}
