-- Gives one hold back; the last one frees the lock and wakes who waits.
-- KEYS[1] the lock   KEYS[2] its channel
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns nil: not the owner    -1: holds are left    n >= 0: free, and n subscribers were told
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return nil
end
if redis.call('hincrby', KEYS[1], ARGV[2], -1) > 0 then
  redis.call('pexpire', KEYS[1], ARGV[1])
  return -1
end
redis.call('del', KEYS[1])
return redis.call('publish', KEYS[2], '0')
