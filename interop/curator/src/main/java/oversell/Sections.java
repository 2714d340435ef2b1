package oversell;

import java.nio.charset.StandardCharsets;
import org.apache.curator.framework.CuratorFramework;
import org.apache.zookeeper.CreateMode;

/**
 * Sections that a test can look into afterwards. The test makes PATH-counter, which holds a decimal number, and the
 * directory PATH-inside.
 *
 * <pre>
 * sections KIND PATH N           N times: take it (of a semaphore one lease), read the counter, write one more, free it
 * </pre>
 *
 * The answer is the most that were inside at once, as seen here: each who is in has a node in PATH-inside.
 */
final class Sections {
    private final CuratorFramework curator;

    /** The way in; it gives the way out. */
    interface Gate {
        Exit enter() throws Exception;
    }

    /** The way out. */
    interface Exit {
        void leave() throws Exception;
    }

    Sections(CuratorFramework curator) {
        this.curator = curator;
    }

    int run(String path, int times, Gate gate) throws Exception {
        String counter = path + "-counter";
        String inside = path + "-inside";
        int most = 0;
        for (int i = 0; i < times; i++) {
            Exit exit = gate.enter();
            String own = curator.create().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(inside + "/in-");
            most = Math.max(most, curator.getChildren().forPath(inside).size());
            long before = Long.parseLong(new String(curator.getData().forPath(counter), StandardCharsets.US_ASCII));
            curator.setData().forPath(counter, Long.toString(before + 1).getBytes(StandardCharsets.US_ASCII));
            curator.delete().forPath(own);
            exit.leave();
        }
        return most;
    }
}
