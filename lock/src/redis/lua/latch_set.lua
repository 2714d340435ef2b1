-- Sets the count, once: a latch that is not open yet is left alone.
-- KEYS[1] the count, a string   KEYS[2] the channel
-- ARGV[1] count
-- returns 1: set    0: it was there
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('set', KEYS[1], ARGV[1])
redis.call('publish', KEYS[2], '1')
return 1
