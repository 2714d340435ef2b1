package oversell;

import com.baomidou.mybatisplus.annotation.TableName;
import com.baomidou.mybatisplus.annotation.Version;

/**
 * The same row with the optimistic lock of MyBatis-Plus, which the text does not use: {@code updateById} compares the version, and
 * raises it.
 */
@TableName("db_stock")
class VersionedStock extends Stock {
    @Version
    private Long version;

    @Override
    public Long getVersion() {
        return version;
    }

    @Override
    public void setVersion(Long version) {
        this.version = version;
    }
}
