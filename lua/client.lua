-- One client in one zone, for an operator: where it stands, and what is ruled about it.
--
-- KEYS[1]  the client's sorted set; lua/sliding_window.lua says what is in it
-- KEYS[2]  by which it is found if something was ruled about it
-- ARGV     what to do ('look', 'forget', 'ban' or 'max'), the window in microseconds, buckets,
--          for so many microseconds (0 lifts), and which max
--
-- Returns used, wait, how long it is still banned, its max (0: its own), for how long that
-- still holds, how many entries there are, and of the newest 100 of these, the newest first:
-- how long ago, the cost, 1 if it was refused, and the id.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local act, window, buckets = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local for_us, max_given = tonumber(ARGV[4]), tonumber(ARGV[5])
local ban, max, max_until = 0, 0, 0
local old

for _, member in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], 0, 0)) do
    local b, m, u = string.match(member, '^!(%d+):(%d+):(%d+)$')
    if b then
        old, ban, max, max_until = member, tonumber(b), tonumber(m), tonumber(u)
    end
end

if ban <= now then ban = 0 end
if max_until <= now then max, max_until = 0, 0 end
if act == 'forget' then
    redis.call('UNLINK', KEYS[1])
    old, ban = nil, 0
elseif act == 'ban' then
    ban = for_us > 0 and now + for_us or 0
elseif act == 'max' then
    max, max_until = for_us > 0 and max_given or 0, for_us > 0 and now + for_us or 0
end

local text = string.format('%.0f:%.0f:%.0f', ban, max, max_until)
local ends = math.max(ban, max_until)
if old and old ~= '!' .. text then
    redis.call('ZREM', KEYS[1], old)
end
if ends > 0 then
    local ms = string.format('%.0f', (ends - now) / 1000 + 1000)
    redis.call('ZADD', KEYS[1], 0, '!' .. text)
    redis.call('PEXPIRE', KEYS[1], string.format('%.0f', math.max(ms, 2 * window / 1000 + 1000)))
    redis.call('SET', KEYS[2], text, 'PX', ms)
else
    redis.call('UNLINK', KEYS[2])
end

local entries = redis.call('ZREVRANGEBYSCORE', KEYS[1], '+inf', '(0', 'WITHSCORES')
local reply = { 0, 0, ban > 0 and ban - now or 0, max, max > 0 and max_until - now or 0, 0 }
for j = 1, #entries, 2 do
    local ago, cost, id = now - entries[j + 1], 1, entries[j]
    if buckets > 0 then
        ago, cost, id = now - entries[j] + math.ceil(window / buckets), tonumber(entries[j + 1]), ''
    else
        cost = tonumber(string.match(id, '%*(%d+)')) or 1
    end
    if ago < window then
        reply[1], reply[6] = reply[1] + cost, reply[6] + 1
        reply[2] = window - ago
        if reply[6] <= 100 then
            local n = #reply
            reply[n + 1], reply[n + 2] = math.max(0, ago), cost
            reply[n + 3] = string.find(entries[j], '!', 1, true) and 1 or 0
            reply[n + 4] = string.match(id, '^[^*!]*')
        end
    end
end

return reply
