-- Makes the lease of these permits at least this long from now, all or none.
-- KEYS[1] a sorted set: permit -> when its lease ends, in epoch ms
-- ARGV[1] lease in ms   ARGV[2...] the permits
-- returns 1: they last at least as long    0: the lease of one has ended, or the semaphore was deleted
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
for n = 2, #ARGV do
  local ends = redis.call('zscore', KEYS[1], ARGV[n])
  if not ends or tonumber(ends) <= now then
    return 0
  end
end
for n = 2, #ARGV do
  local ends = tonumber(redis.call('zscore', KEYS[1], ARGV[n]))
  redis.call('zadd', KEYS[1], math.max(ends, now + tonumber(ARGV[1])), ARGV[n])
end
return 1
