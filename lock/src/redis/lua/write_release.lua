-- Gives one write hold back, or all. With the last the lock is free, or a read lock where its owner reads as well; who
-- waits is told in both cases.
-- KEYS[1] the lock   KEYS[2] its channel
-- ARGV[1] the owner as a writer   ARGV[2] 1: one hold    0: all
-- returns nil: not the writer    0: holds are left    1: no writer is left, and who waits was told
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return nil
end
if ARGV[2] == '1' and redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then
  return 0
end
redis.call('hdel', KEYS[1], ARGV[1])
if redis.call('hlen', KEYS[1]) > 1 then
  redis.call('hset', KEYS[1], 'mode', 'read')
else
  redis.call('del', KEYS[1])
end
redis.call('publish', KEYS[2], '1')
return 1
