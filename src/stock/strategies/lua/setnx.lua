-- §2.1 Takes the lock, if the key is not there.
-- KEYS[1] the lock
-- returns 1: taken    0: another's
return redis.call('setnx', KEYS[1], '111')
