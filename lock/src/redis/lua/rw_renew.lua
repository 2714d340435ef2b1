-- Renews one hold, if it is still there, and the lock if that would end before it.
-- KEYS[1] the lock   KEYS[2] a read hold itself, a string
-- ARGV[1] lease in ms   ARGV[2] the hold's field in the lock
-- returns 1: renewed    0: it is not there
if redis.call('hexists', KEYS[1], ARGV[2]) == 0 or (KEYS[2] and redis.call('exists', KEYS[2]) == 0) then
  return 0
end
-- Never shortens what another guard of the hold, or another reader, relies on. Always writes, because a following WAIT
-- needs a write.
for _, key in ipairs(KEYS) do
  redis.call('pexpire', key, math.max(redis.call('pttl', key), tonumber(ARGV[1])))
end
return 1
