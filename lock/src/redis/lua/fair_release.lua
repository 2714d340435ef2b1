-- Gives one hold back; the last one frees the lock and wakes the head of the queue.
-- KEYS as in fair_queue.lua
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns nil: not the owner    n > 0: so many holds are left    0: free
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
local left = redis.call('hincrby', KEYS[1], ARGV[2], -1)
if left > 0 then
  lease_for(ARGV[1])
  return left
end
redis.call('del', KEYS[1])
wake((first_alive()))
return 0
