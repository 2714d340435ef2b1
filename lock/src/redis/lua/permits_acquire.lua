-- Takes one permit that expires; first, permits that have expired come back.
-- KEYS[1] the free permits, a string   KEYS[2] the leases, a sorted set: id -> end in epoch ms   KEYS[3] the channel
-- ARGV[1] the permit's id   ARGV[2] lease in ms
-- returns nil: taken    n >= 0: ms until the next one expires    -1: none is leased
local free = redis.call('get', KEYS[1])
if not free then
  return -1
end
free = tonumber(free)
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expired = redis.call('zremrangebyscore', KEYS[2], '-inf', now)
if expired > 0 then
  free = redis.call('incrby', KEYS[1], expired)
  if free > 1 then
    redis.call('publish', KEYS[3], free - 1)
  end
end
if free >= 1 then
  redis.call('decr', KEYS[1])
  redis.call('zadd', KEYS[2], now + ARGV[2], ARGV[1])
  return nil
end
local first = redis.call('zrange', KEYS[2], 0, 0, 'withscores')
if not first[2] then
  return -1
end
return math.max(0, tonumber(first[2]) - now)
