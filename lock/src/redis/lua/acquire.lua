-- Takes the lock, or returns the rest of the present lease.
-- KEYS[1] the lock, a hash: owner -> holds   KEYS[2] the counter of tokens, if one is wanted
-- ARGV[1] lease in ms   ARGV[2] owner, unique to this hold
-- returns {1, t}: taken, with token t (0: none)    {0, n}: another's lease ends in n ms (negative: never)
if redis.call('hlen', KEYS[1]) > 0 then
  return {0, redis.call('pttl', KEYS[1])}
end
local token = 0
if KEYS[2] then
  -- First: what cannot be counted takes nothing.
  redis.call('incr', KEYS[2])
  -- As a text: Lua's numbers are exact to 2^53 only.
  token = redis.call('get', KEYS[2])
end
redis.call('hset', KEYS[1], ARGV[2], 1)
redis.call('pexpire', KEYS[1], ARGV[1])
return {1, token}
