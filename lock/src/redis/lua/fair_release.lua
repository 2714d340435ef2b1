-- Removes an owner from the queue or the lock, and wakes the next. May run twice.
-- KEYS as in fair_queue.lua
-- ARGV[1] owner   ARGV[2] its wait limit in ms
-- returns 1: it was in one of them    0: in neither
local owner, was_first, found = ARGV[1], false, 0
for place, waiter in ipairs(redis.call('lrange', KEYS[2], 0, -1)) do
  if waiter == owner then
    lower(place, tonumber(ARGV[2]))
    redis.call('lrem', KEYS[2], 1, owner)
    was_first, found = place == 1, 1
    break
  end
end
redis.call('zrem', KEYS[3], owner)
redis.call('zrem', KEYS[5], owner)
if redis.call('hdel', KEYS[1], owner) == 1 then
  was_first, found = true, 1
end
if was_first then
  wake((first_alive()))
end
return found
