-- Notes that a visitor uses a lock of its own, and keeps its scripts, if there are any. One that nobody has used for a day is
-- forgotten; beyond the most, the one that was not used for the longest time makes room, if that is long enough.
--
-- KEYS: 1 the visitors, a sorted set by the time of their last use; 2 their scripts, a hash
-- ARGV: 1 the visitor, 2 the most visitors, 3 and 4 after which time without use one makes room or is forgotten, in
--       milliseconds, 5 the scripts, or nothing
-- returns: 0 noted, or in how many milliseconds one makes room; and the visitors that were forgotten
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local forgotten = redis.call('ZRANGE', KEYS[1], '-inf', now - ARGV[4], 'BYSCORE', 'LIMIT', 0, 100)
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) and redis.call('ZCARD', KEYS[1]) - #forgotten >= tonumber(ARGV[2]) then
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  local wait = oldest[2] + ARGV[3] - now
  if wait > 0 then return {wait, {}} end
  forgotten = {oldest[1]}
end
for _, visitor in ipairs(forgotten) do
  redis.call('ZREM', KEYS[1], visitor)
  redis.call('HDEL', KEYS[2], visitor)
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
if ARGV[5] then redis.call('HSET', KEYS[2], ARGV[1], ARGV[5]) end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return {0, forgotten}
