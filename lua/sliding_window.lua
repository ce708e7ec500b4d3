-- Sliding window log: may this request pass all of its limits?
--
-- KEYS[i]          sorted set of limit i: one member per counted request,
--                  scored with the microsecond it was counted in
-- ARGV[1]          the request's id, its member in every set
-- ARGV[2i]         window of limit i in microseconds
-- ARGV[2i + 1]     requests that limit i allows per window, at least 1
--
-- Returns three whole numbers per limit:
--   admits   1 if the limit has room for this request, else 0
--   used     requests in the window, with this one if it was counted
--   wait     microseconds: until the oldest one leaves the window if there is
--            room, else until this request would be admitted
--
-- The request is counted in every set if every limit has room, else in none.
-- One counted at time t is in the window while now - t < window. Entries from
-- the future (the clock stepped back) are in it too: nothing passes early.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local id = ARGV[1]
local reply = {}
local admitted = true

for i, key in ipairs(KEYS) do
    local window = tonumber(ARGV[2 * i])
    local max = tonumber(ARGV[2 * i + 1])
    local expired = now - window
    local used = 0

    local oldest = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])

    if oldest and oldest <= expired then
        redis.call('ZREMRANGEBYSCORE', key, '-inf', expired)
        oldest = tonumber(redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')[2])
    end

    if oldest then
        used = redis.call('ZCARD', key)
    end

    -- the entry whose leaving makes room: not the oldest if max was lowered
    if used > max then
        local rank = used - max
        oldest = tonumber(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
    end

    local admits = used < max
    admitted = admitted and admits

    reply[3 * i - 2] = admits and 1 or 0
    reply[3 * i - 1] = used
    reply[3 * i] = (oldest or now) + window - now
end

if admitted then
    for i, key in ipairs(KEYS) do
        redis.call('ZADD', key, now, id)
        -- a second more than the window, so that rounding to milliseconds
        -- cannot cut it short
        redis.call('PEXPIRE', key, math.ceil(ARGV[2 * i] / 1000) + 1000)
        reply[3 * i - 1] = reply[3 * i - 1] + 1
    end
end

return reply
