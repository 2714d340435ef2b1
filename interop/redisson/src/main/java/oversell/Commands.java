package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.redisson.api.RAtomicLong;
import org.redisson.api.RBucket;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;

/**
 * What a thread of the peer can be told, on the objects of one Redisson client. KIND is {@code lock}, {@code fair},
 * {@code read}, {@code write}, {@code multi/N} and {@code red/N} (on N nodes), {@code permits/ALL/N} (N permits of a semaphore's),
 * {@code latch/N}, or {@code permits/ALL/1/LEASE} of a semaphore whose permits come back; times are milliseconds.
 *
 * <pre>
 * owner                        as Redisson writes it: client uuid, colon, thread id
 * ping                         a round trip to the server
 * acquire KIND NAME [LEASE]    waits; without a lease the watchdog renews a lock
 * try KIND NAME [WAIT [LEASE]] true, false; without a wait at once
 * release KIND NAME            of a latch: countDown
 * set KIND NAME                trySetPermits(ALL), trySetCount(N): true, false
 * number KIND NAME             availablePermits, getCount, or of a lock getHoldCount
 * locked|held|ttl KIND NAME    of a lock
 * sections KIND NAME N         N times: take it, read NAME:counter, write one more, free it.
 *                              The answer is the most that were inside at once, as seen here on NAME:inside
 * percent KIND OTHER NAME MS   how often KIND is taken and freed, in percent of OTHER, half of the time each
 * turns KIND NAME N            takes it, counts one on NAME:counter, frees it, until N have been counted by whomever.
 *                              The answer is how many of them were its own
 * </pre>
 */
final class Commands implements Lines.Commands {
    private final String[] nodes;
    private final RedissonClient redisson;
    /** Of the other nodes, made when they are first needed. */
    private final Map<String, RedissonClient> others = new HashMap<>();
    /** The permits with a lease that each thread has. */
    private final ThreadLocal<Deque<String>> leased = ThreadLocal.withInitial(ArrayDeque::new);

    Commands(String[] nodes) {
        this.nodes = nodes;
        redisson = Peer.client(nodes[0]);
    }

    @Override
    public Object run(String[] words) throws InterruptedException {
        if (words[0].equals("owner")) {
            return owner();
        }
        if (words[0].equals("ping")) {
            return redisson.getBucket("ping").isExists();
        }
        if (words[0].equals("percent")) {
            return percent(lock(words[1], words[3]), lock(words[2], words[3] + "-other"), Long.parseLong(words[4]));
        }
        String name = words[2];
        String[] kind = words[1].split("/");
        switch (kind[0]) {
            case "permits":
                if (kind.length > 3) {
                    RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore(name);
                    return onLeased(words, semaphore, Integer.parseInt(kind[1]), Long.parseLong(kind[3]));
                }
                int number = Integer.parseInt(kind[2]);
                return onSemaphore(words, redisson.getSemaphore(name), Integer.parseInt(kind[1]), number);
            case "latch":
                return onLatch(words, redisson.getCountDownLatch(name), Long.parseLong(kind[1]));
            default:
                return onLock(words, lock(words[1], name));
        }
    }

    private Object onSemaphore(String[] words, RSemaphore semaphore, int all, int number) throws InterruptedException {
        switch (words[0]) {
            case "acquire":
                semaphore.acquire(number);
                return "acquired";
            case "try":
                return semaphore.tryAcquire(number, Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                semaphore.release(number);
                return "released";
            case "set":
                return semaphore.trySetPermits(all);
            case "number":
                return semaphore.availablePermits();
            case "sections":
                return sections(words[2], Integer.parseInt(words[3]), semaphore::acquire, semaphore::release);
            default:
                throw new IllegalArgumentException("a semaphore has no " + words[0]);
        }
    }

    private Object onLeased(String[] words, RPermitExpirableSemaphore semaphore, int all, long lease)
            throws InterruptedException {
        switch (words[0]) {
            case "acquire":
                leased.get().push(semaphore.acquire(lease, MILLISECONDS));
                return "acquired";
            case "try":
                String permit = semaphore.tryAcquire(Long.parseLong(words[3]), lease, MILLISECONDS);
                if (permit == null) {
                    return false;
                }
                leased.get().push(permit);
                return true;
            case "release":
                // release() fails in another way in each version.
                if (!semaphore.tryRelease(leased.get().pop())) {
                    throw new IllegalMonitorStateException("its lease has ended");
                }
                return "released";
            case "set":
                return semaphore.trySetPermits(all);
            case "number":
                return semaphore.availablePermits();
            case "sections":
                return sections(words[2], Integer.parseInt(words[3]),
                        () -> leased.get().push(semaphore.acquire(lease, MILLISECONDS)),
                        () -> semaphore.release(leased.get().pop()));
            default:
                throw new IllegalArgumentException("a semaphore has no " + words[0]);
        }
    }

    private Object onLatch(String[] words, RCountDownLatch latch, long count) throws InterruptedException {
        switch (words[0]) {
            case "acquire":
                latch.await();
                return "acquired";
            case "try":
                return latch.await(Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                latch.countDown();
                return "released";
            case "set":
                return latch.trySetCount(count);
            case "number":
                return latch.getCount();
            default:
                throw new IllegalArgumentException("a latch has no " + words[0]);
        }
    }

    private Object onLock(String[] words, RLock lock) throws InterruptedException {
        switch (words[0]) {
            case "acquire":
                lock.lock(words.length > 3 ? Long.parseLong(words[3]) : -1, MILLISECONDS);
                return "acquired";
            case "try":
                return words.length == 3 ? lock.tryLock() : lock.tryLock(
                        Long.parseLong(words[3]), words.length > 4 ? Long.parseLong(words[4]) : -1, MILLISECONDS);
            case "release":
                lock.unlock();
                return "released";
            case "number":
                return lock.getHoldCount();
            case "locked":
                return lock.isLocked();
            case "held":
                return lock.isHeldByCurrentThread();
            case "ttl":
                return lock.remainTimeToLive();
            case "sections":
                return sections(words[2], Integer.parseInt(words[3]), lock::lock, lock::unlock);
            case "turns":
                return turns(lock, words[2], Long.parseLong(words[3]));
            default:
                throw new IllegalArgumentException("a lock has no " + words[0]);
        }
    }

    /** Not every version says its client's id: here it stands in a lock. */
    private String owner() {
        String probe = UUID.randomUUID().toString();
        RLock lock = redisson.getLock(probe);
        lock.lock();
        Map<String, String> held = redisson.<String, String>getMap(probe, StringCodec.INSTANCE).readAllMap();
        lock.unlock();
        return held.keySet().iterator().next();
    }

    private RLock[] onNodes(String name, int number) {
        return Arrays.stream(nodes).limit(number).map(node -> on(node).getLock(name)).toArray(RLock[]::new);
    }

    private synchronized RedissonClient on(String node) {
        return node.equals(nodes[0]) ? redisson : others.computeIfAbsent(node, Peer::client);
    }

    private RLock lock(String kind, String name) {
        String[] of = kind.split("/");
        switch (of[0]) {
            case "multi":
                return redisson.getMultiLock(onNodes(name, Integer.parseInt(of[1])));
            case "red":
                return redisson.getRedLock(onNodes(name, Integer.parseInt(of[1])));
            case "lock":
                return redisson.getLock(name);
            case "fair":
                return redisson.getFairLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            default:
                throw new IllegalArgumentException("no such kind: " + kind);
        }
    }

    private static long percent(RLock one, RLock other, long millis) {
        long[] taken = new long[2];
        for (int slice = 0; slice < 20; slice++) {
            RLock lock = slice % 2 == 0 ? one : other;
            for (long end = System.nanoTime() + millis * 50_000; System.nanoTime() < end; taken[slice % 2]++) {
                lock.lock();
                lock.unlock();
            }
        }
        return 100 * taken[0] / taken[1];
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

    private long sections(String name, int times, Step enter, Step leave) throws InterruptedException {
        RBucket<String> counter = redisson.getBucket(name + ":counter", StringCodec.INSTANCE);
        RAtomicLong inside = redisson.getAtomicLong(name + ":inside");
        long most = 0;
        for (int i = 0; i < times; i++) {
            enter.take();
            most = Math.max(most, inside.incrementAndGet());
            String before = counter.get();
            counter.set(String.valueOf(before == null ? 1 : Long.parseLong(before) + 1));
            inside.decrementAndGet();
            leave.take();
        }
        return most;
    }

    private interface Step {
        void take() throws InterruptedException;
    }
}
