-- Releases the owner's claim, once, and tells the waiters.
-- KEYS[1] the free permits   KEYS[2] the claims   KEYS[3] the owner's tombstone   KEYS[4] the channel
-- ARGV[1] owner   ARGV[2] for how many ms a tombstone is kept if there is no claim (the command may still arrive); 0: none
-- returns 1: released    0: the owner has no claim, or the semaphore was deleted
local permits = redis.call('hget', KEYS[2], ARGV[1])
if not permits then
  if tonumber(ARGV[2]) > 0 then
    redis.call('set', KEYS[3], 1, 'px', ARGV[2])
  end
  return 0
end
redis.call('hdel', KEYS[2], ARGV[1])
if redis.call('exists', KEYS[1]) == 0 then
  return 0
end
tell(KEYS[4], redis.call('incrby', KEYS[1], permits))
return 1
