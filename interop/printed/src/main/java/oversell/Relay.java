package oversell;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** Stands between this process and ZooKeeper, so that the connection can be cut: for a moment, and the session goes on. */
final class Relay {
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final Set<Socket> open = ConcurrentHashMap.newKeySet();
    private final AtomicBoolean losesNextAnswer = new AtomicBoolean();
    private final String host;
    private final int port;

    Relay(String address) throws IOException {
        int colon = address.lastIndexOf(':');
        host = address.substring(0, colon);
        port = Integer.parseInt(address.substring(colon + 1));
        start(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** Closes the connections; new ones pass. */
    void cut() {
        open.forEach(Relay::close);
    }

    /** The next answer of the server is lost, and with it the connections. */
    void loseNextAnswer() {
        losesNextAnswer.set(true);
    }

    private void accept() throws IOException {
        while (true) {
            Socket client = listener.accept();
            Socket server = new Socket(host, port);
            open.add(client);
            open.add(server);
            start(() -> copy(client, server, false));
            start(() -> copy(server, client, true));
        }
    }

    private void copy(Socket from, Socket to, boolean areAnswers) {
        byte[] bytes = new byte[8192];
        try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
            for (int read = in.read(bytes); read > 0; read = in.read(bytes)) {
                if (areAnswers && losesNextAnswer.getAndSet(false)) {
                    cut();
                    return;
                }
                out.write(bytes, 0, read);
            }
        } catch (IOException cut) {
            // Both ends are closed below.
        } finally {
            close(from);
            close(to);
            open.remove(from);
            open.remove(to);
        }
    }

    private static void close(Socket socket) {
        try {
            socket.close();
        } catch (IOException closed) {
            // It is closed all the same.
        }
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void start(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException over) {
                over.printStackTrace();
            }
        }, "relay");
        thread.setDaemon(true);
        thread.start();
    }
}
