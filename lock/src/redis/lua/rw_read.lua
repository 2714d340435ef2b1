-- Takes a read hold, or returns the rest of the writer's lease.
-- KEYS[1] the lock, a hash: mode -> read or write, owner -> read holds, owner:write -> write holds
-- KEYS[2] the hold itself, a string that expires by itself
-- ARGV[1] lease in ms   ARGV[2] owner, unique to this hold   ARGV[3] the field of its owner's write hold;
-- empty: none
-- returns nil: taken    n >= 0: ms until the writer's lease ends    -1: the writer has no lease
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'write' and redis.call('hexists', KEYS[1], ARGV[3]) == 0 then
  return redis.call('pttl', KEYS[1])
end
if not mode then
  redis.call('hset', KEYS[1], 'mode', 'read')
end
redis.call('hset', KEYS[1], ARGV[2], 1)
redis.call('set', KEYS[2], 1, 'px', ARGV[1])
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return nil
