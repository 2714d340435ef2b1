-- How many permits are free, with those whose lease has ended.
-- KEYS[1] the free permits   KEYS[2] a sorted set: permit -> when its lease ends, in epoch ms
-- returns the number; 0 if the semaphore is not set
local free = redis.call('get', KEYS[1])
if not free then
  return 0
end
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
return tonumber(free) + redis.call('zcount', KEYS[2], 0, now)
