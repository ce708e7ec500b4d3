-- The approximation of a sliding window from two fixed ones: what was let through in the one
-- before is taken to have come evenly, so that as much of it counts as the sliding window still
-- covers.

local window, max = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local number = math.floor(now / window)
local this, before = KEYS[1] .. ':' .. number, KEYS[1] .. ':' .. number - 1

local covered = 1 - now % window / window
local estimate = (tonumber(redis.call('GET', before)) or 0) * covered + (tonumber(redis.call('GET', this)) or 0)

if estimate + 1 > max then
    return 0
end

redis.call('INCR', this)
redis.call('PEXPIRE', this, math.ceil(2 * window / 1000))

return 1
