package oversell;

import java.util.List;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/**
 * {@code ZkTest} of §3.1.3, from its connection on.
 *
 * <p>Differs from the print: what it prints is its answer, and the path of the node that is read is given.
 */
final class ZkTest {
    private ZkTest() {
    }

    static String main(ZooKeeper zooKeeper, String read) throws KeeperException, InterruptedException {
        zooKeeper.create("/test", "haha~~".getBytes(), ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL);

        Stat stat = zooKeeper.exists("/test", true);
        String printed = stat != null ? "exists " + stat.getVersion() : "does not exist";

        zooKeeper.exists("/test", event -> {
        });

        byte[] data = zooKeeper.getData(read, false, null);
        printed += " " + new String(data);

        List<String> children = zooKeeper.getChildren("/test", false);
        printed += " " + children;

        Stat set = zooKeeper.setData("/test", "wawa...".getBytes(), stat.getVersion());
        zooKeeper.delete("/test", -1);
        return printed + " " + set.getVersion();
    }
}
