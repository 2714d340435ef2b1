-- Takes a write hold, or says how long it is still leased to others.
-- KEYS[1] the lock, a hash: mode -> read or write, owner -> read holds, owner:write -> write holds
-- KEYS[2] what the owner's write holds begin with   KEYS[3] what its read holds begin with
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] the hold's id; empty: the owner holds once, and the hold has no string
-- returns nil: taken    n >= 0: ms until the others' lease ends    -1: they have none    -2: the owner itself reads
local write = ARGV[2] .. ':write'
local lease = tonumber(ARGV[1])
if redis.call('hexists', KEYS[1], 'mode') == 0 then
  redis.call('hset', KEYS[1], 'mode', 'write')
elseif redis.call('hexists', KEYS[1], write) == 1 then
  -- As Redisson does: a re-entry adds its lease to what is left.
  lease = lease + math.max(0, redis.call('pttl', KEYS[1]))
else
  for i = 1, tonumber(redis.call('hget', KEYS[1], ARGV[2])) or 0 do
    if redis.call('exists', KEYS[3] .. ':' .. i) == 1 then
      return -2
    end
  end
  return redis.call('pttl', KEYS[1])
end
local holds = redis.call('hincrby', KEYS[1], write, 1)
if ARGV[3] ~= '' then
  redis.call('set', KEYS[2] .. ':' .. holds, ARGV[3], 'px', ARGV[1])
end
redis.call('pexpire', KEYS[1], lease)
return nil
