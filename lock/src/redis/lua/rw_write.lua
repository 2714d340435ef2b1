-- Takes the write hold, or returns the rest of the others' leases.
-- KEYS[1] the lock, a hash: mode -> read or write, owner -> read holds, owner:write -> write holds
-- ARGV[1] lease in ms   ARGV[2] the field, unique to this hold
-- returns nil: taken    n >= 0: ms until the others' lease ends    -1: they have none
if redis.call('hexists', KEYS[1], 'mode') == 1 then
  return redis.call('pttl', KEYS[1])
end
redis.call('hset', KEYS[1], 'mode', 'write', ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return nil
