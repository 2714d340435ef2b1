-- Hands the lock to another hold in one step: nobody can come between, and nobody is woken.
-- KEYS[1] the lock   KEYS[2] the counter of tokens, if the next hold wants one
-- ARGV[1] the next hold's lease in ms   ARGV[2] owner   ARGV[3] the next owner
-- returns t >= 0: handed off, with token t (0: none)    -1: it was not the owner's
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 then
  return -1
end
local token = 0
if KEYS[2] then
  -- First: where it cannot be counted the lock stays the owner's.
  redis.call('incr', KEYS[2])
  -- As a text: Lua's numbers are exact to 2^53 only.
  token = redis.call('get', KEYS[2])
end
redis.call('hdel', KEYS[1], ARGV[2])
redis.call('hset', KEYS[1], ARGV[3], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return token
