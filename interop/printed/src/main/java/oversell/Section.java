package oversell;

import java.util.concurrent.CountDownLatch;

/** Work that lasts until the stand says {@code finish}. */
final class Section {
    private static final CountDownLatch FINISH = new CountDownLatch(1);

    private Section() {
    }

    static String work() throws InterruptedException {
        FINISH.await();
        return "done";
    }

    static void finish() {
        FINISH.countDown();
    }
}
