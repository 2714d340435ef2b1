-- Takes the lock in order of arrival; a waiter gets, or keeps, its place in the queue.
-- KEYS as in fair_queue.lua
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] its wait limit in ms; 0: it does not queue   ARGV[4] ms for which
-- it surely keeps waiting
-- returns {1, 0}: taken    {0, n >= 0}: look again after n ms    {0, -1}: no lease
local owner, limit = ARGV[2], tonumber(ARGV[3])
local head, dropped = first_alive(owner)
local lease = redis.call('pttl', KEYS[1])
if lease == -2 and (not head or head == owner) then
  if head then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], owner)
    redis.call('zrem', KEYS[5], owner)
    lower(0, limit)
  end
  redis.call('hset', KEYS[1], owner, 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return {1, 0}
end
-- A key of another type gives the same error as if the lock were free.
redis.call('hlen', KEYS[1])
if dropped then
  wake(head)
end
if limit > 0 then
  local score, until_then = redis.call('zscore', KEYS[3], owner), now + tonumber(ARGV[4])
  if not score then
    local last = redis.call('lindex', KEYS[2], -1)
    local before = last and redis.call('zscore', KEYS[3], last) or now + math.max(lease, 0)
    score = math.max(tonumber(before) + limit, until_then)
    redis.call('zadd', KEYS[3], score, owner)
    redis.call('rpush', KEYS[2], owner)
  elseif tonumber(score) < until_then then
    score = until_then
    redis.call('zadd', KEYS[3], score, owner)
  end
  redis.call('zadd', KEYS[5], now + SILENT, owner)
  keep(math.ceil(tonumber(score) - now) + FORGOTTEN)
end
if lease == -2 then
  return {0, math.max(tonumber(redis.call('zscore', KEYS[3], head)) - now, 0)}
end
return {0, lease}
