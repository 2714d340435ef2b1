package oversell;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** The factory of lock objects, as the course has it: one object for each key, kept in a map. */
final class Factory {
    private static final int KILOBYTE = 1024;
    /** So that the JIT does not leave the object out. */
    private static volatile SyncLock last;

    private final Map<String, SyncLock> map = new ConcurrentHashMap<>();

    /** With the fields of the course's object. */
    static final class SyncLock {
        final String key;
        final long expire = 10_000;
        final long safetyTime = 50_000;
        final long waitMillisPer = 50;

        SyncLock(String key) {
            this.key = key;
        }
    }

    synchronized SyncLock build(String key) {
        if (!map.containsKey(key)) {
            map.put(key, new SyncLock(key));
        }
        return map.get(key);
    }

    static int same(String key, int calls) {
        Factory factory = new Factory();
        Set<SyncLock> objects = Collections.newSetFromMap(new IdentityHashMap<>());
        for (int i = 0; i < calls; i++) {
            objects.add(factory.build(key));
        }
        return objects.size();
    }

    static long bytes(String key, int calls, Function<String, SyncLock> build) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long own = Thread.currentThread().getId();
        long before = threads.getThreadAllocatedBytes(own);
        for (int i = 0; i < calls; i++) {
            last = build.apply(key);
        }
        return (threads.getThreadAllocatedBytes(own) - before) / calls;
    }

    static int keys(int number) {
        Factory factory = new Factory();
        for (int i = 0; i < number; i++) {
            factory.build("demo4#" + i);
        }
        System.gc();
        return factory.map.size();
    }

    /** Kept by weak references, as the course proposes. */
    static long weakKeys(int number) {
        Map<String, WeakReference<SyncLock>> map = new ConcurrentHashMap<>();
        for (int i = 0; i < number; i++) {
            map.computeIfAbsent("demo4#" + i, key -> new WeakReference<>(new SyncLock(key)));
        }
        System.gc();
        return map.values().stream().filter(kept -> kept.get() != null).count();
    }

    static int fill() {
        Factory factory = new Factory();
        String parameter = "x".repeat(KILOBYTE);
        for (int i = 0; ; i++) {
            factory.build("demo4#" + i + parameter);
        }
    }
}
