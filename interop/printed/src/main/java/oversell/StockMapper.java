package oversell;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import org.apache.ibatis.annotations.Select;

/** Of §1.2, with the statement of §1.7.2, which stands in an XML file there. */
interface StockMapper extends BaseMapper<Stock> {
    @Select("select * from db_stock where id = #{id} for update")
    Stock selectStockForUpdate(Long id);
}
