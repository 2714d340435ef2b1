package oversell;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A Java process that is told by lines what to do, so that a test in another language can watch Curator.
 *
 * <p>1. A line on stdin is {@code ID WHO COMMAND ARGUMENT…}. WHO is a thread of that name, made when it is first named:
 * Curator's owner is a thread.
 *
 * <p>2. The thread runs the command ({@link Commands}); the threads do not wait for each other.
 *
 * <p>3. Each line on stdout is {@code ID ok ANSWER} or {@code ID failed EXCEPTION}, in the order in which they end.
 *
 * <p>The end of stdin ends the process, whoever still waits for a lock. Its one argument is the address,
 * {@code host:port}.
 */
public final class Peer {
    private static final int SESSION_MS = 10_000;
    private static final int CONNECTION_MS = 5_000;

    private final Commands commands;
    private final Map<String, ExecutorService> threads = new HashMap<>();

    private Peer(Commands commands) {
        this.commands = commands;
    }

    public static void main(String[] args) throws IOException {
        CuratorFramework curator = CuratorFrameworkFactory.newClient(
                args[0], SESSION_MS, CONNECTION_MS, new ExponentialBackoffRetry(100, 5));
        curator.start();
        Peer peer = new Peer(new Commands(curator));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            peer.take(line.split(" "));
        }
        // Not close(): those who wait would fail one after the other.
        Runtime.getRuntime().halt(0);
    }

    private void take(String[] words) {
        String[] command = Arrays.copyOfRange(words, 2, words.length);
        threads.computeIfAbsent(words[1], who -> Executors.newSingleThreadExecutor(task -> new Thread(task, who)))
                .execute(() -> answer(words[0], command));
    }

    private void answer(String id, String[] command) {
        String outcome;
        try {
            outcome = "ok " + commands.run(command);
        } catch (Exception failure) {
            outcome = "failed " + failure.toString().replace('\n', ' ');
        }
        synchronized (this) {
            System.out.println(id + " " + outcome);
            System.out.flush();
        }
    }
}
