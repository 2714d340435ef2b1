-- Frees the lock, whoever holds it, and tells the waiters. The strings of read holds end with their leases.
-- KEYS[1] the lock   KEYS[2] its channel
-- ARGV[1] the message for the waiters   ARGV[2] of a read-write lock: the mode in which it is held
-- returns 1: it was held    0: it was free, or held in the other mode
if ARGV[2] and redis.call('hget', KEYS[1], 'mode') ~= ARGV[2] then
  return 0
end
if redis.call('del', KEYS[1]) == 0 then
  return 0
end
tell(KEYS[2], ARGV[1])
return 1
