-- Tells those who wait; put before the scripts that do.
-- returns how many were told. A user who may not publish has done the rest all the same.
local function tell(channel, message)
  local told = redis.pcall('publish', channel, message)
  return type(told) == 'number' and told or 0
end
