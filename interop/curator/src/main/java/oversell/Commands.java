package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;

/**
 * What a thread of the peer can be told, on the recipes of one Curator client. KIND is {@code lock} (one InterProcessMutex
 * for each path), {@code another} (one for each line), {@code semaphore-mutex}, {@code multi} (of PATH/1 and PATH/2),
 * {@code read}, {@code write}, {@code permits/ALL/N} (N leases of a semaphore's), {@code barrier} or
 * {@code double/MEMBERS}; times are milliseconds.
 *
 * <pre>
 * ping                           a round trip: what the server has said before, the client has heard
 * acquire KIND PATH              waits; enters a double barrier
 * try KIND PATH WAIT             true, false
 * release KIND PATH              removes a barrier, leaves a double barrier
 * set barrier PATH
 * number KIND PATH               of a lock: 1 where this thread holds it, else 0
 * participants KIND PATH         the nodes in their order, without their directory; of a semaphore in any
 * </pre>
 *
 * and those of {@link Numbers} and {@link Sections}.
 */
final class Commands implements Lines.Commands {
    private final CuratorFramework curator;
    private final Leases leases;
    private final Numbers numbers;
    private final Sections sections;
    private final Map<String, InterProcessLock> locks = new ConcurrentHashMap<>();
    private final Map<String, InterProcessReadWriteLock> readWriteLocks = new ConcurrentHashMap<>();
    /** By thread: a member leaves by the object by which it entered. */
    private final Map<String, DistributedDoubleBarrier> members = new ConcurrentHashMap<>();

    Commands(CuratorFramework curator) {
        this.curator = curator;
        leases = new Leases(curator);
        numbers = new Numbers(curator);
        sections = new Sections(curator);
    }

    @Override
    public Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "ping":
                return curator.checkExists().forPath("/") != null;
            case "count":
            case "atomic":
                return numbers.run(words);
            default:
                break;
        }
        String path = words[2];
        String[] kind = words[1].split("/");
        switch (kind[0]) {
            case "permits":
                return leases.run(words, Integer.parseInt(kind[1]), Integer.parseInt(kind[2]), sections);
            case "barrier":
                return onBarrier(words, new DistributedBarrier(curator, path));
            case "double":
                return onMember(words, Integer.parseInt(kind[1]));
            default:
                return onLock(words, lock(words[1], path));
        }
    }

    private Object onLock(String[] words, InterProcessLock lock) throws Exception {
        switch (words[0]) {
            case "acquire":
                lock.acquire();
                return "acquired";
            case "try":
                return lock.acquire(Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                lock.release();
                return "released";
            case "number":
                return ((InterProcessMutex) lock).isOwnedByCurrentThread() ? 1 : 0;
            case "participants":
                return Leases.names(((InterProcessMutex) lock).getParticipantNodes());
            case "sections":
                return sections.run(words[2], Integer.parseInt(words[3]), () -> {
                    lock.acquire();
                    return lock::release;
                });
            default:
                throw new IllegalArgumentException("a lock has no " + words[0]);
        }
    }

    private InterProcessLock lock(String kind, String path) {
        switch (kind) {
            case "lock":
                return locks.computeIfAbsent(path, at -> new InterProcessMutex(curator, at));
            case "another":
                return new InterProcessMutex(curator, path);
            case "semaphore-mutex":
                return locks.computeIfAbsent(path, at -> new InterProcessSemaphoreMutex(curator, at));
            case "multi":
                return locks.computeIfAbsent(
                        path, at -> new InterProcessMultiLock(curator, List.of(at + "/1", at + "/2")));
            case "read":
                return readWriteLock(path).readLock();
            case "write":
                return readWriteLock(path).writeLock();
            default:
                throw new IllegalArgumentException("no such kind: " + kind);
        }
    }

    private InterProcessReadWriteLock readWriteLock(String path) {
        return readWriteLocks.computeIfAbsent(path, at -> new InterProcessReadWriteLock(curator, at));
    }

    private static Object onBarrier(String[] words, DistributedBarrier barrier) throws Exception {
        switch (words[0]) {
            case "acquire":
                barrier.waitOnBarrier();
                return "acquired";
            case "try":
                return barrier.waitOnBarrier(Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                barrier.removeBarrier();
                return "released";
            case "set":
                barrier.setBarrier();
                return "set";
            default:
                throw new IllegalArgumentException("a barrier has no " + words[0]);
        }
    }

    private Object onMember(String[] words, int all) throws Exception {
        DistributedDoubleBarrier member = members.computeIfAbsent(
                Thread.currentThread().getName() + words[2],
                who -> new DistributedDoubleBarrier(curator, words[2], all));
        switch (words[0]) {
            case "acquire":
                member.enter();
                return "acquired";
            case "try":
                return member.enter(Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                member.leave();
                return "released";
            default:
                throw new IllegalArgumentException("a double barrier has no " + words[0]);
        }
    }
}
