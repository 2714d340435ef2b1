-- §2.7 Renews the lease, if the lock is still the owner's.
-- KEYS[1] the lock, a hash: owner -> holds
-- ARGV[1] owner   ARGV[2] lease in ms
-- returns 1: renewed    0: not the owner's
if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('pexpire', KEYS[1], ARGV[2])
