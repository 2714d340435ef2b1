-- Takes the lock in order of arrival; who cannot have it yet gets, or keeps, its place in the queue.
-- KEYS as in fair_queue.lua
-- ARGV[1] lease in ms   ARGV[2] owner   ARGV[3] its wait limit in ms; 0: it does not queue   ARGV[4] ms that it surely
-- goes on waiting
-- returns {1, n}: taken, and the owner now has n holds    {0, n >= 0}: look again after n ms    {0, -1}: no lease
local owner, limit = ARGV[2], tonumber(ARGV[3])
if redis.call('hexists', KEYS[1], owner) == 1 then
  lease_for(ARGV[1])
  return {1, redis.call('hincrby', KEYS[1], owner, 1)}
end
local head, dropped = first_alive(owner)
local lease = redis.call('pttl', KEYS[1])
if lease == -2 and (not head or head == owner) then
  if head then
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], owner)
    lower(0, limit)
  end
  redis.call('hset', KEYS[1], owner, 1)
  redis.call('pexpire', KEYS[1], ARGV[1])
  return {1, 1}
end
if dropped then
  wake(head)
end
if limit > 0 then
  local score, alive = redis.call('zscore', KEYS[3], owner), now + tonumber(ARGV[4])
  if not score then
    local last = redis.call('lindex', KEYS[2], -1)
    local before = last and redis.call('zscore', KEYS[3], last) or now + math.max(lease, 0)
    redis.call('zadd', KEYS[3], math.max(tonumber(before) + limit, alive), owner)
    redis.call('rpush', KEYS[2], owner)
  elseif tonumber(score) < alive then
    redis.call('zadd', KEYS[3], alive, owner)
  end
end
if lease == -2 then
  return {0, math.max(tonumber(redis.call('zscore', KEYS[3], head)) - now, 0)}
end
return {0, lease}
