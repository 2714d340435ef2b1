-- Begins the lease of a permit anew, unless it has expired.
-- KEYS[1] the leases
-- ARGV[1] the permit's id   ARGV[2] lease in ms
-- returns 1: renewed    0: it has expired
local time = redis.call('time')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local ends = redis.call('zscore', KEYS[1], ARGV[1])
if not ends or tonumber(ends) <= now then
  return 0
end
redis.call('zadd', KEYS[1], now + ARGV[2], ARGV[1])
return 1
