-- A counter for each window, and these begin at multiples of their length.

local window, max = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local key = KEYS[1] .. ':' .. math.floor(now / window)

local count = redis.call('INCR', key)
redis.call('PEXPIRE', key, math.ceil(window / 1000))

return count <= max and 1 or 0
