-- Renews the lease, if the lock is still the owner's.
-- KEYS[1] the lock
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns 1: renewed    0: not the owner
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return 0
end
-- Never shortens what another guard of the hold relies on. Always writes, because a following WAIT needs a write.
redis.call('pexpire', KEYS[1], math.max(redis.call('pttl', KEYS[1]), tonumber(ARGV[1])))
return 1
