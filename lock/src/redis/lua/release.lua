-- Releases a hold and tells the waiters. May run twice.
-- KEYS[1] the lock   KEYS[2] its channel
-- ARGV[1] owner, unique to this hold
-- returns nil: it was not there    n >= 0: free, and n subscribers were told
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return nil
end
-- A user who may not publish has given it back all the same.
local told = redis.pcall('publish', KEYS[2], '0')
return type(told) == 'number' and told or 0
