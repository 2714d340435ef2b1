-- Sets the count, once: a latch that is not open yet is left alone.
-- KEYS[1] the count, a string   KEYS[2] how often it was opened
-- ARGV[1] count   ARGV[2] the channel, which of a name with braces would be a key of another slot
-- returns 1: set    0: it was there
if redis.call('exists', KEYS[1]) == 1 then
  return 0
end
redis.call('set', KEYS[1], ARGV[1])
-- A waiter may wait for the next opening, however long that takes.
redis.call('persist', KEYS[2])
tell(ARGV[2], '1')
return 1
