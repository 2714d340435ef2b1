-- Takes the lock for writing, or says how long it is still leased to others. Who writes may take it again; who reads
-- may not: two such readers would wait for each other.
-- KEYS[1] the lock   KEYS[2] the owner's read holds
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] the owner as a writer
-- returns {1, 0}: taken    {0, n}: the others' lease ends in n ms (negative: never)    {-1, 0}: the owner reads
local mode = redis.call('hget', KEYS[1], 'mode')
if mode == 'read' then
  for i = 1, tonumber(redis.call('hget', KEYS[1], ARGV[2])) or 0 do
    if redis.call('exists', KEYS[2] .. ':' .. i) == 1 then
      return {-1, 0}
    end
  end
end
if mode and (mode == 'read' or redis.call('hexists', KEYS[1], ARGV[3]) == 0) then
  return {0, redis.call('pttl', KEYS[1])}
end
redis.call('hset', KEYS[1], 'mode', 'write')
redis.call('hincrby', KEYS[1], ARGV[3], 1)
if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
  redis.call('pexpire', KEYS[1], ARGV[1])
end
return {1, 0}
