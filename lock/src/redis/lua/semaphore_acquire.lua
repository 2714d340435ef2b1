-- Takes permits if so many are free, and writes down whose they are, so that they can be given back exactly once.
-- KEYS[1] the free permits, a string   KEYS[2] the claims, a hash: owner -> permits   KEYS[3] a mark that the owner
-- has given up: a command that arrives late takes nothing   KEYS[4] the channel
-- ARGV[1] permits   ARGV[2] owner   ARGV[3] permits of a semaphore that is not there; 0: it is not made
-- returns n >= 0: taken, and n are still free    nil: not so many are free, or the owner has given up
if redis.call('exists', KEYS[3]) == 1 then
  return nil
end
local free = tonumber(redis.call('get', KEYS[1]))
if not free and tonumber(ARGV[3]) > 0 then
  free = tonumber(ARGV[3])
  redis.call('set', KEYS[1], ARGV[3])
  redis.call('del', KEYS[2])
  redis.pcall('publish', KEYS[4], ARGV[3])
end
if not free or free < tonumber(ARGV[1]) then
  return nil
end
redis.call('hset', KEYS[2], ARGV[2], ARGV[1])
return redis.call('decrby', KEYS[1], ARGV[1])
