-- Admits, if no more than the rate were admitted within the last interval, by the server's clock.
-- KEYS[1] the limiter, a hash   KEYS[2] the admissions, a sorted set: id -> time in us
-- ARGV[1] how many at once   ARGV[2] an id
-- returns 0: admitted    n > 0: not before n us from now    -1: there is no limiter    -2: more than the rate at once
local limiter = redis.call('hmget', KEYS[1], 'rate', 'interval')
if not limiter[1] then
  return -1
end
local rate, interval, window = tonumber(limiter[1]), tonumber(limiter[2]) * 1000, KEYS[2]
local wanted = tonumber(ARGV[1])
if wanted > rate then
  return -2
end
local time = redis.call('time')
local now = time[1] * 1000000 + time[2]
-- An admission exactly one interval old is outside the window.
redis.call('zremrangebyscore', window, '-inf', now - interval)
local over = redis.call('zcard', window) + wanted - rate
if over > 0 then
  local leaves = redis.call('zrange', window, over - 1, over - 1, 'withscores')
  return math.max(1, tonumber(leaves[2]) + interval - now)
end
for i = 1, wanted do
  redis.call('zadd', window, now, ARGV[2] .. ':' .. i)
end
redis.call('pexpire', window, limiter[2])
return 0
