-- Frees the lock, whoever holds it, and wakes the first in the queue.
-- KEYS as in fair_queue.lua
-- returns 1: it was held    0: it was free
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
wake((first_alive()))
return 1
