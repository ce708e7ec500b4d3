-- The generic cell rate algorithm: each request moves the time by which all before it would have
-- come at the limit's rate, and that may be ahead by one window, so that `max` may come at once.

local window, max = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local arrival = math.max(now, tonumber(redis.call('GET', KEYS[1])) or 0) + window / max

if arrival - now > window then
    return 0
end

redis.call('SET', KEYS[1], string.format('%.0f', arrival), 'PX', math.ceil((arrival - now) / 1000))

return 1
