package oversell;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/**
 * What a thread of the peer can be told about a semaphore of MAX leases. Of each it holds one bunch at a time.
 *
 * <pre>
 * lease take PATH MAX N          waits
 * lease try PATH MAX N WAIT      true, false
 * lease return PATH
 * lease participants PATH MAX    the nodes, without their directory
 * </pre>
 */
final class Leases {
    private final CuratorFramework curator;
    /** By thread. */
    private final Map<String, Held> held = new ConcurrentHashMap<>();

    private static final class Held {
        private final InterProcessSemaphoreV2 semaphore;
        private final Collection<Lease> leases;

        private Held(InterProcessSemaphoreV2 semaphore, Collection<Lease> leases) {
            this.semaphore = semaphore;
            this.leases = leases;
        }
    }

    Leases(CuratorFramework curator) {
        this.curator = curator;
    }

    Object run(String[] words) throws Exception {
        String own = Thread.currentThread().getName() + words[2];
        if (words[1].equals("return")) {
            Held back = held.remove(own);
            back.semaphore.returnAll(back.leases);
            return "returned";
        }
        InterProcessSemaphoreV2 semaphore = semaphore(words[2], Integer.parseInt(words[3]));
        switch (words[1]) {
            case "take":
                held.put(own, new Held(semaphore, semaphore.acquire(Integer.parseInt(words[4]))));
                return "taken";
            case "try":
                int wanted = Integer.parseInt(words[4]);
                Collection<Lease> had = semaphore.acquire(wanted, Long.parseLong(words[5]), MILLISECONDS);
                if (had != null) {
                    held.put(own, new Held(semaphore, had));
                }
                return had != null;
            case "participants":
                return names(semaphore.getParticipantNodes());
            default:
                throw new IllegalArgumentException("leases have no " + words[1]);
        }
    }

    /** One lease of the semaphore at a time. */
    Sections.Gate gate(String path, int max) {
        InterProcessSemaphoreV2 semaphore = semaphore(path, max);
        return () -> {
            Lease lease = semaphore.acquire();
            return () -> semaphore.returnLease(lease);
        };
    }

    static String names(Collection<String> nodes) {
        return nodes.stream().map(node -> node.substring(node.lastIndexOf('/') + 1)).collect(Collectors.joining(" "));
    }

    private InterProcessSemaphoreV2 semaphore(String path, int max) {
        return new InterProcessSemaphoreV2(curator, path, max);
    }
}
