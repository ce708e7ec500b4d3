-- One client: where does it stand, and what does an operator want to be done about it?
--
-- KEYS[1]   the sorted set that counts a limit for this client: see sliding_window.lua
-- KEYS[2]   where a ruling about the client is noted once more, so that all of them can be
--           found by their names; it is there for as long as the ruling holds.
--           Not needed to look
-- ARGV[1]   'look'    changes nothing
--           'forget'  removes what was counted, and a ban
--           'ban'     bans the client, or lifts a ban
--           'max'     gives it another max, or its own again
-- ARGV[2]   the window, in microseconds
-- ARGV[3]   0: a log, else how many buckets a window has
-- ARGV[4]   for how many microseconds it is banned or has that max; 0: no more
-- ARGV[5]   that max
--
-- Returns where the client stands then, in whole numbers
--   used       what is used of max in this window; or more, while a log of costs still has
--              very many entries that have expired
--   wait       microseconds until something leaves the window; 0: there is nothing in it
--   ban        microseconds for which it is still banned; 0: it is not
--   max, left  the max that it was given, and for how many microseconds more; 0, 0: none
--   entries    how many are counted: requests, or buckets
-- and then four for each of the newest 100, the newest first
--   ago        how many microseconds ago it was counted, or the bucket began
--   cost       what it takes of max
--   refused    1 if it was refused and counts all the same, else 0
--   id         the request's id, a string; '' for a bucket
--
-- Nothing is counted by looking. Like sliding_window.lua this goes through a bounded number
-- of entries, whatever the client has done.

local act, window, buckets = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local key, index = KEYS[1], KEYS[2]
local most_shown, most_read = 100, 1000

-- How long a bucket lasts, and how long something stays in the window after its score.
local width = buckets > 0 and math.ceil(window / buckets) or 0
local stays = buckets > 0 and buckets * width or window

-- What stands before the entries: a ruling, the sum of what costs exceed 1, and in buckets
-- how far counts were moved, in any order.
local ban, max, max_until = 0, 0, 0
local ruling, surplus, before = nil, 0, 0

for rank, member in ipairs(redis.call('ZRANGE', key, 0, 1)) do
    local b, m, u = string.match(member, '^!(%d+):(%d+):(%d+)$')
    if b then
        ruling, ban, max, max_until = member, tonumber(b), tonumber(m), tonumber(u)
        before = rank
    elseif string.sub(member, 1, 1) == '+' then
        surplus, before = tonumber(string.match(member, '%d+')), rank
    elseif member == 'moved' then
        before = rank
    end
end

-- ---- What is to be done

if act == 'forget' then
    ban = 0
elseif act == 'ban' then
    ban = ARGV[4] == '0' and 0 or now + ARGV[4]
elseif act == 'max' then
    max, max_until = tonumber(ARGV[5]), now + ARGV[4]
end

-- What is over is not said any more.
ban = ban > now and ban or 0
if max_until <= now then
    max, max_until = 0, 0
end

if act ~= 'look' then
    local ends = math.max(ban, max_until)
    local text = string.format('%.0f:%.0f:%.0f', ban, max, max_until)
    -- a second more, so that rounding to milliseconds cannot cut it short
    local function ms_of(microseconds) return string.format('%d', microseconds / 1000 + 1000) end

    -- what may be denied comes first, so that nothing is half done
    if ends > now then
        redis.call('SET', index, text, 'PX', ms_of(ends - now))
    else
        redis.call('UNLINK', index)
    end
    if act == 'forget' then
        redis.call('UNLINK', key)
        surplus, before = 0, 0
    elseif ruling then
        redis.call('ZREM', key, ruling)
        before = before - 1
    end
    if ends > now then
        redis.call('ZADD', key, 0, '!' .. text)
        before = before + 1
    end
    redis.call('PEXPIRE', key, ms_of(math.max(ends - now, 2 * stays)))
end

-- ---- Where it stands

local used, wait, entries = 0, 0, 0
local requests = {}

-- If the clock has stepped back, what was counted in the future counts from now on.
local function show(ago, cost, refused, id)
    local n = #requests
    requests[n + 1], requests[n + 2], requests[n + 3], requests[n + 4] = math.max(0, ago), cost, refused, id
end

-- An entry of a log: its id, '*COST' if that is not 1, '!' if it was refused.
local function cost_of(member)
    local star = string.find(member, '*', 1, true)
    return star and tonumber(string.match(member, '%d+', star)) or 1
end

local function look_at_log()
    local expired = redis.call('ZCOUNT', key, '(0', now - stays)
    local all = redis.call('ZCARD', key) - before

    entries = all - expired
    if entries <= 0 then
        entries = 0
        return
    end

    -- what has expired, and was not removed yet, is part of the sum
    if surplus > 0 and expired > 0 then
        local last = before + math.min(expired, most_read) - 1
        for _, member in ipairs(redis.call('ZRANGE', key, before, last)) do
            surplus = surplus - cost_of(member) + 1
        end
    end
    used = entries + surplus

    local first = before + expired
    wait = math.min(stays, redis.call('ZRANGE', key, first, first, 'WITHSCORES')[2] + stays - now)

    local newest = redis.call('ZRANGE', key, -math.min(entries, most_shown), -1, 'WITHSCORES')
    for n = #newest - 1, 1, -2 do
        local member = newest[n]
        local refused = string.find(member, '!', 1, true) and 1 or 0
        -- one that somebody else has written may be of any length
        show(now - newest[n + 1], cost_of(member), refused, string.sub(string.match(member, '^[^*!]*'), 1, 36))
    end
end

local function look_at_buckets()
    local found = {}
    for n, entry in ipairs(redis.call('ZRANGE', key, before, 1024, 'WITHSCORES')) do
        if n % 2 == 1 then
            found[#found + 1] = { tonumber(entry) or 0 }
        else
            found[#found][2] = tonumber(entry)
        end
    end
    table.sort(found, function(a, b) return a[1] > b[1] end)

    for _, bucket in ipairs(found) do
        local ends, count = bucket[1], bucket[2]
        if ends + stays > now then
            used, entries, wait = used + count, entries + 1, math.min(stays + width, ends + stays - now)
            if entries <= most_shown then
                show(now - ends + width, count, 0, '')
            end
        end
    end
end

if buckets > 0 then
    look_at_buckets()
else
    look_at_log()
end

return { used, wait, ban > 0 and ban - now or 0, max, max > 0 and max_until - now or 0, entries, unpack(requests) }
