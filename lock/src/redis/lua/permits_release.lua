-- Gives one permit back, unless it has come back by itself.
-- KEYS[1] the free permits   KEYS[2] the leases   KEYS[3] the channel
-- ARGV[1] the permit's id
-- returns 1: given back    0: it had expired (and is back, whoever did it), or the semaphore was deleted
local ends = redis.call('zscore', KEYS[2], ARGV[1])
if not ends then
  return 0
end
redis.call('zrem', KEYS[2], ARGV[1])
if redis.call('exists', KEYS[1]) == 0 then
  return 0
end
redis.call('publish', KEYS[3], redis.call('incr', KEYS[1]))
local time = redis.call('time')
if tonumber(ends) <= time[1] * 1000 + math.floor(time[2] / 1000) then
  return 0
end
return 1
