package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedCountListener;
import org.apache.curator.framework.recipes.shared.SharedCountReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;

/**
 * What a thread of the peer can be told about shared numbers. A SharedCount is 0 at first, and listened to from when it
 * is first named.
 *
 * <pre>
 * count get PATH                 as its watch has told it last
 * count heard PATH WAIT          the next that its listener was told, or nothing
 * count set PATH N
 * count see PATH                 the number; this version is what tryset asks for
 * count tryset PATH N            true, false
 * count behind PATH TIMES        another client sets it, and it is read here at once, so often: how many reads were older
 * atomic get PATH                SUCCEEDED BEFORE AFTER, here and below
 * atomic increment|decrement PATH
 * atomic add|subtract|try-set|force-set PATH N
 * atomic cas PATH EXPECTED NEW
 * atomic adds PATH TIMES         increments until so many were made; the answer is how many were not
 * atomic add-int PATH N          of a DistributedAtomicInteger
 * atomic promoted PATH TIMES     the same; the answer is how many were made under the mutex
 * </pre>
 */
final class Numbers {
    private static final int OPTIMISTIC_TRIES = 3;
    private static final int FIRST_PAUSE_MS = 2;
    private static final int PATIENCE_MS = 20_000;

    private final CuratorFramework curator;
    private final Map<String, Count> counts = new ConcurrentHashMap<>();

    private static final class Count implements SharedCountListener {
        private final SharedCount shared;
        private final BlockingQueue<Integer> heard = new LinkedBlockingQueue<>();
        private volatile VersionedValue<Integer> seen;

        private Count(CuratorFramework curator, String path) {
            shared = new SharedCount(curator, path, 0);
            shared.addListener(this);
            try {
                shared.start();
            } catch (Exception failure) {
                throw new IllegalStateException(failure);
            }
        }

        @Override
        public void countHasChanged(SharedCountReader reader, int count) {
            heard.add(count);
        }

        @Override
        public void stateChanged(CuratorFramework curator, ConnectionState state) {
            // The number does not depend on the session.
        }
    }

    Numbers(CuratorFramework curator) {
        this.curator = curator;
    }

    Object run(String[] words) throws Exception {
        return words[0].equals("count") ? count(words) : atomic(words);
    }

    private Object count(String[] words) throws Exception {
        Count count = counts.computeIfAbsent(words[2], path -> new Count(curator, path));
        switch (words[1]) {
            case "get":
                return count.shared.getCount();
            case "heard":
                Integer next = count.heard.poll(Long.parseLong(words[3]), MILLISECONDS);
                return next == null ? "nothing" : next;
            case "set":
                count.shared.setCount(Integer.parseInt(words[3]));
                return "set";
            case "see":
                count.seen = count.shared.getVersionedValue();
                return count.seen.getValue();
            case "tryset":
                return count.shared.trySetCount(count.seen, Integer.parseInt(words[3]));
            case "behind":
                return behind(count.shared, words[2], Integer.parseInt(words[3]));
            default:
                throw new IllegalArgumentException("a count has no " + words[1]);
        }
    }

    private int behind(SharedCount here, String path, int times) throws Exception {
        int older = 0;
        String server = curator.getZookeeperClient().getCurrentConnectionString();
        try (CuratorFramework other = CuratorFrameworkFactory.newClient(server, new RetryNTimes(OPTIMISTIC_TRIES, FIRST_PAUSE_MS));
                SharedCount there = new SharedCount(other, path, 0)) {
            other.start();
            there.start();
            for (int n = 1; n <= times; n++) {
                there.setCount(n);
                older += here.getCount() < n ? 1 : 0;
                while (here.getCount() < n) {
                    Thread.sleep(1);
                }
            }
        }
        return older;
    }

    private Object atomic(String[] words) throws Exception {
        DistributedAtomicLong atomic = atomic(words[2]);
        switch (words[1]) {
            case "get":
                return outcome(atomic.get());
            case "increment":
                return outcome(atomic.increment());
            case "decrement":
                return outcome(atomic.decrement());
            case "add":
                return outcome(atomic.add(Long.parseLong(words[3])));
            case "add-int":
                return outcome(new DistributedAtomicInteger(
                        curator, words[2], new ExponentialBackoffRetry(FIRST_PAUSE_MS, OPTIMISTIC_TRIES)).add(Integer.parseInt(words[3])));
            case "subtract":
                return outcome(atomic.subtract(Long.parseLong(words[3])));
            case "try-set":
                return outcome(atomic.trySet(Long.parseLong(words[3])));
            case "force-set":
                atomic.forceSet(Long.parseLong(words[3]));
                return outcome(atomic.get());
            case "cas":
                return outcome(atomic.compareAndSet(Long.parseLong(words[3]), Long.parseLong(words[4])));
            case "adds":
                int refused = 0;
                for (int left = Integer.parseInt(words[3]); left > 0; ) {
                    if (atomic.increment().succeeded()) {
                        left--;
                    } else {
                        refused++;
                    }
                }
                return refused;
            case "promoted":
                int promoted = 0;
                for (int left = Integer.parseInt(words[3]); left > 0; ) {
                    AtomicValue<Long> made = atomic.increment();
                    if (made.succeeded()) {
                        left--;
                        promoted += made.getStats().getPromotedLockTries() > 0 ? 1 : 0;
                    }
                }
                return promoted;
            default:
                throw new IllegalArgumentException("an atomic long has no " + words[1]);
        }
    }

    private DistributedAtomicLong atomic(String path) {
        PromotedToLock mutex = PromotedToLock.builder()
                .lockPath(path + "-lock")
                .retryPolicy(new RetryNTimes(OPTIMISTIC_TRIES, FIRST_PAUSE_MS))
                .timeout(PATIENCE_MS, MILLISECONDS)
                .build();
        return new DistributedAtomicLong(
                curator, path, new ExponentialBackoffRetry(FIRST_PAUSE_MS, OPTIMISTIC_TRIES), mutex);
    }

    private static String outcome(AtomicValue<?> value) {
        return value.succeeded() + " " + value.preValue() + " " + value.postValue();
    }
}
