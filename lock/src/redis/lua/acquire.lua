-- Takes the lock, or says how long it is still leased to another. Who has it already takes it once more.
-- KEYS[1] the lock, a hash: owner -> holds   KEYS[2] the counter of tokens, where one is drawn
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] 0: this is its first hold, whatever an unanswered command may have left
-- 1: it has it already    2: it may have it
-- returns {1, t}: taken, with token t (0: none)    {0, n}: another's lease ends in n ms (negative: never), or the owner
-- does not have it any more (0)
local has_it = redis.call('hexists', KEYS[1], ARGV[2]) == 1
if ARGV[3] == '1' and not has_it then
  -- A lock that is free meanwhile may have been another's in between: it is not taken again behind the holds' backs.
  return {0, 0}
end
if not has_it and redis.call('exists', KEYS[1]) == 1 then
  return {0, redis.call('pttl', KEYS[1])}
end
if ARGV[3] == '0' then
  redis.call('hset', KEYS[1], ARGV[2], 1)
else
  redis.call('hincrby', KEYS[1], ARGV[2], 1)
end
-- Never shorter than what another hold of the same owner relies on.
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
if KEYS[2] then
  redis.call('incr', KEYS[2])
  -- As a text: Lua's numbers are exact to 2^53 only.
  return {1, redis.call('get', KEYS[2])}
end
return {1, 0}
