-- Gives one hold back, or all of the owner's; with the last the lock is free, and who waits is told.
-- KEYS[1] the lock   KEYS[2] its channel, where who waits is told
-- ARGV[1] owner   ARGV[2] 1: one hold    0: all
-- returns nil: not the owner    -1: holds are left    n >= 0: free, and n subscribers were told
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if ARGV[2] == '1' and redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return -1
end
redis.call('del', KEYS[1])
if KEYS[2] then
  return redis.call('publish', KEYS[2], '0')
end
return 0
