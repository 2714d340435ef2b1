package oversell;

import com.baomidou.mybatisplus.annotation.TableName;
import java.util.Date;

/**
 * {@code Lock} of chapter 4; the accessors are those that Lombok writes.
 *
 * <p>Differs from the print: the service calls a constructor of five arguments, and the printed class has one of none and one
 * of eight, so the print does not compile. The one of five is added.
 */
@TableName("tb_lock")
class Lock {
    private Long id;
    private String lockName;
    private String className;
    private String methodName;
    private String serverName;
    private String threadName;
    private Date createTime;
    private String desc;

    Lock() {
    }

    Lock(Long id, String lockName, String className, Date createTime, String desc) {
        this.id = id;
        this.lockName = lockName;
        this.className = className;
        this.createTime = createTime;
        this.desc = desc;
    }

    public Long getId() {
        return id;
    }

    public void setId(Long id) {
        this.id = id;
    }

    public String getLockName() {
        return lockName;
    }

    public void setLockName(String lockName) {
        this.lockName = lockName;
    }

    public String getClassName() {
        return className;
    }

    public void setClassName(String className) {
        this.className = className;
    }

    public String getMethodName() {
        return methodName;
    }

    public void setMethodName(String methodName) {
        this.methodName = methodName;
    }

    public String getServerName() {
        return serverName;
    }

    public void setServerName(String serverName) {
        this.serverName = serverName;
    }

    public String getThreadName() {
        return threadName;
    }

    public void setThreadName(String threadName) {
        this.threadName = threadName;
    }

    public Date getCreateTime() {
        return createTime;
    }

    public void setCreateTime(Date createTime) {
        this.createTime = createTime;
    }

    public String getDesc() {
        return desc;
    }

    public void setDesc(String desc) {
        this.desc = desc;
    }
}
