-- Gives one hold back, told by its id: run twice, it counts once. The last hold frees the lock; the last write hold over
-- read holds of its owner lets other readers in.
-- KEYS[1] the lock   KEYS[2] its channel   KEYS[3] what this field's holds begin with   KEYS[4] what all holds begin with
-- ARGV[1] the hold's field in the lock   ARGV[2] the hold's id; empty: its owner holds once   ARGV[3] read or write
-- returns 1: given back    0: it had expired, or was not there
local holds = tonumber(redis.call('hget', KEYS[1], ARGV[1])) or 0
local at, expired
if ARGV[2] == '' and holds > 0 then
  at = 1
end
for i = 1, at and 0 or math.max(holds, 1) do
  local id = redis.call('get', KEYS[3] .. ':' .. i)
  if id == ARGV[2] then
    at = i
    break
  elseif not id then
    expired = expired or i
  end
end
local own = at or expired
if not own then
  return 0
end
local left = at and redis.call('pttl', KEYS[3] .. ':' .. at) or 0
redis.call('del', KEYS[3] .. ':' .. own)
if holds == 0 then
  return 0
end
-- The holds stay numbered from 1: the last takes the place of this one.
if own < holds and redis.call('exists', KEYS[3] .. ':' .. holds) == 1 then
  redis.call('rename', KEYS[3] .. ':' .. holds, KEYS[3] .. ':' .. own)
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) == 0 then
  redis.call('hdel', KEYS[1], ARGV[1])
end
local given_back = at and 1 or 0
local mode = redis.call('hget', KEYS[1], 'mode')
-- A reader that stays longer already says how long the lock lasts: nothing to look up among a thousand of them.
if mode == 'read' and redis.call('hlen', KEYS[1]) > 1 and redis.call('pttl', KEYS[1]) > left then
  return given_back
end
local longest = 0
local fields = redis.call('hgetall', KEYS[1])
for f = 1, #fields, 2 do
  for i = 1, tonumber(fields[f + 1]) or 0 do
    longest = math.max(longest, redis.call('pttl', KEYS[4] .. ':' .. fields[f] .. ':rwlock_timeout:' .. i))
  end
end
local message = ARGV[3] == 'write' and '1' or '0'
if longest <= 0 then
  redis.call('del', KEYS[1])
  redis.call('publish', KEYS[2], message)
  return given_back
end
redis.call('pexpire', KEYS[1], longest)
if ARGV[3] == 'write' and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  redis.call('hset', KEYS[1], 'mode', 'read')
  redis.call('publish', KEYS[2], message)
end
return given_back
