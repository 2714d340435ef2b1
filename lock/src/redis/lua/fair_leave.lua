-- Undoes what an owner has begun: it is out of the queue, and has no more holds than it knows of. May run twice.
-- KEYS as in fair_queue.lua
-- ARGV[1] owner   ARGV[2] its wait limit in ms   ARGV[3] the holds that it knows of
-- returns 1: something was undone    0: there was nothing
local owner, known = ARGV[1], tonumber(ARGV[3])
local first, undone = false, 0
for place, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if waiter == owner then
    lower(place, tonumber(ARGV[2]))
    redis.call('lrem', KEYS[2], 1, owner)
    first, undone = place == 1, 1
    break
  end
end
redis.call('zrem', KEYS[3], owner)
local holds = tonumber(redis.call('hget', KEYS[1], owner) or 0)
if holds > known then
  undone = 1
  if known > 0 then
    redis.call('hset', KEYS[1], owner, known)
  else
    redis.call('del', KEYS[1])
    first = true
  end
end
if first then
  wake((first_alive()))
end
return undone
