-- Returns the holders of a lock: plain, fair, read or write.
-- KEYS[1] the lock, a hash: owner -> holds, and of a read-write lock mode -> read or write, owner:write -> write holds
-- ARGV[1] the prefix of the read holds' strings
-- The strings of read holds are not declared, because only the hash lists them. They share the lock's braces.
-- returns {owner, n} for each field: ms until its lease ends, -1: it has none
local mode, lease = redis.call('hget', KEYS[1], 'mode'), redis.call('pttl', KEYS[1])
local holders, fields = {}, redis.call('hgetall', KEYS[1])
for f = 1, #fields, 2 do
  local owner, left = fields[f], lease
  if mode and not string.find(owner, ':write$') then
    left = -2
    for i = 1, tonumber(fields[f + 1]) or 0 do
      left = math.max(left, redis.call('pttl', ARGV[1] .. ':' .. owner .. ':rwlock_timeout:' .. i))
    end
  end
  -- The mode is no owner, and a read hold that has expired may still have its field.
  if left ~= -2 then
    holders[#holders + 1] = {owner, left}
  end
end
return holders
