-- The sliding window script of AxumKit (MIT License), as its documentation has it, to measure
-- beside.

local key = KEYS[1]
local now = tonumber(ARGV[1])       -- Current time (ms)
local window = tonumber(ARGV[2])    -- Window size (ms)
local max_requests = tonumber(ARGV[3])
local request_id = ARGV[4]          -- UUID v7

-- Remove entries outside window
redis.call('ZREMRANGEBYSCORE', key, 0, now - window)

-- Count current requests
local count = redis.call('ZCARD', key)

-- Check limit
if count >= max_requests then
    -- Calculate retry_after from oldest entry
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    local retry_after = math.ceil((oldest[2] + window - now) / 1000)
    return {0, count, retry_after}
end

-- Add request and set TTL
redis.call('ZADD', key, now, request_id)
redis.call('EXPIRE', key, math.ceil(window / 1000) + 1)
return {1, count + 1, 0}
