-- Tells those who wait, in a cluster; put before the scripts that do.
-- returns how many were told at this node. A user who may not publish has done the rest all the same.
local function tell(channel, message)
  -- Only since Redis 7, and where the channel is in the slot. Others, and a Redisson before 3.22, hear the second one.
  local by_shard = redis.pcall('spublish', channel, message)
  local told = redis.pcall('publish', channel, message)
  return (type(by_shard) == 'number' and by_shard or 0) + (type(told) == 'number' and told or 0)
end
