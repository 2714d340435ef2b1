-- Compiles and runs a student's script, so that nothing of it stays in the cache of scripts. KEYS[1] is the lock, ARGV[1]
-- the owner, ARGV[2] the lease, ARGV[3] the script, ARGV[4] the most entries that the lock may hold, ARGV[5] how long the
-- lock is kept at most, in milliseconds, ARGV[6] the most bytes of a word that a command adds, or compile. The student's text
-- has a redis of its own, which bounds what a command adds.
local key, most, longest, widest = KEYS[1], tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local growing = {rpush = 'llen', hset = 'hlen', hsetnx = 'hlen', hincrby = 'hlen'}
local function bounded(call, refuse)
  return function(name, ...)
    name = string.lower(name)
    for _, word in ipairs({...}) do
      word = tostring(word)
      if #word > widest and word ~= key and word ~= ARGV[1] then
        return refuse('a word in the lock may have ' .. widest .. ' bytes')
      end
    end
    local size = growing[name]
    if size then
      local added = select('#', ...) - 1
      if size == 'hlen' then added = added / 2 end
      local held = redis.pcall(size, key)
      if type(held) == 'number' and held + added > most then
        return refuse('the lock may hold ' .. most .. ' entries')
      end
    end
    return call(name, ...)
  end
end
local compiled, why = loadstring('local redis, KEYS, ARGV = ... ' .. ARGV[3], '@user_script')
if not compiled then
  return redis.error_reply('ERR ' .. why)
end
if ARGV[6] == 'compile' then
  return 1
end
local own = {
  call = bounded(redis.call, function(why) error(why, 0) end),
  pcall = bounded(redis.pcall, function(why) return redis.error_reply('ERR ' .. why) end)
}
local answer = compiled(own, {key}, {ARGV[1], ARGV[2]})
local left = redis.call('pttl', key)
if left == -1 or left > longest then
  redis.call('pexpire', key, longest)
end
return answer
