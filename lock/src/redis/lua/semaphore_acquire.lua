-- Takes permits if enough are free, and stores a claim, so that they are released exactly once.
-- KEYS[1] the free permits, a string   KEYS[2] the claims, a hash: owner -> permits   KEYS[3] the owner's
-- tombstone: a command that arrives late takes nothing   KEYS[4] the channel   KEYS[5] when permits with a lease end
-- ARGV[1] permits   ARGV[2] owner   ARGV[3] permits for a missing semaphore; 0: do not create it
-- returns n >= 0: taken, and n are still free    nil: too few are free, or there is a tombstone
if redis.call('exists', KEYS[3]) == 1 then
  return nil
end
local free = tonumber(redis.call('get', KEYS[1]))
if not free and tonumber(ARGV[3]) > 0 then
  free = tonumber(ARGV[3])
  redis.call('set', KEYS[1], ARGV[3])
  redis.call('del', KEYS[2], KEYS[5])
  tell(KEYS[4], ARGV[3])
end
if not free or free < tonumber(ARGV[1]) then
  return nil
end
redis.call('hset', KEYS[2], ARGV[2], ARGV[1])
return redis.call('decrby', KEYS[1], ARGV[1])
