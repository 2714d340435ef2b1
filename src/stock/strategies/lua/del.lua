-- §2.1 Deletes the lock, whosever it is.
-- KEYS[1] the lock
-- returns 1: deleted    0: there was none
return redis.call('del', KEYS[1])
