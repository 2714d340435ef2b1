-- §2.6.1 Takes the lock, or takes it once more where it is the owner's already.
-- KEYS[1] the lock, a hash: owner -> holds
-- ARGV[1] owner   ARGV[2] lease in ms
-- returns 1: taken    0: another's
if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('hincrby', KEYS[1], ARGV[1], 1)
redis.call('pexpire', KEYS[1], ARGV[2])
return 1
