package oversell;

import org.springframework.aop.framework.AopContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.EnableAspectJAutoProxy;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** The service of the seckill, as a bean: its own method takes the order, in a transaction where Spring begins one. */
public interface Orders {
    /** Through {@code this}. */
    boolean orderByThis();

    /** Through {@code AopContext.currentProxy()}. */
    boolean orderByProxy();

    /** Whether it runs in a transaction. */
    boolean createVoucherOrder();

    /** That one, of a context of its own. */
    static String order(String how) {
        Class<?> context = how.equals("hidden") ? Hidden.class : Exposed.class;
        try (AnnotationConfigApplicationContext spring = new AnnotationConfigApplicationContext(context)) {
            Orders orders = spring.getBean(Orders.class);
            boolean inside;
            switch (how) {
                case "bean":
                    inside = orders.createVoucherOrder();
                    break;
                case "this":
                    inside = orders.orderByThis();
                    break;
                default:
                    inside = orders.orderByProxy();
            }
            return (inside ? "in a transaction, " : "no transaction, ") + spring.getBean(Counted.class).begun + " begun";
        }
    }

    /** As the course writes it. */
    class Service implements Orders {
        @Override
        public boolean orderByThis() {
            return this.createVoucherOrder();
        }

        @Override
        public boolean orderByProxy() {
            Orders proxy = (Orders) AopContext.currentProxy();
            return proxy.createVoucherOrder();
        }

        @Override
        @Transactional
        public boolean createVoucherOrder() {
            return TransactionSynchronizationManager.isActualTransactionActive();
        }
    }

    /** Transactions of nothing, counted. */
    class Counted extends AbstractPlatformTransactionManager {
        private int begun;

        @Override
        protected Object doGetTransaction() {
            return this;
        }

        @Override
        protected void doBegin(Object transaction, TransactionDefinition definition) {
            begun++;
        }

        @Override
        protected void doCommit(DefaultTransactionStatus status) {
            // There is nothing to commit.
        }

        @Override
        protected void doRollback(DefaultTransactionStatus status) {
            // There is nothing to undo.
        }
    }

    /** Without {@code exposeProxy}, as Spring is by itself. */
    @Configuration
    @EnableTransactionManagement
    class Hidden {
        @Bean
        public Orders orders() {
            return new Service();
        }

        @Bean
        public Counted transactions() {
            return new Counted();
        }
    }

    /** With it. */
    @Configuration
    @EnableAspectJAutoProxy(exposeProxy = true)
    class Exposed extends Hidden {
    }
}
