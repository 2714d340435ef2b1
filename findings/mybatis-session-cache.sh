#!/usr/bin/env bash
# MyBatis 3.5.19 on H2 at READ COMMITTED, a CAS loop in one session: where the UPDATE goes out by JDBC, as by Spring's JdbcTemplate beside a mapper, each further
# read is answered from the session's cache, and no try succeeds; by a mapper's own UPDATE, which empties the cache, or with flushCache the second does. It needs
# a JDK 17 and Maven, and no server. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.mybatis</groupId><artifactId>mybatis</artifactId><version>3.5.19</version></dependency>
    <dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.4.240</version></dependency>
  </dependencies>
</project>
XML
cat >Probe.java <<'JAVA'
import java.sql.*;
import org.apache.ibatis.annotations.*;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.*;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

public class Probe {
    public static class Stock { public int id, count, version; }
    public interface Stocks {
        @Select("SELECT id, pieces AS \"count\", version FROM stock WHERE id = 1") Stock read();
        @Options(flushCache = Options.FlushCachePolicy.TRUE)
        @Select("SELECT id, pieces AS \"count\", version FROM stock WHERE id = 1") Stock readAnew();
        @Update("UPDATE stock SET pieces = #{count} - 1, version = version + 1 WHERE id = 1 AND version = #{version}") int cas(Stock read);
    }

    interface Cas { int by(Stocks stocks, Stock read, Connection c) throws Exception; }

    interface Read { Stock by(Stocks s); }

    static Statement other;

    /** Somebody else sells five after the first read. */
    static void run(SqlSessionFactory f, String name, Read read, Cas cas) throws Exception {
        other.execute("UPDATE stock SET pieces = 100, version = 1");
        try (SqlSession session = f.openSession(TransactionIsolationLevel.READ_COMMITTED)) {
            Stocks stocks = session.getMapper(Stocks.class);
            int tries = 0;
            for (; tries < 10; tries++) {
                Stock mine = read.by(stocks);
                if (tries == 0) other.execute("UPDATE stock SET pieces = pieces - 5, version = version + 1");
                if (cas.by(stocks, mine, session.getConnection()) == 1) break;
            }
            session.commit(true);
            ResultSet left = other.executeQuery("SELECT pieces FROM stock"); left.next();
            System.out.println(name + ": " + (tries == 10 ? "refused ten times" : "sold at try " + (tries + 1)) + "; left " + left.getInt(1));
        }
    }

    public static void main(String[] none) throws Exception {
        org.h2.jdbcx.JdbcDataSource h2 = new org.h2.jdbcx.JdbcDataSource();
        h2.setUrl("jdbc:h2:mem:finding;DB_CLOSE_DELAY=-1");
        other = h2.getConnection().createStatement();
        other.execute("CREATE TABLE stock (id INT PRIMARY KEY, pieces INT, version INT)");
        other.execute("INSERT INTO stock VALUES (1, 100, 1)");
        Configuration settings = new Configuration(new Environment("h2", new JdbcTransactionFactory(), h2));
        settings.addMapper(Stocks.class);
        SqlSessionFactory f = new SqlSessionFactoryBuilder().build(settings);
        Cas jdbc = (s, r, c) -> {
            try (PreparedStatement p = c.prepareStatement("UPDATE stock SET pieces = ? - 1, version = version + 1 WHERE id = 1 AND version = ?")) {
                p.setInt(1, r.count);
                p.setInt(2, r.version);
                return p.executeUpdate();
            }
        };
        run(f, "UPDATE by a mapper", Stocks::read, (s, r, c) -> s.cas(r));
        run(f, "UPDATE by JDBC", Stocks::read, jdbc);
        run(f, "UPDATE by JDBC, flushCache", Stocks::readAnew, jdbc);
    }
}
JAVA
{ mvn -B -q dependency:copy-dependencies -DoutputDirectory=lib && javac -nowarn -cp 'lib/*' Probe.java; } >build.log 2>&1 || { tail build.log; exit 2; }
java -cp 'lib/*:.' Probe 2>errors | tee seen
diff seen - <<'SEEN'
UPDATE by a mapper: sold at try 2; left 94
UPDATE by JDBC: refused ten times; left 95
UPDATE by JDBC, flushCache: sold at try 2; left 94
SEEN
