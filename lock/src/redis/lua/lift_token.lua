-- Raises the counter of tokens, so that the next one is above the highest one seen.
-- KEYS[1] the counter
-- ARGV[1] the highest token that was seen
-- returns 1: raised    0: it was as high already
local counter, seen = redis.call('get', KEYS[1]) or '0', ARGV[1]
-- As texts: Lua's numbers are exact to 2^53 only.
if #counter < #seen or (#counter == #seen and counter < seen) then
  redis.call('set', KEYS[1], seen)
  return 1
end
return 0
