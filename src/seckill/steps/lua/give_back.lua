-- Gives back the piece of an order that will not be written, once: as long as its entry is pending. Its user may order again.
--
-- KEYS: 1 the stream of orders; 2 the voucher, a hash of stock, begin and end; 3 its users, a set, unless the user has another order
-- ARGV: 1 the group, 2 the entry, 3 the user
-- returns: 1 given back, 0 the entry is settled, or the voucher is not there
local pending = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[2], ARGV[2], 1)
if pending.err or #pending == 0 then return 0 end
if redis.call('HEXISTS', KEYS[2], 'stock') == 0 then return 0 end
redis.call('HINCRBY', KEYS[2], 'stock', 1)
if KEYS[3] then redis.call('SREM', KEYS[3], ARGV[3]) end
return 1
