-- Counts down by one; the last one opens the latch and tells the waiters.
-- KEYS[1] the count, a string   KEYS[2] how often it was opened
-- ARGV[1] the channel, which of a name with braces would be a key of another slot
-- returns nil: there is no count    n >= 0: this many are left
if redis.call('exists', KEYS[1]) == 0 then
  return nil
end
local left = redis.call('decr', KEYS[1])
if left > 0 then
  return left
end
redis.call('del', KEYS[1])
redis.call('incr', KEYS[2])
-- A waiter looks more often than once a day.
redis.call('pexpire', KEYS[2], 86400000)
tell(ARGV[1], '0')
return 0
