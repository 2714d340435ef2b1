-- Releases these permits, each once, and tells the waiters.
-- KEYS[1] the free permits   KEYS[2] a sorted set: permit -> when its lease ends   KEYS[3] the channel
-- ARGV[1...] the permits
-- returns 1: released    0: the lease of one has ended and others may have it, or the semaphore was deleted
local released = 0
for n = 1, #ARGV do
  released = released + redis.call('zrem', KEYS[2], ARGV[n])
end
if redis.call('exists', KEYS[1]) == 0 then
  return 0
end
if released > 0 then
  tell(KEYS[3], redis.call('incrby', KEYS[1], released))
end
return released == #ARGV and 1 or 0
