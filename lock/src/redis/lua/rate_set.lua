-- Sets the rate, once: a limiter that is there is left alone.
-- KEYS[1] the limiter, a hash: rate, interval (ms)
-- ARGV[1] rate   ARGV[2] interval in ms
-- returns 1: set    0: it was there
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('hset', KEYS[1], 'rate', ARGV[1], 'interval', ARGV[2])
return 1
