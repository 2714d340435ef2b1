-- Sets the number of permits, once: an existing semaphore, even with none free, is left alone.
-- KEYS[1] the free permits, a string   KEYS[2] the holders of an earlier semaphore of this name
-- KEYS[3] the channel   KEYS[4] when the permits of an earlier semaphore of this name end
-- ARGV[1] permits
-- returns 1: set    0: it was there
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('set', KEYS[1], ARGV[1])
redis.call('del', KEYS[2], KEYS[4])
tell(KEYS[3], ARGV[1])
return 1
