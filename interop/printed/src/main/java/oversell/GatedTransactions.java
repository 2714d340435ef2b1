package oversell;

import java.util.concurrent.CountDownLatch;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.stereotype.Component;
import org.springframework.transaction.support.DefaultTransactionStatus;

/** Spring's own transactions, whose commits can be held up. */
@Component
class GatedTransactions extends DataSourceTransactionManager {
    private volatile CountDownLatch gate = new CountDownLatch(0);

    GatedTransactions(DataSource dataSource) {
        super(dataSource);
    }

    void hold() {
        gate = new CountDownLatch(1);
    }

    void free() {
        gate.countDown();
    }

    @Override
    protected void doCommit(DefaultTransactionStatus status) {
        try {
            gate.await();
        } catch (InterruptedException stopped) {
            throw new IllegalStateException(stopped);
        }
        super.doCommit(status);
    }
}
