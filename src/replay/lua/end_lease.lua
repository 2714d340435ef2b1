-- Ends the lease of a lock now: no renewal comes between. A lock without one stays: it would not end by itself.
-- KEYS[1] the lock
-- Returns 1 where it had a lease, 0 where it had none or was not there.
if redis.call('pttl', KEYS[1]) < 0 then
    return 0
end
return redis.call('del', KEYS[1])
