package oversell;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;

/** Of chapter 4. */
interface LockMapper extends BaseMapper<Lock> {
}
