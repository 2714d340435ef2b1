-- Takes a piece, if there is one.
-- KEYS[1] the stock
-- returns n >= 0: taken, and n are left    -1: sold out    nil: there is no such stock
local count = tonumber(redis.call('get', KEYS[1]))
if not count then
  return nil
end
if count <= 0 then
  return -1
end
return redis.call('decr', KEYS[1])
