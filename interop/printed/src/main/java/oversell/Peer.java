package oversell;

import com.baomidou.mybatisplus.extension.plugins.MybatisPlusInterceptor;
import com.baomidou.mybatisplus.extension.plugins.inner.OptimisticLockerInnerInterceptor;
import java.io.IOException;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import org.apache.curator.RetryPolicy;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.mybatis.spring.annotation.MapperScan;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.Banner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.EnableAspectJAutoProxy;
import org.springframework.context.support.GenericApplicationContext;

/**
 * A Java process that is told by {@link Lines} what to do with the printed classes. Its arguments: the URLs of MySQL and of
 * Redis, the address of ZooKeeper, and the name of the run.
 */
@SpringBootApplication
// The text takes AopContext.currentProxy(), which needs it.
@EnableAspectJAutoProxy(exposeProxy = true)
@MapperScan(basePackageClasses = StockMapper.class, markerInterface = com.baomidou.mybatisplus.core.mapper.BaseMapper.class)
public class Peer {
    /** As of the printed {@code DistributedLockClient}: one id for the process. */
    static final String ID = UUID.randomUUID().toString();

    public static void main(String[] args) throws Exception {
        // Answers alone go to stdout; the printed classes print, too.
        System.setOut(System.err);
        Stand stand = new Stand(args[0], args[2], args[3]);
        Lines.follow(new Commands(stand, start(stand, URI.create(args[1]))));
    }

    private static ConfigurableApplicationContext start(Stand stand, URI redis) throws IOException {
        Map<String, Object> settings = new HashMap<>();
        settings.put("spring.datasource.url", stand.database());
        settings.put("spring.datasource.username", stand.user());
        settings.put("spring.datasource.password", stand.password());
        settings.put("spring.datasource.driver-class-name", "com.mysql.jdbc.Driver");
        settings.put("redis", redis.toString());
        settings.put("spring.redis.host", redis.getHost());
        settings.put("spring.redis.port", redis.getPort());
        settings.put("zookeeper", stand.through());
        settings.put("spring.main.lazy-initialization", true);
        settings.put("mybatis-plus.global-config.banner", "false");
        SpringApplication spring = new SpringApplication(Peer.class);
        spring.setWebApplicationType(WebApplicationType.NONE);
        spring.setBannerMode(Banner.Mode.OFF);
        spring.setRegisterShutdownHook(false);
        spring.setDefaultProperties(settings);
        spring.addInitializers(context ->
                ((GenericApplicationContext) context).registerBean(Stand.class, () -> stand));
        return spring.run();
    }

    /** As §3.7. */
    @Bean
    CuratorFramework curatorFramework(@Value("${zookeeper}") String address) {
        RetryPolicy retry = new ExponentialBackoffRetry(1000, 3);
        CuratorFramework client = CuratorFrameworkFactory.newClient(address, retry);
        client.start();
        return client;
    }

    /** For {@link VersionedStock} alone: the other classes have no {@code @Version}. */
    @Bean
    MybatisPlusInterceptor optimisticLocker() {
        MybatisPlusInterceptor plugins = new MybatisPlusInterceptor();
        plugins.addInnerInterceptor(new OptimisticLockerInnerInterceptor());
        return plugins;
    }

    @Bean
    RedissonClient redissonClient(@Value("${redis}") String address) {
        Config config = new Config();
        // Locks have codecs of their own; the default of 3.11.2 does not start on a Java as new as 17.
        config.setCodec(StringCodec.INSTANCE).useSingleServer().setAddress(address);
        return Redisson.create(config);
    }
}
