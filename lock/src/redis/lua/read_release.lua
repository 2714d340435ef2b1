-- Gives one read hold back, or all of the owner's. The last one of all frees the lock; else it lasts as long as the
-- longest hold that is left, be it another process's.
-- KEYS[1] the lock   KEYS[2] its channel   KEYS[3] the owner's read holds
-- ARGV[1] owner   ARGV[2] 1: one hold    0: all   ARGV[3] what stands before an owner in the keys of its read holds
-- returns nil: not a reader    0: others are left    1: free, and who waits was told
local holds = tonumber(redis.call('hget', KEYS[1], ARGV[1]))
if not holds then
  return nil
end
local function ends(i)
  return redis.call('pttl', KEYS[3] .. ':' .. i)
end
for last = holds, (ARGV[2] == '1' and holds or 1), -1 do
  -- The one that ends first goes, and the last one takes its number: no other hold of this owner is made shorter.
  local first = last
  for i = 1, last - 1 do
    if ends(i) < ends(first) then
      first = i
    end
  end
  if first < last and ends(last) > 0 then
    redis.call('set', KEYS[3] .. ':' .. first, 1, 'px', ends(last))
  end
  redis.call('del', KEYS[3] .. ':' .. last)
  holds = last - 1
end
if holds > 0 then
  redis.call('hset', KEYS[1], ARGV[1], holds)
else
  redis.call('hdel', KEYS[1], ARGV[1])
end
if redis.call('hget', KEYS[1], 'mode') == 'write' then
  return 0
end
local longest, fields = 0, redis.call('hgetall', KEYS[1])
for f = 1, #fields, 2 do
  for i = 1, tonumber(fields[f + 1]) or 0 do
    longest = math.max(longest, redis.call('pttl', ARGV[3] .. ':' .. fields[f] .. ':rwlock_timeout:' .. i))
  end
end
if longest > 0 then
  redis.call('pexpire', KEYS[1], longest)
  return 0
end
redis.call('del', KEYS[1])
redis.call('publish', KEYS[2], '0')
return 1
