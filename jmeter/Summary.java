import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Before: {@code java Summary.java plans FOLDER PLAN HOW HOST:PORT STRATEGY STEP} says what will run and about how long it takes, and
 * refuses a plan that is not there and a strategy or step that the service does not have: before one request of the load is sent.
 *
 * <p>Then: {@code java Summary.java run FOLDER PLAN COUNT JMETER RUN HOST:PORT} runs each plan with the JMeter that Maven has laid out
 * below JMETER, and prints after each, what JMeter's own summariser leaves out, which is the 99 % line and what was sold; where its
 * results and its dashboard are; and, as its last line, how many were oversold of a stock of COUNT in each store. A plan that does not
 * ask what is left, as one that a student has made, is judged by the stock before and after it. Exit status 1 where a plan had an error.
 *
 * <p>{@code java Summary.java dashboard RESULTS FOLDER JMETER} makes the dashboard of results that are there.
 *
 * <p>By their labels, as the plans set them, each with its Chinese behind it: "set up: …" are no buyers' requests and count only where
 * they fail; what begins with a number is a result; "… sold out" and "… not twice" are answers, no errors. "limit …" and "limit … refused" are drawn as
 * strips.
 */
class Summary {
    record Sample(long start, long elapsed, String label, boolean success, String problem) {
        boolean buyers() {
            return !label.startsWith("set up: ") && !result();
        }

        boolean result() {
            return label.matches("-?\\d.*");
        }
    }

    /** What a strategy has left, as the label of a plan's result says: of what it sells, and in each store. */
    static final Pattern LEFT = Pattern.compile("(-?\\d+) left [^:]*: (.+), (mysql -?\\d+, redis -?\\d+)");

    /** Percentiles of all samples; by default they are those of the last 20,000. */
    static final String ALL_SAMPLES = "-Jjmeter.reportgenerator.statistic_window=-1";

    /** What both stores hold of product 1. */
    record Stock(long mysql, long redis) {
        @Override
        public String toString() {
            return "mysql " + mysql + ", redis " + redis;
        }
    }

    static final Pattern STOCK = Pattern.compile("\"mysql\":\\{.*?\"count\":(-?\\d+).*\"redis\":\\{.*?\"count\":(-?\\d+)");

    public static void main(String[] arguments) throws IOException, InterruptedException {
        if (arguments[0].equals("dashboard")) {
            List<String> options = List.of("-g", Path.of(arguments[1]).toAbsolutePath().toString(), "-o", Path.of(arguments[2]).toAbsolutePath().toString());
            System.exit(jmeter(laidOut(Path.of(arguments[3])), options).inheritIO().start().waitFor());
        }
        Path folder = Path.of(arguments[1]).toAbsolutePath().normalize();
        if (arguments[0].equals("plans")) {
            List<String> run = plans(folder, arguments[2], arguments[3]);
            String at = "http://" + arguments[4];
            if (run.contains("check-lock")) known(at + "/strategies/" + arguments[5]);
            if (run.contains("seckill")) known(at + "/voucher-order/strategies/" + arguments[6]);
        }
        else run(folder, arguments[2], Long.parseLong(arguments[3]), Path.of(arguments[4]),
                Path.of(arguments[5]).toAbsolutePath().normalize(), "http://" + arguments[6]);
    }

    /** JMeter as its own start script opens it, with these options. */
    static ProcessBuilder jmeter(Path home, List<String> options) {
        List<String> command = new ArrayList<>(List.of("java", "-Xmx512m", "-Djava.awt.headless=true"));
        for (String name : List.of("lang", "lang.invoke", "lang.reflect", "util", "text")) {
            command.addAll(List.of("--add-opens", "java.base/java." + name + "=ALL-UNNAMED"));
        }
        command.addAll(List.of("-jar", "ApacheJMeter-5.6.3.jar", ALL_SAMPLES));
        command.addAll(options);
        return new ProcessBuilder(command).directory(home.resolve("bin").toFile());
    }

    /** What is in stock now; null where the service does not say. */
    static Stock stock(String at) throws InterruptedException {
        try {
            Matcher counts = STOCK.matcher(ask(at + "/stock").body());
            return counts.find() ? new Stock(Long.parseLong(counts.group(1)), Long.parseLong(counts.group(2))) : null;
        } catch (IOException | IllegalArgumentException error) {
            return null;
        }
    }

    static HttpResponse<String> ask(String address) throws IOException, InterruptedException {
        HttpRequest ask = HttpRequest.newBuilder(URI.create(address)).timeout(Duration.ofSeconds(10)).build();
        return HttpClient.newHttpClient().send(ask, HttpResponse.BodyHandlers.ofString());
    }

    /** Runs the plans one after the other, with a report of each as soon as it is through. */
    static void run(Path folder, String wanted, long count, Path layouts, Path run, String at) throws IOException, InterruptedException {
        Path home = laidOut(layouts);
        Files.createDirectories(run.resolve("logs"));
        boolean failed = false;
        for (String plan : chosen(folder, wanted)) {
            Path results = run.resolve(plan + ".csv");
            Path dashboard = run.resolve("dashboards").resolve(plan);
            Files.createDirectories(dashboard.getParent());
            Path log = run.resolve("logs").resolve(plan + ".log");
            List<String> options = List.of("-n", "-t", folder.resolve(plan + ".jmx").toString(), "-l", results.toString(),
                    "-j", log.toString(), "-e", "-o", dashboard.toString());
            Path output = run.resolve("logs").resolve(plan + ".out");
            // Around a run that it judges, `oversell judge` says what was bought and what is gone.
            Stock before = System.getenv("OVERSELL_URL") == null ? stock(at) : null;
            int ended = jmeter(home, options).redirectErrorStream(true).redirectOutput(output.toFile()).start().waitFor();
            if (Files.exists(results)) failed |= results(results, dashboard, count, before, stock(at));
            if (ended != 0 || !Files.exists(results)) {
                System.out.println(plan + ": JMeter ended with " + ended + ": " + output);
                failed = true;
            }
        }
        if (failed) System.exit(1);
    }

    /** The newest JMeter below a folder. */
    static Path laidOut(Path layouts) throws IOException {
        List<Path> homes = new ArrayList<>();
        for (Path layout : in(layouts, "")) {
            if (Files.exists(layout.resolve("jmeter/bin/ApacheJMeter-5.6.3.jar"))) homes.add(layout.resolve("jmeter"));
        }
        if (homes.isEmpty()) throw new IOException("Maven has laid out no JMeter below " + layouts);
        return homes.get(homes.size() - 1).toAbsolutePath();
    }

    /** Ends with the service's own words where it does not know the strategy: it names those that it has. */
    static void known(String strategy) {
        String words;
        try {
            HttpResponse<String> answer = ask(strategy + "/text");
            if (answer.statusCode() == 200) return;
            words = answer.statusCode() + " " + answer.body().trim();
        } catch (IOException | InterruptedException | IllegalArgumentException error) {
            words = "does not answer: " + error;
        }
        System.err.println(strategy + ": " + words);
        System.exit(2);
    }

    /** About how long each plan takes with 100 × 50 on two cores, in seconds. */
    static final Map<String, Integer> SECONDS = Map.of("check-lock", 20, "compare", 1500, "demo", 40, "latch", 20, "limits", 40,
            "read-write", 60, "seckill", 20, "semaphore", 30);

    static List<String> plans(Path folder, String wanted, String how) throws IOException {
        List<String> run = chosen(folder, wanted);
        if (run.isEmpty()) {
            System.err.println("there is no plan " + wanted + "; there are: " + String.join(", ", all(folder)));
            System.exit(2);
        }
        int minutes = (run.stream().mapToInt(plan -> SECONDS.getOrDefault(plan, 0)).sum() + 59) / 60;
        String takes = SECONDS.keySet().containsAll(run)
                ? "about " + minutes + (minutes == 1 ? " minute" : " minutes") + " with 100 × 50 on two cores" : "as long as the plan says";
        // The address; then the parameters of our plans, and those of the seckill.
        List<String> parts = List.of(how.split("; "));
        int known = run.contains("seckill") ? 3 : SECONDS.keySet().containsAll(run) ? 2 : 1;
        System.out.println("JMeter runs " + String.join(", ", run) + " (" + String.join("; ", parts.subList(0, Math.min(known, parts.size())))
                + "): " + takes + "; the figures of each come as it ends");
        return run;
    }

    static List<String> all(Path folder) throws IOException {
        return in(folder, ".jmx").stream().map(Summary::name).toList();
    }

    static List<String> chosen(Path folder, String wanted) throws IOException {
        return all(folder).stream().filter(p -> wanted.matches("\\*?") || wanted.equals(p) || wanted.equals(p + ".jmx")).toList();
    }

    /** Prints what came of a plan; whether it had an error. */
    static boolean results(Path file, Path dashboard, long count, Stock before, Stock after) throws IOException {
        List<Sample> all = read(file);
        List<Sample> buyers = all.stream().filter(Sample::buyers).toList();
        List<Sample> errors = all.stream().filter(s -> !s.success).toList();
        String name = name(file);
        List<Sample> limited = all.stream().filter(s -> s.label.startsWith("limit ")).toList();
        if (limited.isEmpty()) System.out.println(name + ": " + figures(all, buyers, errors.size()) + left(all));
        else strips(limited).forEach(System.out::println);
        errors.stream().findFirst().ifPresent(e ->
                System.out.println(name + ": the first error: " + e.label + ": " + e.problem.replaceAll("\\s+", " ")));
        System.out.println(name + ": results " + file);
        System.out.println(name + ": dashboard " + dashboard.resolve("index.html"));
        String oversold = oversold(all, buyers, count);
        if (oversold.isEmpty() && before != null && after != null) {
            System.out.println(name + ": stock before: " + before + "; after: " + after);
            oversold = oversold(before, after, buyers.stream().filter(Sample::success).count());
        }
        if (!oversold.isEmpty()) System.out.println(name + ": " + oversold);
        return !errors.isEmpty();
    }

    /** What a plan that does not ask what is left has sold, less what left the stock; each answer without an error is a piece sold. */
    static String oversold(Stock before, Stock after, long sold) {
        long gone = before.mysql - after.mysql + before.redis - after.redis;
        if (before.equals(after)) return "";
        if (gone < 0 || gone > sold) return "the stock was changed by something else meanwhile: what was oversold is not known";
        return "oversold " + (sold - gone) + ": " + sold + " sold, and the stock fell by " + gone;
    }

    /** What each strategy sold, less what left its shelf. */
    static String oversold(List<Sample> all, List<Sample> buyers, long count) {
        List<String> by = new ArrayList<>();
        long sum = 0;
        List<Matcher> shelves = all.stream().map(s -> LEFT.matcher(s.label)).filter(Matcher::matches).toList();
        for (Matcher shelf : shelves) {
            String strategy = shelf.group(2);
            long sold = buyers.stream().filter(s -> s.success && s.label.equals(strategy)).count();
            long gone = count - Long.parseLong(shelf.group(1));
            sum += sold - gone;
            if (sold != gone) by.add((sold - gone) + " by " + strategy);
        }
        if (shelves.isEmpty()) return "";
        return "oversold " + sum + (shelves.size() > 1 && sum != 0 ? ": " + String.join(", ", by) : "");
    }

    /** What stands in a folder, by its ending; nothing where there is no folder. */
    static List<Path> in(Path folder, String ending) throws IOException {
        if (!Files.isDirectory(folder)) return List.of();
        try (var found = Files.list(folder)) {
            return found.filter(f -> f.toString().endsWith(ending)).sorted().toList();
        }
    }

    static String name(Path file) {
        return file.getFileName().toString().replaceAll("\\.[a-z]+$", "");
    }

    static String figures(List<Sample> all, List<Sample> buyers, int errors) {
        long[] elapsed = buyers.stream().mapToLong(Sample::elapsed).sorted().toArray();
        long began = buyers.stream().mapToLong(Sample::start).min().orElse(0);
        long ended = buyers.stream().mapToLong(s -> s.start + s.elapsed).max().orElse(0);
        double average = buyers.stream().mapToLong(Sample::elapsed).average().orElse(0);
        long p99 = elapsed.length == 0 ? 0 : elapsed[(int) Math.ceil(elapsed.length * 0.99) - 1];
        long soldOut = buyers.stream().filter(s -> s.success && s.label.contains(" sold out")).count();
        long notTwice = buyers.stream().filter(s -> s.success && s.label.contains(" not twice")).count();
        long sold = buyers.stream().filter(Sample::success).count() - soldOut - notTwice;
        // Only a plan that asks what is left sells anything.
        boolean sells = all.stream().anyMatch(s -> s.result() && (s.label.contains(" left ") || s.label.contains(" orders ")));
        if (!sells) return String.format("samples %d, errors %d, average %.0f ms, longest %d ms",
                buyers.size(), errors, average, elapsed.length == 0 ? 0 : elapsed[elapsed.length - 1]);
        String figures = String.format("samples %d, errors %d, throughput %.0f/s, average %.0f ms, p99 %d ms, sold %d, sold out %d",
                buyers.size(), errors, buyers.size() * 1000.0 / Math.max(1, ended - began), average, p99, sold, soldOut);
        return notTwice == 0 ? figures : figures + ", not twice " + notTwice;
    }

    /** For each limit, when it let through and when it refused: a column for each 100 ms, with how many (+: ten or more). */
    static List<String> strips(List<Sample> limited) {
        List<String> lines = new ArrayList<>();
        lines.add("columns of 100 ms, each with how many were answered in it (+: ten or more)");
        for (String limit : limited.stream().map(Summary::limit).distinct().toList()) {
            List<Sample> own = limited.stream().filter(s -> limit(s).equals(limit)).toList();
            long began = own.stream().mapToLong(Sample::start).min().orElse(0);
            int columns = own.stream().mapToInt(s -> column(s, began)).max().orElse(0) + 1;
            lines.add(limit);
            lines.add("  let through |" + strip(own.stream().filter(s -> s.label.equals(limit)).toList(), began, columns));
            lines.add("  refused     |" + strip(own.stream().filter(s -> !s.label.equals(limit)).toList(), began, columns));
            StringBuilder seconds = new StringBuilder("              ");
            for (int s = 0; s * 10 < columns; s++) seconds.append(String.format("%-10s", s + " s"));
            lines.add(seconds.toString().stripTrailing());
        }
        return lines;
    }

    static String limit(Sample sample) {
        return sample.label.replaceFirst(" refused.*", "");
    }

    static int column(Sample sample, long began) {
        return (int) ((sample.start + sample.elapsed - began) / 100);
    }

    static String strip(List<Sample> samples, long began, int columns) {
        int[] counts = new int[columns];
        samples.forEach(s -> counts[column(s, began)]++);
        StringBuilder strip = new StringBuilder();
        for (int n : counts) strip.append(n == 0 ? "." : n < 10 ? String.valueOf(n) : "+");
        return strip + "| " + samples.size();
    }

    /** The result of a plan that has one: what the shelves held at the end, or what it says besides. */
    static String left(List<Sample> all) {
        List<String> results = all.stream().filter(Sample::result).map(Sample::label).filter(l -> !l.contains(" oversold ")).toList();
        if (results.size() != 1) return "";
        Matcher shelves = LEFT.matcher(results.get(0));
        return shelves.matches() ? ", left: " + shelves.group(3) : ", " + results.get(0);
    }

    static List<Sample> read(Path file) throws IOException {
        List<List<String>> rows = rows(Files.readString(file));
        List<String> names = rows.get(0);
        int start = names.indexOf("timeStamp"), elapsed = names.indexOf("elapsed");
        int label = names.indexOf("label"), success = names.indexOf("success");
        int message = names.indexOf("responseMessage"), failure = names.indexOf("failureMessage");
        return rows.stream().skip(1).map(r -> new Sample(Long.parseLong(r.get(start)), Long.parseLong(r.get(elapsed)),
                r.get(label), r.get(success).equals("true"),
                r.get(failure).isEmpty() ? r.get(message) : r.get(failure))).toList();
    }

    /** RFC 4180: a quoted field may hold commas, line ends and doubled quotes, as failure messages do. */
    static List<List<String>> rows(String text) {
        List<List<String>> rows = new ArrayList<>();
        List<String> row = new ArrayList<>();
        StringBuilder field = new StringBuilder();
        boolean quoted = false;
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"') {
                if (quoted && i + 1 < text.length() && text.charAt(i + 1) == '"') field.append(text.charAt(i++));
                else quoted = !quoted;
            } else if (quoted || c != ',' && c != '\n') {
                field.append(c);
            } else {
                row.add(field.toString());
                field.setLength(0);
                if (c == '\n') {
                    rows.add(row);
                    row = new ArrayList<>();
                }
            }
        }
        return rows;
    }
}
