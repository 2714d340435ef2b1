-- §2.6.2 Gives one hold back; the last one frees the lock.
-- KEYS[1] the lock, a hash: owner -> holds
-- ARGV[1] owner
-- returns 1: released    0: not the owner's
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('hincrby', KEYS[1], ARGV[1], -1) <= 0 then
  redis.call('del', KEYS[1])
end
return 1
