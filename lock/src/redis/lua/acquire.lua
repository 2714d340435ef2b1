-- Takes the lock, or says how long it is still leased to another.
-- KEYS[1] the lock, a hash: owner -> holds
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns nil: taken    n >= 0: ms until the other's lease ends    -1: the other's lock has no lease
if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return nil
end
return redis.call('pttl', KEYS[1])
