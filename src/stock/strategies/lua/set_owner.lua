-- §2.3 Takes the lock with a lease and its owner, if the key is not there.
-- KEYS[1] the lock
-- ARGV[1] owner   ARGV[2] lease in ms
-- returns OK: taken    nil: another's
return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
