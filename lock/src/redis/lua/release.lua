-- Releases a hold and tells the waiters, by `tell` of tell.lua, which scripts.rs puts before this text. May run twice.
-- KEYS[1] the lock
-- ARGV[1] owner, unique to this hold   ARGV[2] its channel, which as a key would be in the way while a slot moves
-- returns nil: it was not there    n >= 0: free, and n subscribers were told
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return nil
end
return tell(ARGV[2], '0')
