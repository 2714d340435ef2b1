package oversell;

import java.io.IOException;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A Java process that is told by {@link Lines} what to do with Curator. Its one argument is the address,
 * {@code host:port}.
 */
public final class Peer {
    private static final int SESSION_MS = 10_000;
    private static final int CONNECTION_MS = 5_000;

    private Peer() {
    }

    public static void main(String[] args) throws IOException {
        CuratorFramework curator = CuratorFrameworkFactory.newClient(
                args[0], SESSION_MS, CONNECTION_MS, new ExponentialBackoffRetry(1000, 3));
        curator.start();
        Lines.follow(new Commands(curator));
    }
}
