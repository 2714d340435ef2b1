-- Renews one hold, if it is still there, and the lock where it would end before it.
-- KEYS[1] the lock   KEYS[2] what this field's holds begin with
-- ARGV[1] lease in ms   ARGV[2] the hold's field in the lock   ARGV[3] the hold's id; empty: its owner holds once
-- returns 1: renewed    0: it is not there
if ARGV[3] == '' then
  return redis.call('hexists', KEYS[1], ARGV[2]) == 1 and redis.call('pexpire', KEYS[1], ARGV[1]) or 0
end
for i = 1, tonumber(redis.call('hget', KEYS[1], ARGV[2])) or 0 do
  local hold = KEYS[2] .. ':' .. i
  if redis.call('get', hold) == ARGV[3] then
    redis.call('pexpire', hold, ARGV[1])
    if redis.call('pttl', KEYS[1]) < tonumber(ARGV[1]) then
      redis.call('pexpire', KEYS[1], ARGV[1])
    end
    return 1
  end
end
return 0
