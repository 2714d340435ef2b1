-- §2.5 Deletes the lock, if it is still the owner's: check and delete in one step.
-- KEYS[1] the lock
-- ARGV[1] owner
-- returns 1: deleted    0: not the owner's
if redis.call('get', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('del', KEYS[1])
