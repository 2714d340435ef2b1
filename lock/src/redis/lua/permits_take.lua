-- Takes permits that expire, one entry for each, if enough are free. Those whose lease has ended are free again.
-- KEYS[1] the free permits, a string   KEYS[2] a sorted set: permit -> when its lease ends, in epoch ms   KEYS[3] the channel
-- KEYS[4] the claims of permits without a lease
-- ARGV[1] lease in ms   ARGV[2] permits for a missing semaphore; 0: do not create it   ARGV[3...] the permits
-- returns {n >= 0, -1}: taken, and n are still free    {-1, n >= 0}: the first lease ends in n ms    {-1, -1}: none ends
-- Time is the server's.
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local free, wanted = tonumber(redis.call('get', KEYS[1])), #ARGV - 2
if not free then
  -- Permits of a semaphore that was deleted are void.
  redis.call('del', KEYS[2], KEYS[4])
  if tonumber(ARGV[2]) == 0 then
    return {-1, -1}
  end
  free = tonumber(ARGV[2])
  redis.call('set', KEYS[1], ARGV[2])
  tell(KEYS[3], ARGV[2])
end
local ended = redis.call('zremrangebyscore', KEYS[2], 0, now)
if ended > 0 then
  free = redis.call('incrby', KEYS[1], ended)
  tell(KEYS[3], free)
end
if free < wanted then
  local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
  return {-1, first[2] and math.max(tonumber(first[2]) - now, 0) or -1}
end
for n = 3, #ARGV do
  redis.call('zadd', KEYS[2], now + tonumber(ARGV[1]), ARGV[n])
end
return {redis.call('decrby', KEYS[1], wanted), -1}
