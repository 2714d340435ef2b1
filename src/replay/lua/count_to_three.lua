-- §2.4.1 Starts a counter at 0, counts to three, and says what it holds: five commands as one.
-- KEYS[1] the counter
-- returns what it holds
redis.call('set', KEYS[1], 0)
for _ = 1, 3 do
  redis.call('incr', KEYS[1])
end
return tonumber(redis.call('get', KEYS[1]))
