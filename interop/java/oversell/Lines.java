package oversell;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * How a Java process is told by lines what to do, so that a program in another language can watch its library.
 *
 * <p>1. A line on stdin is {@code ID WHO COMMAND ARGUMENT…}. WHO is a thread of that name, made when it is first named:
 * the owner of a lock is a thread.
 *
 * <p>2. The thread runs the command; the threads do not wait for each other.
 *
 * <p>3. Each line on stdout is {@code ID ok ANSWER} or {@code ID failed EXCEPTION}, in the order in which they end.
 *
 * <p>The end of stdin ends the process, whoever still waits for a lock.
 */
final class Lines {
    private final Commands commands;
    /** Not {@code System.out}, on which what is tried may print. */
    private final PrintStream answers;
    private final Map<String, ExecutorService> threads = new HashMap<>();

    /** What a thread can be told. */
    interface Commands {
        Object run(String[] words) throws Exception;
    }

    private Lines(Commands commands) throws IOException {
        this.commands = commands;
        answers = new PrintStream(new FileOutputStream(FileDescriptor.out), true, "UTF-8");
    }

    static void follow(Commands commands) throws IOException {
        Lines lines = new Lines(commands);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            lines.take(line.split(" "));
        }
        // The client is not shut down: that would wait for those who wait, or make them fail one after the other.
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
        } catch (Exception | OutOfMemoryError failure) {
            outcome = "failed " + failure.toString().replace('\n', ' ');
        }
        synchronized (this) {
            answers.println(id + " " + outcome);
        }
    }
}
