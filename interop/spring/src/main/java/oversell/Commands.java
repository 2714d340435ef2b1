package oversell;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What a thread of the peer can be told.
 *
 * <pre>
 * ping
 * order bean|this|proxy          how many transactions it took: {@link Orders}
 * order hidden                   as proxy, in a context that does not expose its proxies
 * serve PORT                     starts a Tomcat: {@link Tomcats}
 * values                         ID-NAME of each of its threads
 * common LIST                    of all pairs of one of its threads and one of the list, the hundredths that are equal
 * common-ids LIST                the same of their ids alone
 * latch TASKS                    how many of these are done when await is through: {@link CountDownLatch}
 * no-latch TASKS                 the same without await
 * same KEY N                     how many objects a factory gives for N calls with this key: {@link Factory}
 * bytes KEY N                    what a call of the factory allocates, in bytes; {@code new-bytes} without the factory
 * keys N                         how many objects a factory has after N keys and a garbage collection
 * weak-keys N                    the same where it keeps them by weak references
 * fill                           keys of a kilobyte each, until there is no memory left
 * </pre>
 */
final class Commands implements Lines.Commands {
    /** The threads of the course's pool. */
    private static final int POOL = 500;
    private static final int TASK_MS = 100;

    private final Tomcats tomcats = new Tomcats();

    @Override
    public Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "ping":
                return "pong";
            case "order":
                return Orders.order(words[1]);
            case "serve":
                return tomcats.serve(Integer.parseInt(words[1]));
            case "values":
                return String.join(" ", tomcats.values());
            case "common":
                return tomcats.common(words, value -> value);
            case "common-ids":
                return tomcats.common(words, value -> value.split("-")[0]);
            case "latch":
                return done(Integer.parseInt(words[1]), true);
            case "no-latch":
                return done(Integer.parseInt(words[1]), false);
            case "same":
                return Factory.same(words[1], Integer.parseInt(words[2]));
            case "bytes":
                return Factory.bytes(words[1], Integer.parseInt(words[2]), new Factory()::build);
            case "new-bytes":
                return Factory.bytes(words[1], Integer.parseInt(words[2]), Factory.SyncLock::new);
            case "keys":
                return Factory.keys(Integer.parseInt(words[1]));
            case "weak-keys":
                return Factory.weakKeys(Integer.parseInt(words[1]));
            case "fill":
                return Factory.fill();
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private static int done(int tasks, boolean waits) throws InterruptedException {
        ExecutorService pool = Executors.newFixedThreadPool(POOL);
        CountDownLatch latch = new CountDownLatch(tasks);
        AtomicInteger done = new AtomicInteger();
        for (int i = 0; i < tasks; i++) {
            pool.submit(() -> {
                Thread.sleep(TASK_MS);
                done.incrementAndGet();
                latch.countDown();
                return null;
            });
        }
        if (waits) {
            latch.await();
        }
        int then = done.get();
        pool.shutdown();
        return then;
    }
}
