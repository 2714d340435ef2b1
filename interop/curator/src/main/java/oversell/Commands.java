package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;

/**
 * What a thread of the peer can be told, on the recipes of one Curator client. A lock's KIND is {@code mutex},
 * {@code read} or {@code write}; times are milliseconds.
 *
 * <pre>
 * owner                          the session, to which the nodes belong
 * ping                           a round trip: what the server has said before, the client has heard
 * acquire KIND PATH              waits
 * try KIND PATH WAIT             true, false
 * release KIND PATH
 * held KIND PATH                 isOwnedByCurrentThread
 * participants KIND PATH         the nodes in their order, without their directory
 * barrier set|remove PATH
 * barrier wait PATH WAIT         true, false
 * enter PATH MEMBERS WAIT        a double barrier: true, false
 * leave PATH MEMBERS WAIT        true, false
 * </pre>
 *
 * and those of {@link Leases}, {@link Numbers} and {@link Sections}.
 */
final class Commands {
    private final CuratorFramework curator;
    private final Leases leases;
    private final Numbers numbers;
    private final Sections sections;
    private final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    private final Map<String, InterProcessReadWriteLock> readWriteLocks = new ConcurrentHashMap<>();
    /** By thread: a member leaves by the object by which it entered. */
    private final Map<String, DistributedDoubleBarrier> members = new ConcurrentHashMap<>();

    Commands(CuratorFramework curator) {
        this.curator = curator;
        leases = new Leases(curator);
        numbers = new Numbers(curator);
        sections = new Sections(curator);
    }

    Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "owner":
                return Long.toHexString(curator.getZookeeperClient().getZooKeeper().getSessionId());
            case "ping":
                return curator.checkExists().forPath("/") != null;
            case "barrier":
                return barrier(words[1], new DistributedBarrier(curator, words[2]), words);
            case "enter":
                return member(words).enter(Long.parseLong(words[3]), MILLISECONDS);
            case "leave":
                return member(words).leave(Long.parseLong(words[3]), MILLISECONDS);
            case "lease":
                return leases.run(words);
            case "count":
            case "atomic":
                return numbers.run(words);
            case "sections":
                return sections(words);
            default:
                return onLock(words[0], lock(words[1], words[2]), words);
        }
    }

    private Object onLock(String command, InterProcessMutex lock, String[] words) throws Exception {
        switch (command) {
            case "acquire":
                lock.acquire();
                return "acquired";
            case "try":
                return lock.acquire(Long.parseLong(words[3]), MILLISECONDS);
            case "release":
                lock.release();
                return "released";
            case "held":
                return lock.isOwnedByCurrentThread();
            case "participants":
                return Leases.names(lock.getParticipantNodes());
            default:
                throw new IllegalArgumentException("no such command: " + command);
        }
    }

    private InterProcessMutex lock(String kind, String path) {
        switch (kind) {
            case "mutex":
                return mutexes.computeIfAbsent(path, at -> new InterProcessMutex(curator, at));
            case "read":
                return readWriteLock(path).readLock();
            case "write":
                return readWriteLock(path).writeLock();
            default:
                throw new IllegalArgumentException("no such kind of lock: " + kind);
        }
    }

    private InterProcessReadWriteLock readWriteLock(String path) {
        return readWriteLocks.computeIfAbsent(path, at -> new InterProcessReadWriteLock(curator, at));
    }

    private Object barrier(String command, DistributedBarrier barrier, String[] words) throws Exception {
        switch (command) {
            case "set":
                barrier.setBarrier();
                return "set";
            case "remove":
                barrier.removeBarrier();
                return "removed";
            case "wait":
                return barrier.waitOnBarrier(Long.parseLong(words[3]), MILLISECONDS);
            default:
                throw new IllegalArgumentException("a barrier has no " + command);
        }
    }

    private DistributedDoubleBarrier member(String[] words) {
        return members.computeIfAbsent(
                Thread.currentThread().getName() + words[1],
                who -> new DistributedDoubleBarrier(curator, words[1], Integer.parseInt(words[2])));
    }

    private Object sections(String[] words) throws Exception {
        int times = Integer.parseInt(words[3]);
        if (words[1].equals("leases")) {
            return sections.run(words[2], times, leases.gate(words[2], Integer.parseInt(words[4])));
        }
        InterProcessMutex lock = lock(words[1], words[2]);
        return sections.run(words[2], times, () -> {
            lock.acquire();
            return lock::release;
        });
    }
}
