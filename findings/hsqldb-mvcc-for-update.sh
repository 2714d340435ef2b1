#!/usr/bin/env bash
# HSQLDB 2.7.4, hsqldb.tx=mvcc, READ COMMITTED (its default level): SELECT … FOR UPDATE of two transactions gets the same row at once, so a read
# under it, and a write of one less, loses a piece; with hsqldb.tx=locks the second one waits. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mvn -B -q dependency:copy -Dartifact=org.hsqldb:hsqldb:2.7.4 -DoutputDirectory="$folder"
cat >Probe.java <<'JAVA'
import java.sql.*;
import java.util.concurrent.*;

public class Probe {
    static int lock(Connection c) throws SQLException {
        try (ResultSet row = c.createStatement().executeQuery("SELECT pieces FROM stock WHERE id = 1 FOR UPDATE")) {
            row.next();
            return row.getInt(1);
        }
    }

    static void sell(Connection c, int read) throws SQLException {
        c.createStatement().executeUpdate("UPDATE stock SET pieces = " + (read - 1) + " WHERE id = 1");
        c.commit();
    }

    public static void main(String[] model) throws Exception {
        String url = "jdbc:hsqldb:mem:" + model[0] + ";hsqldb.tx=" + model[0];
        Connection a = DriverManager.getConnection(url), b = DriverManager.getConnection(url);
        a.createStatement().execute("CREATE TABLE stock (id INT PRIMARY KEY, pieces INT)");
        a.createStatement().execute("INSERT INTO stock VALUES (1, 10)");
        a.setAutoCommit(false);
        b.setAutoCommit(false);
        int readByA = lock(a);
        Future<Integer> second = Executors.newSingleThreadExecutor(task -> { Thread t = new Thread(task); t.setDaemon(true); return t; })
            .submit(() -> lock(b));
        boolean waits = false;
        try {
            second.get(3, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            waits = true;
        }
        if (waits) {
            sell(a, readByA);
            sell(b, second.get());
        } else {
            sell(b, second.get());
            sell(a, readByA);
        }
        ResultSet left = b.createStatement().executeQuery("SELECT pieces FROM stock");
        left.next();
        System.out.println(a.getMetaData().getDatabaseProductVersion() + " " + model[0] + ": the second FOR UPDATE "
            + (waits ? "waits" : "has the row at once") + "; 2 sold, " + (10 - left.getInt(1)) + " gone");
    }
}
JAVA
for model in mvcc locks; do java -cp hsqldb-2.7.4.jar Probe.java "$model" | grep -v '^latch count'; done | tee seen
diff seen - <<'SEEN'
2.7.4 mvcc: the second FOR UPDATE has the row at once; 2 sold, 1 gone
2.7.4 locks: the second FOR UPDATE waits; 2 sold, 2 gone
SEEN
