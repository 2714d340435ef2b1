#!/usr/bin/env bash
# MyBatis-Plus 3.5.17 on H2, an entity with @Version: a refused updateById has raised the version in the object, so that the
# second try with it matches and overwrites the other's sale; and updateBatchById of a service says true although one of two
# rows, the stale one, was not written. It needs a JDK 17 and Maven, and no server. Exits with 1 if that has changed.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>com.baomidou</groupId><artifactId>mybatis-plus</artifactId><version>3.5.17</version></dependency>
    <dependency><groupId>org.springframework</groupId><artifactId>spring-jdbc</artifactId><version>6.2.19</version></dependency>
    <dependency><groupId>org.springframework</groupId><artifactId>spring-context</artifactId><version>6.2.19</version></dependency>
    <dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.4.240</version></dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>2.0.17</version></dependency>
  </dependencies>
</project>
XML
cat >Probe.java <<'JAVA'
import com.baomidou.mybatisplus.annotation.*;
import com.baomidou.mybatisplus.core.*;
import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import com.baomidou.mybatisplus.extension.plugins.MybatisPlusInterceptor;
import com.baomidou.mybatisplus.extension.plugins.inner.OptimisticLockerInnerInterceptor;
import com.baomidou.mybatisplus.spring.service.impl.ServiceImpl;
import java.sql.*;
import java.util.*;
import org.apache.ibatis.mapping.Environment;
import org.apache.ibatis.session.*;
import org.apache.ibatis.transaction.jdbc.JdbcTransactionFactory;

public class Probe {
    @TableName("stock")
    public static class Stock {
        @TableId private Integer id;
        @TableField("pieces") private Integer count;
        @Version private Integer version;
        public Integer getId() { return id; }
        public void setId(Integer to) { id = to; }
        public Integer getCount() { return count; }
        public void setCount(Integer to) { count = to; }
        public Integer getVersion() { return version; }
        public void setVersion(Integer to) { version = to; }
    }

    public interface Stocks extends BaseMapper<Stock> {}

    static class Service extends ServiceImpl<Stocks, Stock> {
        Service(Stocks stocks) { baseMapper = stocks; }
    }

    public static void main(String[] none) throws Exception {
        org.h2.jdbcx.JdbcDataSource h2 = new org.h2.jdbcx.JdbcDataSource();
        h2.setUrl("jdbc:h2:mem:finding;DB_CLOSE_DELAY=-1");
        Statement other = h2.getConnection().createStatement();
        other.execute("CREATE TABLE stock (id INT PRIMARY KEY, pieces INT, version INT)");
        other.execute("INSERT INTO stock VALUES (1, 100, 1), (2, 100, 1)");
        MybatisConfiguration settings = new MybatisConfiguration(new Environment("h2", new JdbcTransactionFactory(), h2));
        MybatisPlusInterceptor plugins = new MybatisPlusInterceptor();
        plugins.addInnerInterceptor(new OptimisticLockerInnerInterceptor());
        settings.addInterceptor(plugins);
        settings.addMapper(Stocks.class);
        try (SqlSession session = new MybatisSqlSessionFactoryBuilder().build(settings).openSession(true)) {
            Stocks stocks = session.getMapper(Stocks.class);
            Stock mine = stocks.selectById(1);
            other.execute("UPDATE stock SET pieces = pieces - 5, version = version + 1 WHERE id = 1");
            mine.setCount(mine.getCount() - 1);
            System.out.print("updateById of a stale object: " + stocks.updateById(mine) + " row, and again " + stocks.updateById(mine));
            System.out.println("; 6 sold, " + (100 - stocks.selectById(1).getCount()) + " gone");
            session.clearCache();
            List<Stock> two = List.of(stocks.selectById(1), stocks.selectById(2));
            other.execute("UPDATE stock SET pieces = 50, version = version + 1 WHERE id = 1");
            for (Stock one : two) one.setCount(10);
            System.out.print("updateBatchById of a stale object and a fresh one: " + new Service(stocks).updateBatchById(two));
            session.clearCache();
            System.out.println("; left: " + stocks.selectById(1).getCount() + ", " + stocks.selectById(2).getCount());
        }
    }
}
JAVA
{ mvn -B -q dependency:copy-dependencies -DoutputDirectory=lib && javac -nowarn -cp 'lib/*' Probe.java; } >build.log 2>&1 || { tail build.log; exit 2; }
java -cp 'lib/*:.' Probe 2>errors | tee seen
diff seen - <<'SEEN'
updateById of a stale object: 0 row, and again 1; 6 sold, 1 gone
updateBatchById of a stale object and a fresh one: true; left: 50, 10
SEEN
