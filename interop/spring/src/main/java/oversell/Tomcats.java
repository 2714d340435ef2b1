package oversell;

import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.startup.Tomcat;

/** A Tomcat whose one route answers what the course's lock writes into the key: the id of its thread and its name. */
final class Tomcats {
    /** As many as Tomcat keeps ready. */
    private static final int AT_ONCE = 10;
    private static final int WORK_MS = 200;

    private int port;

    private static final class Demo extends HttpServlet {
        private static final long serialVersionUID = 1L;

        @Override
        protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
            try {
                Thread.sleep(WORK_MS);
            } catch (InterruptedException stopped) {
                throw new IOException(stopped);
            }
            Thread own = Thread.currentThread();
            response.getWriter().print(own.getId() + "-" + own.getName());
        }
    }

    String serve(int at) throws IOException, LifecycleException {
        port = at;
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("tomcat").toString());
        tomcat.setPort(at);
        Context root = tomcat.addContext("", null);
        Tomcat.addServlet(root, "demo2", new Demo());
        root.addServletMappingDecoded("/demo2", "demo2");
        tomcat.getConnector();
        tomcat.start();
        return "serves";
    }

    /** What so many requests at once were answered. */
    Set<String> values() {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest get = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/demo2")).build();
        List<CompletableFuture<HttpResponse<String>>> asked = new ArrayList<>();
        for (int i = 0; i < AT_ONCE; i++) {
            asked.add(client.sendAsync(get, HttpResponse.BodyHandlers.ofString()));
        }
        Set<String> values = new TreeSet<>();
        asked.forEach(answer -> values.add(answer.join().body()));
        return values;
    }

    /** The words from the second on are another's values; {@code part} is what is compared of a value. */
    long common(String[] words, UnaryOperator<String> part) {
        List<String> others = Arrays.stream(words).skip(1).map(part).collect(Collectors.toList());
        Set<String> own = values();
        long equal = own.stream().map(part).filter(others::contains).count();
        return equal * 100 / ((long) own.size() * others.size());
    }
}
