-- Releases one hold. The last one frees the lock; a write hold above its owner's read holds lets other readers in.
-- May run twice.
-- KEYS[1] the lock   KEYS[2] its channel   KEYS[3] a read hold itself, a string
-- ARGV[1] the hold's field in the lock   ARGV[2] the prefix of the read holds' strings
-- The strings of read holds are not declared, because only the hash lists them. They share the lock's braces.
-- returns 1: released    0: it had expired, or was not there
local reads = KEYS[3] ~= nil
local left = reads and redis.call('pttl', KEYS[3]) or 0
if reads then
  redis.call('del', KEYS[3])
end
if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then
  return 0
end
local given_back = (not reads or left > 0) and 1 or 0
local mode = redis.call('hget', KEYS[1], 'mode')
-- Under its owner's write hold nothing else changes. A reader that stays longer already says how long the lock lasts:
-- nothing to look up among a thousand of them. Longer by more than it takes to say one end twice, of the lock and of the hold.
if reads and (mode == 'write' or (redis.call('hlen', KEYS[1]) > 1 and redis.call('pttl', KEYS[1]) > left + 100)) then
  return given_back
end
local longest = 0
local fields = redis.call('hgetall', KEYS[1])
for f = 1, #fields, 2 do
  for i = 1, tonumber(fields[f + 1]) or 0 do
    longest = math.max(longest, redis.call('pttl', ARGV[2] .. ':' .. fields[f] .. ':rwlock_timeout:' .. i))
  end
end
local message = reads and '0' or '1'
if longest <= 0 then
  redis.call('del', KEYS[1])
  tell(KEYS[2], message)
  return given_back
end
redis.call('pexpire', KEYS[1], longest)
if not reads then
  redis.call('hset', KEYS[1], 'mode', 'read')
  tell(KEYS[2], message)
end
return given_back
