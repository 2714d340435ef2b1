-- Lifts the counter of tokens, so that the next one is above what is known to have been seen.
-- KEYS[1] the counter
-- ARGV[1] the highest token that was seen
-- returns the counter
local counter = tonumber(redis.call('get', KEYS[1])) or 0
if counter < tonumber(ARGV[1]) then
  redis.call('set', KEYS[1], ARGV[1])
  return tonumber(ARGV[1])
end
return counter
