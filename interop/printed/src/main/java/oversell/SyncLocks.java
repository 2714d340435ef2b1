package oversell;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.annotation.Resource;
import org.apache.commons.lang3.StringUtils;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.Signature;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.reflect.MethodSignature;
import org.springframework.expression.EvaluationContext;
import org.springframework.expression.Expression;
import org.springframework.expression.ExpressionParser;
import org.springframework.expression.common.TemplateParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;
import org.springframework.expression.spel.support.StandardEvaluationContext;
import org.springframework.stereotype.Component;
import org.springframework.util.Assert;

/** The annotations, the aspect and the demos of [004]. */
final class SyncLocks {
    private SyncLocks() {
    }

    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @interface SyncLockable {
        String key() default "";

        long expire() default 10000L;
    }

    /** The text names it, and does not print it. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @interface SyncLockableNow {
        String key() default "";

        long expire() default 10000L;
    }

    /** The same released only by whoever has it: the repaired twin. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @interface SyncLockableMended {
        String key() default "";
    }

    /** As {@link SyncLockableNow}, with a lock that remembers its value in a ThreadLocal. */
    @Target(ElementType.METHOD)
    @Retention(RetentionPolicy.RUNTIME)
    @interface SyncLockableRemembered {
        String key() default "";
    }

    /** {@code SyncLockHandle}, with the expressions of demo4. */
    @Aspect
    @Component
    static class Handle {
        @Resource
        private SyncLockFactory syncLockFactory;
        @Resource
        private SimpleRedisClient simpleRedisClient;

        /** One object for each key, as the factory has. */
        private final Map<String, SyncLock> rememberedLocks = new ConcurrentHashMap<>();

        @Around("@annotation(syncLockable)")
        public Object around(ProceedingJoinPoint point, SyncLockable syncLockable) throws Throwable {
            String key = syncLockable.key();
            Long expire = syncLockable.expire();
            if (StringUtils.isBlank(key)) {
                key = this.getDetaultKey(point);
            }
            key = this.parseEL(key, point);
            SyncLock lock = syncLockFactory.build(key, expire, null);
            try {
                boolean isLock = lock.lock();
                Assert.isTrue(isLock, "not locked");
                return point.proceed();
            } finally {
                lock.unLock();
            }
        }

        @Around("@annotation(syncLockableNow)")
        public Object around(ProceedingJoinPoint point, SyncLockableNow syncLockableNow) throws Throwable {
            String key = syncLockableNow.key();
            Long expire = syncLockableNow.expire();
            if (StringUtils.isBlank(key)) {
                key = this.getDetaultKey(point);
            }
            key = this.parseEL(key, point);
            SyncLock lock = syncLockFactory.build(key, expire, null);
            try {
                boolean isLock = lock.lockNow();
                Assert.isTrue(isLock, "not locked, another is at work");
                return point.proceed();
            } finally {
                lock.unLock();
            }
        }

        @Around("@annotation(mended)")
        public Object around(ProceedingJoinPoint point, SyncLockableMended mended) throws Throwable {
            SyncLock lock = syncLockFactory.build(this.parseEL(mended.key(), point), 10000L, null);
            Assert.isTrue(lock.lockNow(), "not locked, another is at work");
            try {
                return point.proceed();
            } finally {
                lock.unLock();
            }
        }

        @Around("@annotation(remembered)")
        public Object around(ProceedingJoinPoint point, SyncLockableRemembered remembered) throws Throwable {
            SyncLock lock = rememberedLocks.computeIfAbsent(this.parseEL(remembered.key(), point),
                    key -> new SyncLock.Remembered(key, simpleRedisClient, 10000L));
            try {
                Assert.isTrue(lock.lockNow(), "not locked, another is at work");
                return point.proceed();
            } finally {
                lock.unLock();
            }
        }

        private String getDetaultKey(ProceedingJoinPoint point) throws NoSuchMethodException {
            Signature sig = point.getSignature();
            MethodSignature msig = null;
            if (!(sig instanceof MethodSignature)) {
                throw new IllegalArgumentException("methods only");
            }
            msig = (MethodSignature) sig;
            Object target = point.getTarget();
            Method currentMethod = target.getClass().getMethod(msig.getName(), msig.getParameterTypes());
            String methodName = currentMethod.getName();
            String className = target.getClass().getName();
            return className + "-" + methodName;
        }

        private String parseEL(String key, ProceedingJoinPoint point) {
            ExpressionParser expressionParser = new SpelExpressionParser();
            Expression expression = expressionParser.parseExpression(key, new TemplateParserContext());
            EvaluationContext context = new StandardEvaluationContext();
            String[] parameterNames = ((MethodSignature) point.getSignature()).getParameterNames();
            Object[] args = point.getArgs();
            if (parameterNames == null || parameterNames.length <= 0) {
                return key;
            }
            for (int i = 0; i < parameterNames.length; i++) {
                context.setVariable(parameterNames[i], args[i]);
            }
            key = expression.getValue(context).toString();
            return key;
        }
    }

    /**
     * As demo4: the key is an expression of the arguments.
     *
     * <p>Differs from the print: the work lasts until the stand says so, where the text sleeps for 5 s.
     */
    @Component
    static class Demos {
        @SyncLockable(key = "#{#name}")
        public String waits(String name) throws InterruptedException {
            return Section.work();
        }

        @SyncLockableNow(key = "#{#name}")
        public String now(String name) throws InterruptedException {
            return Section.work();
        }

        @SyncLockable
        public String method() throws InterruptedException {
            return Section.work();
        }

        @SyncLockable(key = "demo4#{#whId+'_'+#sku}")
        public String demo4(Integer whId, String sku) throws InterruptedException {
            return Section.work();
        }

        public String bare() throws InterruptedException {
            return Section.work();
        }

        @SyncLockableRemembered(key = "#{#name}")
        public String remembered(String name) throws InterruptedException {
            return Section.work();
        }

        @SyncLockableMended(key = "#{#name}")
        public String mended(String name) throws InterruptedException {
            return Section.work();
        }
    }
}
