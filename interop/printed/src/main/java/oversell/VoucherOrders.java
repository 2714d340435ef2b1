package oversell;

import com.baomidou.mybatisplus.core.mapper.BaseMapper;
import com.baomidou.mybatisplus.extension.service.impl.ServiceImpl;
import java.time.LocalDateTime;
import javax.annotation.Resource;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.springframework.aop.framework.AopContext;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/**
 * {@code VoucherOrderServiceImpl} of [002], version by version. The words of the text that are the same in each stand in
 * {@link Orders}.
 *
 * <p>Differs from the print: the user is an argument, where the text asks {@code UserHolder}.
 */
final class VoucherOrders {
    private VoucherOrders() {
    }

    interface SeckillVoucherMapper extends BaseMapper<SeckillVoucher> {
    }

    interface VoucherOrderMapper extends BaseMapper<VoucherOrder> {
    }

    @Service
    static class SeckillVouchers extends ServiceImpl<SeckillVoucherMapper, SeckillVoucher> {
    }

    interface IVoucherOrderService {
        Result seckillVoucher(Long voucherId, Long userId) throws Exception;

        Result createVoucherOrder(Long voucherId, Long userId);
    }

    static final class Result {
        private final String text;

        private Result(String text) {
            this.text = text;
        }

        static Result ok(Object data) {
            return new Result("ok " + data);
        }

        static Result fail(String why) {
            return new Result("fail " + why);
        }

        @Override
        public String toString() {
            return text;
        }
    }

    abstract static class Orders extends ServiceImpl<VoucherOrderMapper, VoucherOrder> implements IVoucherOrderService {
        @Resource
        private SeckillVouchers seckillVoucherService;

        @Resource
        private RedisIdWorker redisIdWorker;

        @Override
        public Result seckillVoucher(Long voucherId, Long userId) throws Exception {
            SeckillVoucher voucher = seckillVoucherService.getById(voucherId);
            if (voucher.getBeginTime().isAfter(LocalDateTime.now())) {
                return Result.fail("秒杀尚未开始!");
            }
            if (voucher.getEndTime().isBefore(LocalDateTime.now())) {
                return Result.fail("秒杀已经结束!");
            }
            if (voucher.getStock() < 1) {
                return Result.fail("库存不足!");
            }
            return order(voucherId, userId);
        }

        abstract Result order(Long voucherId, Long userId) throws Exception;

        @Override
        @Transactional
        public Result createVoucherOrder(Long voucherId, Long userId) {
            return oneEach(voucherId, userId);
        }

        Result oneEach(Long voucherId, Long userId) {
            int count = query().eq("user_id", userId).eq("voucher_id", voucherId).count();
            if (count > 0) {
                return Result.fail("用户已经购买过一次!");
            }
            return whereLeft(voucherId, userId);
        }

        Result whereLeft(Long voucherId, Long userId) {
            boolean success = seckillVoucherService.update()
                    .setSql("stock = stock - 1")
                    .eq("voucher_id", voucherId).gt("stock", 0)
                    .update();
            return saved(success, voucherId, userId);
        }

        Result always(Long voucherId, Long userId) {
            boolean success = seckillVoucherService.update()
                    .setSql("stock= stock -1")
                    .eq("voucher_id", voucherId).update();
            return saved(success, voucherId, userId);
        }

        private Result saved(boolean success, Long voucherId, Long userId) {
            if (!success) {
                return Result.fail("库存不足!");
            }
            VoucherOrder voucherOrder = new VoucherOrder();
            long orderId = redisIdWorker.nextId("order");
            voucherOrder.setId(orderId);
            voucherOrder.setUserId(userId);
            voucherOrder.setVoucherId(voucherId);
            save(voucherOrder);
            return Result.ok(orderId);
        }

        /** The text's way to begin a transaction. */
        IVoucherOrderService proxy() {
            return (IVoucherOrderService) AopContext.currentProxy();
        }
    }

    /** 实现秒杀下单: the stock is looked at, and deducted whatever it is by then. */
    @Service("first")
    static class First extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            return always(voucherId, userId);
        }
    }

    /** With {@code stock > 0} in the deduction. */
    @Service("conditional")
    static class Conditional extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            return whereLeft(voucherId, userId);
        }
    }

    /** 一人一单, 初步代码: the method is synchronized; called by its proxy, as the text wants it later. */
    @Service("synchronized")
    static class SynchronizedMethod extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            return proxy().createVoucherOrder(voucherId, userId);
        }

        @Override
        @Transactional
        public synchronized Result createVoucherOrder(Long voucherId, Long userId) {
            return oneEach(voucherId, userId);
        }
    }

    /** The lock is inside the transaction. */
    @Service("inside")
    static class LockInside extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            return proxy().createVoucherOrder(voucherId, userId);
        }

        @Override
        @Transactional
        public Result createVoucherOrder(Long voucherId, Long userId) {
            synchronized (userId.toString().intern()) {
                return oneEach(voucherId, userId);
            }
        }
    }

    /** 在调用处上锁: the lock is round the transaction. */
    @Service("outside")
    static class LockOutside extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            synchronized (userId.toString().intern()) {
                return proxy().createVoucherOrder(voucherId, userId);
            }
        }
    }

    /** The same without {@code intern()}. */
    @Service("new-string")
    static class LockOnNewString extends Orders {
        @Override
        Result order(Long voucherId, Long userId) {
            synchronized (userId.toString()) {
                return proxy().createVoucherOrder(voucherId, userId);
            }
        }
    }

    /** 实现分布式锁版本一: the key is the user's, for 1200 s. */
    @Service("redis-lock")
    static class UnderRedisLock extends Orders {
        @Resource
        private StringRedisTemplate stringRedisTemplate;

        @Override
        Result order(Long voucherId, Long userId) {
            return under(new SimpleRedisLock("order:" + userId, stringRedisTemplate), voucherId, userId);
        }

        final Result under(SimpleRedisLock lock, Long voucherId, Long userId) {
            boolean isLock = lock.tryLock(1200);
            if (!isLock) {
                return Result.fail("不允许重复下单");
            }
            try {
                return proxy().createVoucherOrder(voucherId, userId);
            } finally {
                lock.unlock();
            }
        }
    }

    /** 解决Redis分布式锁误删问题: the value is compared before the key is deleted. */
    @Service("redis-lock-owner")
    static class UnderComparedLock extends UnderRedisLock {
        @Resource
        private StringRedisTemplate stringRedisTemplate;

        @Override
        Result order(Long voucherId, Long userId) {
            return under(new SimpleRedisLock.Comparing("order:" + userId, stringRedisTemplate), voucherId, userId);
        }
    }

    /** 利用Java代码调用Lua脚本改造分布式锁. */
    @Service("redis-lock-lua")
    static class UnderScriptedLock extends UnderRedisLock {
        @Resource
        private StringRedisTemplate stringRedisTemplate;

        @Override
        Result order(Long voucherId, Long userId) {
            return under(new SimpleRedisLock.Scripted("order:" + userId, stringRedisTemplate), voucherId, userId);
        }
    }

    /** The repaired twin: the voucher is in the key. */
    @Service("redis-lock-mended")
    static class UnderRedisLockMended extends UnderRedisLock {
        @Resource
        private StringRedisTemplate stringRedisTemplate;

        @Override
        Result order(Long voucherId, Long userId) {
            return under(new SimpleRedisLock("order:" + voucherId + ":" + userId, stringRedisTemplate), voucherId, userId);
        }
    }

    /** 分布式锁-Redission快速入门. */
    @Service("rlock")
    static class UnderRLock extends Orders {
        @Resource
        private RedissonClient redissonClient;

        @Override
        Result order(Long voucherId, Long userId) {
            RLock lock = redissonClient.getLock("lock:order:" + userId);
            boolean isLock = lock.tryLock();
            if (!isLock) {
                return Result.fail("不允许重复下单");
            }
            try {
                return proxy().createVoucherOrder(voucherId, userId);
            } finally {
                lock.unlock();
            }
        }
    }
}
