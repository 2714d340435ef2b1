-- Hands the lock to another owner in one step: nobody else can come between, and nobody needs to be woken.
-- KEYS[1] the lock
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] the next owner
-- returns 1: handed over    0: not the owner    -1: holds are left, nothing was changed
local holds = tonumber(redis.call('hget', KEYS[1], ARGV[2]))
if not holds then
  return 0
end
if holds > 1 then
  return -1
end
redis.call('hset', KEYS[1], ARGV[3], 1)
redis.call('hdel', KEYS[1], ARGV[2])
redis.call('pexpire', KEYS[1], ARGV[1])
return 1
