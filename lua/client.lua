-- One client: where does it stand, and what does an operator want to be done about it?
--
-- KEYS[1]   where a limit is counted for this client: see sliding_window.lua
-- KEYS[2]   where a ruling about the client is noted once more, so that all of them can be
--           found by their names; it is there for as long as the ruling holds.
--           Not needed to look
-- ARGV[1]   'look'    changes nothing
--           'forget'  removes what was counted, and a ban
--           'ban'     bans the client, or lifts a ban
--           'max'     gives it another max, or its own again
-- ARGV[2]   the window, in microseconds
-- ARGV[3]   the algorithm, as for sliding_window.lua. What is there may be of another one, if
--           that was changed: it is looked at as it is
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
-- and then four for each of the newest 100, the newest first; a request that has cost more
-- than was counted of it on arrival may be there twice
--   ago        how many microseconds ago it was counted, or the bucket began
--   cost       what it takes of max
--   refused    1 if it was refused and counts all the same, else 0
--   id         the request's id, a string; '' for a bucket
--
-- Nothing is counted by looking. Like sliding_window.lua this goes through a bounded number
-- of entries, whatever the client has done.

local act, window, algorithm = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local key, index = KEYS[1], KEYS[2]
local most_shown, most_read = 100, 1000
local pack, unpack_from = struct.pack, struct.unpack

local used, wait, entries = 0, 0, 0
local requests = {}

-- If the clock has stepped back, what was counted in the future counts from now on.
local function show(ago, cost, refused, id)
    local n = #requests
    requests[n + 1], requests[n + 2], requests[n + 3], requests[n + 4] = math.max(0, ago), cost, refused, id
end

-- How long something stays in the window after the time that it is noted with.
local buckets = tonumber(algorithm) or 0
local width = buckets > 0 and math.ceil(window / buckets) or 0
local stays = buckets > 0 and buckets * width or window

-- Each kind of thing that may be there is a table of functions.
--   read     returns its ruling: three numbers; none if there is none
--   rule     gives it a ruling, which is three numbers or nil
--   look_at  finds out what is used and when something leaves, and shows the newest

-- ---- Log

local set = {}

-- What stands before the entries: a ruling, and the sum of what costs exceed 1, in any
-- order.
local ruling, surplus, before = nil, 0, 0

function set.read()
    local ban, max, ends

    for rank, member in ipairs(redis.call('ZRANGE', key, 0, 1)) do
        local b, m, u = string.match(member, '^!(%d+):(%d+):(%d+)$')
        if b then
            ban, max, ends = tonumber(b), tonumber(m), tonumber(u)
            ruling, before = member, rank
        elseif string.sub(member, 1, 1) == '+' then
            surplus, before = tonumber(string.match(member, '%d+')), rank
        end
    end
    return ban, max, ends
end

function set.rule(ban, max, ends)
    if ruling then
        redis.call('ZREM', key, ruling)
        before = before - 1
    end
    if ban then
        redis.call('ZADD', key, 0, string.format('!%.0f:%.0f:%.0f', ban, max, ends))
        before = before + 1
    end
end

-- An entry of a log: its id, '+' if it was counted when the request was settled, '*COST' if
-- that is not 1, '!' if it was refused.
local function cost_of(member)
    local star = string.find(member, '*', 1, true)
    return star and tonumber(string.match(member, '%d+', star)) or 1
end

function set.look_at()
    local expired = redis.call('ZCOUNT', key, '(0', now - window)

    entries = redis.call('ZCARD', key) - before - expired
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
    wait = math.min(window, redis.call('ZRANGE', key, first, first, 'WITHSCORES')[2] + window - now)

    local newest = redis.call('ZRANGE', key, -math.min(entries, most_shown), -1, 'WITHSCORES')
    for n = #newest - 1, 1, -2 do
        local member = newest[n]
        local refused = string.find(member, '!', 1, true) and 1 or 0
        -- one that somebody else has written may be of any length
        show(now - newest[n + 1], cost_of(member), refused, string.sub(string.match(member, '^[^+*!]*'), 1, 36))
    end
end

-- ---- Strings

local function read_string(from, to)
    return redis.call('GETRANGE', key, from, to)
end

local kind = 0

local function read_flag()
    local first = string.byte(read_string(0, 0)) or 0

    kind = first % 128
    if kind > 4 and act ~= 'forget' then
        redis.call('ZCARD', key)    -- an error: nothing of ours
    elseif first >= 128 then
        return unpack_from('>I8I8I8', read_string(-24, -1))
    end
end

-- How long it is without a ruling.
local function length_of_counts()
    if kind == 0 then
        return 1
    elseif kind == 4 then
        return 43 + 16 * unpack_from('>I2', read_string(1, 2))
    end
    local slots = unpack_from('>I3', read_string(1, 3))
    return kind == 1 and 36 + 8 * slots or kind == 2 and 36 + 24 * slots or 60 + 40 * slots
end

local function rule_string(ban, max, ends)
    local text = ban and pack('>I8I8I8', ban, max, ends)

    if text then
        redis.call('SETRANGE', key, length_of_counts(), text)
        redis.call('SETRANGE', key, 0, string.char(128 + kind))
    elseif kind > 0 then
        redis.call('SETRANGE', key, 0, string.char(kind))
    else
        redis.call('UNLINK', key)
    end
end

-- ---- Packed log

local ring = { read = read_flag, rule = rule_string }

function ring.look_at()
    local more = kind == 3 and { unpack_from('>I8', read_string(36, 43)) } or { 0 }
    local _, slots, _, slot, oldest, count, newest = unpack_from('>I1I3I8I4I8I4I8', read_string(0, 35))
    local base = kind == 3 and 60 or 36

    local function read(at, bytes, n)
        local from = at + bytes * ((slot + n) % slots)
        return read_string(from, from + bytes - 1)
    end
    local function time_of(n)
        return (unpack_from('>I8', read(base, 8, n)))
    end
    local function cost_of_entry(n)
        if kind < 3 then
            return 0, 1
        end
        return unpack_from('>I1I7', read(base + 24 * slots, 16, n))
    end
    local function id_of_entry(n)
        local a, b, c, d = 0, 0, 0, 0
        if kind > 1 then
            a, b, c, d = unpack_from('>I4I4I4I4', read(base + 8 * slots, 16, n))
        end
        if a + b + c + d == 0 then
            return ''
        end
        local digits = string.format('%08x%08x%08x%08x', a, b, c, d)
        return (string.gsub(digits, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-'))
    end

    -- the first that has not expired
    local low, high = 0, count
    if newest <= now - window then
        low = count
    elseif oldest > now - window then
        high = 0
    end
    while low < high do
        local middle = math.floor((low + high) / 2)
        if time_of(middle) <= now - window then
            low = middle + 1
        else
            high = middle
        end
    end

    entries = count - low
    if entries == 0 then
        return
    end
    used = entries + more[1]
    if more[1] > 0 then
        for n = 0, math.min(low, most_read) - 1 do
            local _, cost = cost_of_entry(n)
            used = used - cost + 1
        end
    end
    wait = math.min(window, time_of(low) + window - now)

    for n = count - 1, math.max(low, count - most_shown), -1 do
        local what, cost = cost_of_entry(n)
        show(now - time_of(n), cost, what == 1 and 1 or 0, id_of_entry(n))
    end
end

-- ---- Buckets

local pails = { read = read_flag, rule = rule_string }

function pails.look_at()
    local _, older, latest, _, _, _, count = unpack_from('>I1I2I8I8I8I8I8', read_string(0, 42))
    local pairs = (older > 0 and read_string(43, 42 + 16 * older) or '') .. pack('>I8I8', latest, count)

    for at = #pairs - 15, 1, -16 do
        local ends, counted = unpack_from('>I8I8', pairs, at)
        if counted > 0 and ends + stays > now then
            used, entries, wait = used + counted, entries + 1, math.min(stays + width, ends + stays - now)
            if entries <= most_shown then
                show(now - ends + width, counted, 0, '')
            end
        end
    end
end

-- ---- What is there

local nothing = { read = read_flag, rule = rule_string, look_at = function() end }
local found = nothing
local what = redis.call('TYPE', key).ok

if what == 'zset' or what == 'none' and algorithm == '0' then
    found = set
end
local ban, max, max_until = found.read()
ban, max, max_until = ban or 0, max or 0, max_until or 0
if kind == 4 then
    found = pails
elseif kind > 0 then
    found = ring
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
    -- a second more, so that rounding to milliseconds cannot cut it short
    local function ms_of(microseconds) return string.format('%d', microseconds / 1000 + 1000) end

    -- what may be denied comes first, so that nothing is half done
    if ends > now then
        redis.call('SET', index, string.format('%.0f:%.0f:%.0f', ban, max, max_until), 'PX', ms_of(ends - now))
    else
        redis.call('UNLINK', index)
    end
    if act == 'forget' then
        redis.call('UNLINK', key)
        ruling, surplus, before, kind = nil, 0, 0, 0
        found = algorithm == '0' and set or nothing
    end
    if ends > now then
        found.rule(ban, max, max_until)
    else
        found.rule()
    end
    redis.call('PEXPIRE', key, ms_of(math.max(ends - now, 2 * stays)))
end

found.look_at()

return { used, wait, ban > 0 and ban - now or 0, max, max > 0 and max_until - now or 0, entries, unpack(requests) }
