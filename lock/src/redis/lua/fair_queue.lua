-- What the scripts of the fair lock share; it is put before each of them.
-- KEYS[1] the lock, a hash: owner -> 1   KEYS[2] the queue, a list of owners in order of arrival
-- KEYS[3] a sorted set: owner -> until when it counts as alive, in epoch ms   KEYS[4] the channel; each owner listens
-- at `<channel>:<owner>`   KEYS[5] a sorted set of our own waiters: owner -> until when its last try lets it be silent
-- Time is the server's: a client whose clock is ahead would take the living for dead.
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- Who lives looks twice as often as this, and so keeps its place when a correction brings its score down to now.
local GRACE = 1000
-- A waiter of ours tries twice a second. One that has not done so for as long as this has died.
local SILENT = 5000
-- A queue in which nobody has waited for as long as this after its last score is forgotten, as a whole.
local FORGOTTEN = 3600000

local function alive(owner)
  local score, seen = redis.call('zscore', KEYS[3], owner), redis.call('zscore', KEYS[5], owner)
  return score and tonumber(score) > now and not (seen and tonumber(seen) <= now)
end

-- The first in the queue that is alive, and whether dead ones before it were dropped. `caller` lives: it is asking.
local function first_alive(caller)
  local dropped = false
  while true do
    local head = redis.call('lindex', KEYS[2], 0)
    if not head or head == caller or alive(head) then
      return head, dropped
    end
    redis.call('lpop', KEYS[2])
    redis.call('zrem', KEYS[3], head)
    redis.call('zrem', KEYS[5], head)
    dropped = true
  end
end

-- Lowers the scores of all from the place `from` (0 is the head): one before them no longer makes them wait.
local function lower(from, by)
  for _, owner in ipairs(redis.call('lrange', KEYS[2], from, -1)) do
    local score = tonumber(redis.call('zscore', KEYS[3], owner) or now)
    local lowered = math.max(score - by, now + GRACE)
    if lowered < score then
      redis.call('zadd', KEYS[3], lowered, owner)
    end
  end
end

-- Lets the queue, its scores and what was seen of its waiters last for at least so long.
local function keep(ms)
  for _, key in ipairs({KEYS[2], KEYS[3], KEYS[5]}) do
    if redis.call('pttl', key) < ms then
      redis.call('pexpire', key, ms)
    end
  end
end

-- Tells the head, and nobody else, that the lock is free.
local function wake(head)
  if head and redis.call('exists', KEYS[1]) == 0 then
    redis.pcall('publish', KEYS[4] .. ':' .. head, '0')
  end
end
