-- Renews the lease, if the lock is still the owner's.
-- KEYS as in fair_queue.lua
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns 1: renewed    0: not the owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return 0
end
lease_for(ARGV[1])
return 1
