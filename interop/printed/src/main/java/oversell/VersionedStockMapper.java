package oversell;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;

interface VersionedStockMapper extends BaseMapper<VersionedStock> {}
