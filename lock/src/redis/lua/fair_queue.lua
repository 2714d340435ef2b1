-- Shared by the scripts of the fair lock, and put before each of them.
-- KEYS[1] the lock, a hash: owner -> 1   KEYS[2] the queue, a list of owners in order of arrival
-- KEYS[3] a sorted set: owner -> until when it counts as alive, in epoch ms   KEYS[4] the channel; each owner listens
-- at `<channel>:<owner>`   KEYS[5] a sorted set of our own waiters: owner -> until when it may be silent after its last try
-- Time is the server's: a client whose clock is ahead would drop living waiters.
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- A living waiter looks twice within this, and so keeps its place when a correction lowers its score to now.
local GRACE = 1000
-- Our waiters try twice a second. One that has not tried for this long is dead.
local SILENT = 5000
-- A queue expires as a whole this long after its last score.
local FORGOTTEN = 3600000

local function alive(owner)
  local score, seen = redis.call('zscore', KEYS[3], owner), redis.call('zscore', KEYS[5], owner)
  return score and tonumber(score) > now and not (seen and tonumber(seen) <= now)
end

-- The first in the queue that is alive, and whether dead ones before it were dropped. `caller` is alive.
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

-- Lowers the scores from the place `from` on (0 is the head), because a waiter before them has gone.
local function lower(from, by)
  for _, owner in ipairs(redis.call('lrange', KEYS[2], from, -1)) do
    local score = tonumber(redis.call('zscore', KEYS[3], owner) or now)
    local lowered = math.max(score - by, now + GRACE)
    if lowered < score then
      redis.call('zadd', KEYS[3], lowered, owner)
    end
  end
end

-- Extends the expiry of the queue, its scores and the times of its waiters to at least this.
local function keep(ms)
  for _, key in ipairs({KEYS[2], KEYS[3], KEYS[5]}) do
    if redis.call('pttl', key) < ms then
      redis.call('pexpire', key, ms)
    end
  end
end

-- Tells only the head that the lock is free.
local function wake(head)
  if head and redis.call('exists', KEYS[1]) == 0 then
    tell(KEYS[4] .. ':' .. head, '0')
  end
end
