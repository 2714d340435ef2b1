-- §2.2 Takes the lock with a lease, if the key is not there.
-- KEYS[1] the lock
-- ARGV[2] lease in ms
-- returns OK: taken    nil: another's
return redis.call('set', KEYS[1], '111', 'NX', 'PX', ARGV[2])
