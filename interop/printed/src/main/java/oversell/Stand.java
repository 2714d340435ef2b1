package oversell;

import java.io.IOException;
import java.net.URI;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;

/**
 * What the printed classes stand on: a database of the run's own with the tables of the text, a root of the run's own in
 * ZooKeeper, so that {@code /distributed} is as in the text, and the connections that can be cut.
 */
final class Stand {
    private static final int SESSION_MS = 30000;

    private final String key;
    private final String database;
    private final String user;
    private final String password;
    private final String zookeeper;
    private final Relay relay;
    /** Looks at the nodes, whatever becomes of the sessions of the classes. */
    private final ZooKeeper observer;
    private ZooKeeper mended;
    private Connection holder;

    Stand(String mysql, String zookeeper, String key) throws Exception {
        URI at = URI.create(mysql);
        String[] login = at.getUserInfo().split(":", 2);
        this.key = key;
        this.user = login[0];
        this.password = login.length > 1 ? login[1] : "";
        this.database = "jdbc:mysql://" + at.getHost() + ":" + at.getPort() + "/" + key
                + "?createDatabaseIfNotExist=true&useSSL=false&useUnicode=true&characterEncoding=utf8";
        this.zookeeper = zookeeper;
        try (ZooKeeper root = connect(zookeeper)) {
            root.create("/" + key, null, ZooDefs.Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
        } catch (KeeperException.NodeExistsException another) {
            // Another process of the run has made it.
        }
        this.relay = new Relay(zookeeper);
        this.observer = connect(zookeeper + "/" + key);
        this.mended = connect(through());
        createTables();
    }

    String key() {
        return key;
    }

    String stockKey() {
        return key + "_stock";
    }

    String lockKey() {
        return key + "_lock";
    }

    String database() {
        return database;
    }

    String user() {
        return user;
    }

    String password() {
        return password;
    }

    /** ZooKeeper by the relay. */
    String through() {
        return relay.address() + "/" + key;
    }

    void cut() {
        relay.cut();
    }

    void loseNextAnswer() {
        relay.loseNextAnswer();
    }

    /** The session of the repaired twins: an expired one is replaced. */
    synchronized ZooKeeper mended() throws IOException, InterruptedException {
        if (!mended.getState().isAlive()) {
            mended = connect(through());
        }
        return mended;
    }

    List<String> nodes() throws KeeperException, InterruptedException {
        return observer.getChildren("/distributed", false).stream().sorted().collect(Collectors.toList());
    }

    /** Ends these sessions at the server, as it does with a client that it has not heard of for 30 s. */
    void expire(ZooKeeper session) throws IOException, InterruptedException {
        for (ZooKeeper each : new ZooKeeper[] {session, mended}) {
            connect(zookeeper, each.getSessionId(), each.getSessionPasswd()).close();
        }
        relay.cut();
        // Each client hears of it when it connects again.
        while (session.getState().isAlive() || mended.getState().isAlive()) {
            Thread.sleep(20);
        }
    }

    private static ZooKeeper connect(String address) throws IOException, InterruptedException {
        return connect(address, 0, new byte[16]);
    }

    private static ZooKeeper connect(String address, long session, byte[] password)
            throws IOException, InterruptedException {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper client = new ZooKeeper(address, SESSION_MS, (WatchedEvent event) -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        }, session, password);
        connected.await();
        return client;
    }

    /** Whoever writes this voucher waits until {@link #freeVoucher}. */
    void holdVoucher(String id) throws SQLException {
        holder = DriverManager.getConnection(database, user, password);
        holder.setAutoCommit(false);
        holder.createStatement().executeQuery("SELECT 1 FROM tb_seckill_voucher WHERE voucher_id = " + id + " FOR UPDATE");
    }

    void freeVoucher() throws SQLException {
        holder.close();
    }

    private void createTables() throws SQLException {
        try (Connection connection = DriverManager.getConnection(database, user, password);
                Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE IF NOT EXISTS `db_stock` ("
                    + "`id` bigint(20) NOT NULL AUTO_INCREMENT,"
                    + "`product_code` varchar(255) DEFAULT NULL,"
                    + "`stock_code` varchar(255) DEFAULT NULL,"
                    + "`count` int(11) DEFAULT NULL,"
                    + "`version` bigint(20) DEFAULT 0,"
                    + "PRIMARY KEY (`id`)) ENGINE=InnoDB AUTO_INCREMENT=1 DEFAULT CHARSET=utf8");
            statement.execute("INSERT IGNORE INTO db_stock (id, product_code, stock_code, count) VALUES (1, '1001', '001', 5000)");
            statement.execute("CREATE TABLE IF NOT EXISTS `tb_lock` ("
                    + "`id` bigint(20) NOT NULL AUTO_INCREMENT,"
                    + "`lock_name` varchar(50) NOT NULL,"
                    + "`class_name` varchar(100) DEFAULT NULL,"
                    + "`method_name` varchar(50) DEFAULT NULL,"
                    + "`server_name` varchar(50) DEFAULT NULL,"
                    + "`thread_name` varchar(50) DEFAULT NULL,"
                    + "`create_time` timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP,"
                    + "`desc` varchar(100) DEFAULT NULL,"
                    + "PRIMARY KEY (`id`), UNIQUE KEY `idx_unique` (`lock_name`)"
                    + ") ENGINE=InnoDB AUTO_INCREMENT=1332899824461455363 DEFAULT CHARSET=utf8");
            statement.execute("CREATE TABLE IF NOT EXISTS tb_seckill_voucher ("
                    + "voucher_id BIGINT PRIMARY KEY AUTO_INCREMENT, stock INT NOT NULL,"
                    + "begin_time TIMESTAMP NULL, end_time TIMESTAMP NULL) ENGINE=InnoDB");
            statement.execute("CREATE TABLE IF NOT EXISTS tb_voucher_order ("
                    + "id BIGINT PRIMARY KEY, user_id BIGINT NOT NULL, voucher_id BIGINT NOT NULL) ENGINE=InnoDB");
        }
    }
}
