package oversell;

import java.io.IOException;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * A Java process that is told by {@link Lines} what to do with Redisson. Its arguments are addresses,
 * {@code redis://host:port}: the first is the Redis of all commands, the others those of locks on several nodes.
 * {@code WATCHDOG_MS} in its environment is how long its watchdog keeps a lock, else Redisson's 30 s.
 */
public final class Peer {
    private Peer() {
    }

    public static void main(String[] args) throws IOException {
        Lines.follow(new Commands(args));
    }

    static RedissonClient client(String address) {
        Config config = new Config();
        // Locks have codecs of their own; the default of 3.11.2 does not start on a Java as new as 17.
        config.setCodec(StringCodec.INSTANCE).setThreads(4).setNettyThreads(4);
        String watchdog = System.getenv("WATCHDOG_MS");
        if (watchdog != null) {
            config.setLockWatchdogTimeout(Long.parseLong(watchdog));
        }
        String[] nodes = address.split(",");
        if (nodes.length > 1) {
            config.useClusterServers()
                    .addNodeAddress(nodes)
                    .setMasterConnectionMinimumIdleSize(2)
                    .setSlaveConnectionMinimumIdleSize(1)
                    .setSubscriptionConnectionMinimumIdleSize(1);
            return Redisson.create(config);
        }
        config.useSingleServer()
                .setAddress(address)
                .setConnectionMinimumIdleSize(2)
                .setSubscriptionConnectionMinimumIdleSize(1);
        return Redisson.create(config);
    }
}
