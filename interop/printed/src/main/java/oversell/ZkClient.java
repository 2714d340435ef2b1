package oversell;

import javax.annotation.PostConstruct;
import javax.annotation.PreDestroy;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * §3.3: one session for the whole process, of 30 s, made at the start and never again.
 *
 * <p>Differs from the print: the address is given, and each section's lock has its own method.
 */
@Component
class ZkClient {
    private static final String ROOT_PATH = "/distributed";

    @Value("${zookeeper}")
    private String connectString;

    private ZooKeeper zooKeeper;

    @PostConstruct
    public void init() {
        try {
            this.zooKeeper = new ZooKeeper(connectString, 30000, new Watcher() {
                @Override
                public void process(WatchedEvent event) {
                    System.out.println("connected");
                }
            });
            if (this.zooKeeper.exists(ROOT_PATH, false) == null) {
                this.zooKeeper.create(ROOT_PATH, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
            }
        } catch (Exception e) {
            System.out.println("not connected");
            e.printStackTrace();
        }
    }

    @PreDestroy
    public void destroy() {
        try {
            if (zooKeeper != null) {
                zooKeeper.close();
            }
        } catch (InterruptedException e) {
            e.printStackTrace();
        }
    }

    ZkSpinLock spinLock(String lockName) {
        return new ZkSpinLock(zooKeeper, lockName);
    }

    ZkSequentialLock sequentialLock(String lockName) {
        return new ZkSequentialLock(zooKeeper, lockName);
    }

    ZkWatchLock watchLock(String lockName) {
        return new ZkWatchLock(zooKeeper, lockName);
    }

    ZkReentrantLock reentrantLock(String lockName) {
        return new ZkReentrantLock(zooKeeper, lockName);
    }

    /** Of the stand, to end this session at the server. */
    ZooKeeper session() {
        return zooKeeper;
    }
}
