-- Takes a read hold, or says how long a writer is still there. A writer may read what it writes.
-- KEYS[1] the lock, a hash: mode -> read or write, owner -> read holds, owner:write -> write holds
-- KEYS[2] the owner's read holds: with ":i" appended, a key that ends with hold i
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] the owner as a writer
-- returns {1, 0}: taken    {0, n}: the writer's lease ends in n ms (negative: never)
local mode = redis.call('hget', KEYS[1], 'mode')
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
elseif mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
  return {0, redis.call('pttl', KEYS[1])}
end
local hold = redis.call('hincrby', KEYS[1], ARGV[2], 1)
redis.call('set', KEYS[2] .. ':' .. hold, 1, 'px', ARGV[1])
-- The lock lasts as long as its longest hold.
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return {1, 0}
