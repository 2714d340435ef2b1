-- Renews one hold, if it is still there, and the lock where it would end before it.
-- KEYS[1] the lock   KEYS[2] a read hold itself, a string
-- ARGV[1] lease in ms   ARGV[2] the hold's field in the lock
-- returns 1: renewed    0: it is not there
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 or (KEYS[2] and redis.call('exists', KEYS[2]) == 0) then
  return 0
end
-- Never shorter than what another guard of the same hold, or another reader, relies on. Written in any case: a WAIT that
-- follows asks for it.
for _, key in ipairs(KEYS) do
  redis.call('pexpire', key, math.max(redis.call('pttl', key), tonumber(ARGV[1])))
end
return 1
