package oversell;

import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * The repaired twin of the four {@code ZkDistributedLock}: the node is made by {@code lock}, names are compared, the lowest number
 * has the lock, after every event it looks again, each name has a count of its own, and a node is known again by its data.
 */
class ZkMendedLock {
    private static final String ROOT_PATH = "/distributed";
    /** For each name, the holds of this thread: the node of the first. */
    private static final ThreadLocal<Map<String, Deque<String>>> HOLDS = ThreadLocal.withInitial(HashMap::new);

    private final ZooKeeper zooKeeper;
    private final String lockName;

    ZkMendedLock(ZooKeeper zooKeeper, String lockName) {
        this.zooKeeper = zooKeeper;
        this.lockName = lockName;
    }

    void lock() throws KeeperException, InterruptedException {
        Deque<String> holds = HOLDS.get().computeIfAbsent(lockName, name -> new ArrayDeque<>());
        if (!holds.isEmpty()) {
            holds.push(holds.peek());
            return;
        }
        String path = create(UUID.randomUUID().toString().getBytes());
        for (String before = before(path); before != null; before = before(path)) {
            CountDownLatch event = new CountDownLatch(1);
            if (zooKeeper.exists(before, change -> event.countDown()) != null) {
                event.await();
            }
        }
        holds.push(path);
    }

    void unlock() throws KeeperException, InterruptedException {
        Deque<String> holds = HOLDS.get().get(lockName);
        String path = holds.pop();
        if (holds.isEmpty()) {
            zooKeeper.delete(path, -1);
        }
    }

    /** Makes its node. Where the answer is lost it looks whether the node is there. */
    private String create(byte[] id) throws KeeperException, InterruptedException {
        String path = null;
        while (path == null) {
            try {
                path = zooKeeper.create(ROOT_PATH + "/" + lockName + "-", id, ZooDefs.Ids.OPEN_ACL_UNSAFE,
                        CreateMode.EPHEMERAL_SEQUENTIAL);
            } catch (KeeperException.ConnectionLossException lost) {
                path = find(id);
            }
        }
        return path;
    }

    /** The node with this data; null if there is none. */
    private String find(byte[] id) throws KeeperException, InterruptedException {
        while (true) {
            try {
                for (String node : zooKeeper.getChildren(ROOT_PATH, false)) {
                    if (Arrays.equals(id, data(ROOT_PATH + "/" + node))) {
                        return ROOT_PATH + "/" + node;
                    }
                }
                return null;
            } catch (KeeperException.ConnectionLossException lost) {
                // The session goes on.
                Thread.sleep(100);
            }
        }
    }

    private byte[] data(String path) throws KeeperException, InterruptedException {
        try {
            return zooKeeper.getData(path, false, null);
        } catch (KeeperException.NoNodeException gone) {
            return null;
        }
    }

    /** The greatest node of this name below its own; null if its own is the lowest. */
    private String before(String path) throws KeeperException, InterruptedException {
        while (true) {
            try {
                return zooKeeper.getChildren(ROOT_PATH, false).stream()
                        .filter(node -> node.startsWith(lockName + "-"))
                        .map(node -> ROOT_PATH + "/" + node)
                        .filter(node -> node.compareTo(path) < 0)
                        .max(String::compareTo)
                        .orElse(null);
            } catch (KeeperException.ConnectionLossException lost) {
                // The session goes on.
                Thread.sleep(100);
            }
        }
    }
}
