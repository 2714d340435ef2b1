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
 * What a thread of the peer can be told about a semaphore of ALL leases. Of each it holds one bunch of N at a time.
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

    Object run(String[] words, int all, int number, Sections sections) throws Exception {
        String path = words[2];
        String own = Thread.currentThread().getName() + path;
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(curator, path, all);
        switch (words[0]) {
            case "acquire":
                held.put(own, new Held(semaphore, semaphore.acquire(number)));
                return "acquired";
            case "try":
                Collection<Lease> had = semaphore.acquire(number, Long.parseLong(words[3]), MILLISECONDS);
                if (had != null) {
                    held.put(own, new Held(semaphore, had));
                }
                return had != null;
            case "release":
                Held back = held.remove(own);
                back.semaphore.returnAll(back.leases);
                return "released";
            case "participants":
                return names(semaphore.getParticipantNodes());
            case "sections":
                return sections.run(path, Integer.parseInt(words[3]), () -> {
                    Lease lease = semaphore.acquire();
                    return () -> semaphore.returnLease(lease);
                });
            default:
                throw new IllegalArgumentException("leases have no " + words[0]);
        }
    }

    static String names(Collection<String> nodes) {
        return nodes.stream().map(node -> node.substring(node.lastIndexOf('/') + 1)).collect(Collectors.joining(" "));
    }
}
