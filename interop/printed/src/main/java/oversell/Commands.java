package oversell;

import java.time.LocalDateTime;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.jorphan.math.StatCalculatorLong;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.data.redis.core.StringRedisTemplate;

/**
 * What a thread of the peer can be told. A KIND is the section that prints the lock, or {@code mended}, its repaired twin:
 * {@code zk/3.3}, {@code zk/3.4.1}, {@code zk/3.4.2}, {@code zk/3.5}, {@code zk/mended}, {@code redis/2.6}, {@code redis/2.7},
 * {@code redis/mended}, {@code 002/del}, {@code 002/compare}, {@code 002/lua}, {@code 004/MS} and {@code 004-mended/MS} with an
 * {@code expire} of so many milliseconds, and {@code redisson}.
 *
 * <pre>
 * ping
 * new KIND NAME            calls the constructor
 * lock KIND NAME           calls lock(), after the constructor unless {@code new} has
 * try KIND NAME MS         calls tryLock(MS, MILLISECONDS); of [002], tryLock(seconds)
 * lease KIND NAME S        takes it for a lease of S seconds: in the print, tryLock(S, SECONDS)
 * unlock KIND NAME         calls unlock()
 * unlock-anew NAME         unlock() of §3.3 in a session that has replaced an expired one
 * inside NAME              the threads whose lock() or tryLock() has returned, and that have not called unlock()
 * waits WHO                whether the thread waits in await() or in sleep()
 * interrupt WHO            interrupts that thread
 * nodes                    the nodes of /distributed
 * cut [answer]             cuts the connections to ZooKeeper once, {@code answer} at its next answer, which is lost; the client
 *                          connects again
 * expire                   ends the sessions at the server
 * close                    ends the application in good order, as a deployment does
 * api [PATH]               runs the calls of §3.1.3, which read this path, or the one that is printed
 * buy SERVICE              calls checkAndLock() of the service of that section: {@link StockServices}
 * buy-mended SERVICE       the same of its repaired twin
 * load SERVICE THREADS LOOPS   calls it LOOPS times from each thread: how many calls returned
 * read                     reads the stock into an object of the thread, {@link VersionedStock}, and takes a piece off it
 * save [anew]              calls updateById() with that object, {@code anew} after {@code read}: how many rows it changed
 * voucher STOCK [WHEN]     makes a voucher, which is on sale, {@code later} or {@code over}; says its id
 * order VERSION USER ID    calls seckillVoucher() of this version of [002]: {@link VoucherOrders}
 * hold commits             each transaction waits before its commit until {@code free commits}
 * hold voucher ID          whoever writes it waits until {@code free voucher}
 * held-up WHO              whether the thread waits for a monitor, or for the database to write
 * ids KEY TASKS EACH [apart]   so many tasks take so many ids each, {@code apart} by keys of their own; how many differ
 * limit rest|go|mended MS  asks the limiter of [003] all the time, or rests; how many were let through
 * percentiles N P P P      what JMeter says of the times 1 to N
 * ratio KIND OTHER NAME THREADS MS   how often KIND is locked and unlocked, in percent of OTHER
 * demo HOW NAME ID         on a thread with this id, as Tomcat may name it, a method under the annotation of [004]:
 *                          {@code waits}, {@code now}, {@code method} without a key, {@code demo4} of warehouse 1,
 *                          {@code remembered} with a ThreadLocal, {@code bare} without the annotation, or the repaired
 *                          {@code mended}; it works until {@code finish}
 * finish                   ends the work of the demos
 * </pre>
 */
final class Commands implements Lines.Commands {
    private final Stand stand;
    private final ConfigurableApplicationContext spring;
    private final StringRedisTemplate redis;
    private final ZkClient client;
    private final ThreadLocal<Map<String, Deque<Hold>>> holds = ThreadLocal.withInitial(HashMap::new);
    private final ThreadLocal<VersionedStock> stock = new ThreadLocal<>();
    private final Map<String, Set<String>> inside = new ConcurrentHashMap<>();
    private final RateLimits.AccessLimit limit = new RateLimits.AccessLimit();
    private final RateLimits.TenInAnySecond tenInAnySecond = new RateLimits.TenInAnySecond();

    Commands(Stand stand, ConfigurableApplicationContext spring) {
        this.stand = stand;
        this.spring = spring;
        redis = spring.getBean(StringRedisTemplate.class);
        client = spring.getBean(ZkClient.class);
    }

    private void read() {
        stock.set(spring.getBean(VersionedStockMapper.class).selectById(1L));
        stock.get().setCount(stock.get().getCount() - 1);
    }

    private interface Call {
        void run() throws Exception;
    }

    private interface TimedCall {
        boolean run(long time, TimeUnit unit) throws Exception;
    }

    /** The methods of a lock, whatever its class. */
    private static final class Hold {
        private final Call lock;
        private final TimedCall tryLock;
        private final TimedCall lease;
        private final Call unlock;
        private boolean isTaken;

        private Hold(Call lock, TimedCall tryLock, TimedCall lease, Call unlock) {
            this.lock = lock;
            this.tryLock = tryLock;
            this.lease = lease;
            this.unlock = unlock;
        }
    }

    @Override
    public Object run(String[] words) throws Exception {
        switch (words[0]) {
            case "ping":
                return "pong";
            case "new":
                push(words[1], words[2]);
                return "made";
            case "lock":
                Hold hold = free(words[1], words[2]);
                hold.lock.run();
                enter(hold, words[2]);
                return "locked";
            case "try":
                return tryLock(words, free(words[1], words[2]), true);
            case "lease":
                return tryLock(words, free(words[1], words[2]), false);
            case "unlock":
                inside(words[2]).remove(Thread.currentThread().getName());
                of(words[1], words[2]).pop().unlock.run();
                return "unlocked";
            case "unlock-anew":
                new ZkSpinLock(stand.mended(), words[1]).unlock();
                return "unlocked";
            case "inside":
                return String.join(" ", new TreeSet<>(inside(words[1])));
            case "waits":
                return Arrays.stream(thread(words[1]).getStackTrace())
                        .anyMatch(frame -> frame.getClassName().equals(CountDownLatch.class.getName())
                                || frame.getMethodName().equals("sleep"));
            case "interrupt":
                thread(words[1]).interrupt();
                return "interrupted";
            case "nodes":
                return String.join(" ", stand.nodes());
            case "cut":
                if (words.length > 1) {
                    stand.loseNextAnswer();
                } else {
                    stand.cut();
                }
                return "cut";
            case "expire":
                stand.expire(client.session());
                return "expired";
            case "close":
                spring.close();
                stand.mended().close();
                return "closed";
            case "api":
                return ZkTest.main(stand.mended(), words.length > 1 ? words[1] : "/atguigu/ss0000000001");
            case "buy":
                service(words[1]).checkAndLock();
                return "bought";
            case "buy-mended":
                service(words[1] + "-mended").checkAndLock();
                return "bought";
            case "load":
                return load(service(words[1]), Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "read":
                read();
                return "read";
            case "save":
                if (words.length > 1) {
                    read();
                }
                return spring.getBean(VersionedStockMapper.class).updateById(stock.get());
            case "voucher":
                return voucher(Integer.parseInt(words[1]), words.length > 2 ? words[2] : "");
            case "order":
                return spring.getBean(words[1], VoucherOrders.IVoucherOrderService.class)
                        .seckillVoucher(Long.valueOf(words[3]), Long.valueOf(words[2]));
            case "hold":
                if (words[1].equals("commits")) {
                    spring.getBean(GatedTransactions.class).hold();
                } else {
                    stand.holdVoucher(words[2]);
                }
                return "held";
            case "free":
                if (words[1].equals("commits")) {
                    spring.getBean(GatedTransactions.class).free();
                } else {
                    stand.freeVoucher();
                }
                return "freed";
            case "held-up":
                Thread thread = thread(words[1]);
                return thread.getState() == Thread.State.BLOCKED || Arrays.stream(thread.getStackTrace())
                        .anyMatch(frame -> frame.getMethodName().equals("doUpdate"));
            case "ids":
                return ids(words[1], Integer.parseInt(words[2]), Integer.parseInt(words[3]), words.length > 4);
            case "limit":
                return limit(words[1], Long.parseLong(words[2]));
            case "percentiles":
                return percentiles(Integer.parseInt(words[1]), Arrays.copyOfRange(words, 2, words.length));
            case "ratio":
                return ratio(words);
            case "demo":
                return demo(words[1], words[2], Long.parseLong(words[3]));
            case "finish":
                Section.finish();
                return "finished";
            default:
                throw new IllegalArgumentException("no such command: " + words[0]);
        }
    }

    private Hold lock(String kind, String name) throws Exception {
        switch (kind) {
            case "zk/3.3":
                ZkSpinLock spin = client.spinLock(name);
                return new Hold(spin::lock, null, null, spin::unlock);
            case "zk/3.4.1":
                ZkSequentialLock sequential = client.sequentialLock(name);
                return new Hold(sequential::lock, null, null, sequential::unlock);
            case "zk/3.4.2":
                ZkWatchLock watch = client.watchLock(name);
                return new Hold(watch::lock, null, null, watch::unlock);
            case "zk/3.5":
                ZkReentrantLock reentrant = client.reentrantLock(name);
                return new Hold(reentrant::lock, null, null, reentrant::unlock);
            case "zk/mended":
            case "zk/mended-3.4.2":
            case "zk/mended-3.5":
                ZkMendedLock mended = new ZkMendedLock(stand.mended(), name);
                return new Hold(mended::lock, null, null, mended::unlock);
            case "redis/2.6":
                RedisReentrantLock counted = new RedisReentrantLock(redis, name, Peer.ID);
                return new Hold(counted::lock, counted::tryLock, counted::tryLock, counted::unlock);
            case "redis/2.7":
                RedisWatchdogLock renewed = new RedisWatchdogLock(redis, name, Peer.ID);
                return new Hold(renewed::lock, renewed::tryLock, renewed::tryLock, renewed::unlock);
            case "redis/mended":
                RedisMendedLock own = new RedisMendedLock(redis, name);
                return new Hold(own::lock, own::tryLock, own::lease, own::unlock);
            case "002/del":
                return simple(new SimpleRedisLock(name, redis));
            case "002/compare":
                return simple(new SimpleRedisLock.Comparing(name, redis));
            case "002/lua":
                return simple(new SimpleRedisLock.Scripted(name, redis));
            case "redisson":
                RLock theirs = spring.getBean(RedissonClient.class).getLock(name);
                return new Hold(theirs::lock, theirs::tryLock, null, theirs::unlock);
            default:
                if (kind.startsWith("004")) {
                    return sync(kind.split("/")[0], name, Long.parseLong(kind.split("/")[1]));
                }
                throw new IllegalArgumentException("no such lock: " + kind);
        }
    }

    private static Hold simple(SimpleRedisLock lock) {
        TimedCall tryLock = (time, unit) -> lock.tryLock(unit.toSeconds(time));
        return new Hold(null, tryLock, tryLock, lock::unlock);
    }

    private Hold sync(String kind, String name, long expire) {
        SyncLock lock = kind.equals("004") ? spring.getBean(SyncLockFactory.class).build(name, expire, null)
                : new SyncLock.Mended(name, spring.getBean(SimpleRedisClient.class), expire);
        TimedCall now = (time, unit) -> lock.lockNow();
        return new Hold(lock::lock, now, now, lock::unLock);
    }

    private Long voucher(int stock, String when) {
        SeckillVoucher voucher = new SeckillVoucher();
        voucher.setStock(stock);
        LocalDateTime now = LocalDateTime.now();
        voucher.setBeginTime(when.equals("later") ? now.plusDays(1) : now.minusDays(2));
        voucher.setEndTime(when.equals("over") ? now.minusDays(1) : now.plusDays(2));
        spring.getBean(VoucherOrders.SeckillVouchers.class).save(voucher);
        return voucher.getVoucherId();
    }

    /** As {@code testIdWorker} of [002]. */
    private long ids(String key, int tasks, int each, boolean apart) throws InterruptedException {
        RedisIdWorker worker = spring.getBean(RedisIdWorker.class);
        Set<Long> ids = ConcurrentHashMap.newKeySet();
        CountDownLatch latch = new CountDownLatch(tasks);
        ExecutorService es = Executors.newFixedThreadPool(100);
        for (int task = 0; task < tasks; task++) {
            String prefix = apart ? key + task : key;
            es.submit(() -> {
                for (int i = 0; i < each; i++) {
                    ids.add(worker.nextId(prefix));
                }
                latch.countDown();
            });
        }
        latch.await();
        es.shutdown();
        return ids.size();
    }

    private Object limit(String how, long millis) throws InterruptedException {
        switch (how) {
            case "rest":
                Thread.sleep(millis);
                return "rested";
            case "go":
                return RateLimits.through(limit::tryAcquireSeckill, millis);
            default:
                return RateLimits.through(tenInAnySecond::tryAcquireSeckill, millis);
        }
    }

    private static String percentiles(int times, String[] percents) {
        StatCalculatorLong calculator = new StatCalculatorLong();
        for (long time = 1; time <= times; time++) {
            calculator.addValue(time);
        }
        return Arrays.stream(percents)
                .map(percent -> calculator.getPercentPoint(Double.parseDouble(percent)).toString())
                .collect(Collectors.joining(" "));
    }

    private long ratio(String[] words) throws Exception {
        long[] locked = new long[2];
        for (int round = 0; round < 6; round++) {
            locked[round % 2] += locked(words[1 + round % 2], words[3], Integer.parseInt(words[4]), Long.parseLong(words[5]));
        }
        return 100 * locked[0] / locked[1];
    }

    private long locked(String kind, String name, int threads, long millis) throws InterruptedException {
        AtomicLong locked = new AtomicLong();
        CountDownLatch done = new CountDownLatch(threads);
        long end = System.nanoTime() + millis * 1_000_000;
        for (int n = 0; n < threads; n++) {
            new Thread(() -> {
                try {
                    while (System.nanoTime() < end) {
                        Hold hold = lock(kind, name + "-" + kind);
                        hold.lock.run();
                        locked.incrementAndGet();
                        hold.unlock.run();
                    }
                } catch (Exception failed) {
                    failed.printStackTrace();
                }
                done.countDown();
            }).start();
        }
        done.await();
        return locked.get();
    }

    private Object tryLock(String[] words, Hold hold, boolean isWait) throws Exception {
        long time = Long.parseLong(words[3]);
        boolean isTaken = isWait ? hold.tryLock.run(time, TimeUnit.MILLISECONDS) : hold.lease.run(time, TimeUnit.SECONDS);
        if (isTaken) {
            enter(hold, words[2]);
        } else {
            of(words[1], words[2]).pop();
        }
        return isTaken;
    }

    private void enter(Hold hold, String name) {
        hold.isTaken = true;
        inside(name).add(Thread.currentThread().getName());
    }

    private Set<String> inside(String name) {
        return inside.computeIfAbsent(name, any -> ConcurrentHashMap.newKeySet());
    }

    private Deque<Hold> of(String kind, String name) {
        return holds.get().computeIfAbsent(kind + " " + name, any -> new ArrayDeque<>());
    }

    private Hold push(String kind, String name) throws Exception {
        Hold hold = lock(kind, name);
        of(kind, name).push(hold);
        return hold;
    }

    /** The one that {@code new} has made, or another. */
    private Hold free(String kind, String name) throws Exception {
        Hold last = of(kind, name).peek();
        return last != null && !last.isTaken ? last : push(kind, name);
    }

    private static Thread thread(String who) {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals(who))
                .findAny()
                .orElseThrow(() -> new IllegalArgumentException("no such thread: " + who));
    }

    private StockServices.StockService service(String section) {
        return spring.getBean(section, StockServices.StockService.class);
    }

    private static int load(StockServices.StockService service, int threads, int loops) throws InterruptedException {
        AtomicInteger returned = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(threads);
        for (int n = 0; n < threads; n++) {
            new Thread(() -> {
                for (int call = 0; call < loops; call++) {
                    try {
                        service.checkAndLock();
                        returned.incrementAndGet();
                    } catch (RuntimeException failed) {
                        failed.printStackTrace();
                    }
                }
                done.countDown();
            }).start();
        }
        done.await();
        return returned.get();
    }

    /** Ids are given in the order in which threads are made. */
    private String demo(String how, String name, long id) throws Exception {
        SyncLocks.Demos demos = spring.getBean(SyncLocks.Demos.class);
        FutureTask<String> work = new FutureTask<>(() -> {
            switch (how) {
                case "waits":
                    return demos.waits(name);
                case "now":
                    return demos.now(name);
                case "method":
                    return demos.method();
                case "demo4":
                    return demos.demo4(1, name);
                case "remembered":
                    return demos.remembered(name);
                case "bare":
                    return demos.bare();
                default:
                    return demos.mended(name);
            }
        });
        Thread thread;
        do {
            thread = new Thread(work, "http-nio-8080-exec-1");
        } while (thread.getId() < id);
        if (thread.getId() > id) {
            throw new IllegalStateException("the id " + id + " is taken");
        }
        thread.start();
        return work.get();
    }
}
