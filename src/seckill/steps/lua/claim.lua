-- Checks and claims a voucher in one step, and queues the order, to be written by a consumer of the stream.
--
-- KEYS: 1 the voucher, a hash of stock, begin and end (Unix milliseconds); 2 its users, a set; 3 the stream of orders;
--       4 the queued orders, a hash from the order to its entry
-- ARGV: 1 the user, 2 the voucher, 3 the order
-- returns: 0 claimed, 1 the voucher is not there, 2 not begun, 3 over, 4 sold out, 5 the user has an order
local stock, begins, ends = unpack(redis.call('HMGET', KEYS[1], 'stock', 'begin', 'end'))
if not stock then return 1 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if now < tonumber(begins) then return 2 end
if now > tonumber(ends) then return 3 end
if tonumber(stock) < 1 then return 4 end
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 1 then return 5 end
-- The entry comes first: where Redis refuses it, nothing was claimed.
local entry = redis.call('XADD', KEYS[3], '*', 'id', ARGV[3], 'userId', ARGV[1], 'voucherId', ARGV[2])
redis.call('HSET', KEYS[4], ARGV[3], entry)
redis.call('HINCRBY', KEYS[1], 'stock', -1)
redis.call('SADD', KEYS[2], ARGV[1])
return 0
