-- Renews the owner's read holds that have not ended.
-- KEYS[1] the lock   KEYS[2] the owner's read holds
-- ARGV[1] lease in ms   ARGV[2] owner
-- returns 1: renewed    0: none is left
local renewed = 0
for i = 1, tonumber(redis.call('hget', KEYS[1], ARGV[2])) or 0 do
  local ends = redis.call('pttl', KEYS[2] .. ':' .. i)
  if ends > 0 then
    renewed = 1
    redis.call('pexpire', KEYS[2] .. ':' .. i, math.max(ends, tonumber(ARGV[1])))
  end
end
if renewed == 1 and redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return renewed
