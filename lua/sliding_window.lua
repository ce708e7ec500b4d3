-- Sliding windows: may this request pass all of its limits?
--
-- KEYS[i]   where limit i is counted for this client
-- ARGV[1]   '' to ask, or the time that an earlier answer ended with (0: it is not known):
--           then what was counted by it is settled
-- ARGV[2]   the request's id, a UUID
-- ARGV[3…]  five for each limit:
--   window     in microseconds
--   max        what it allows per window, at least 1; to settle, in its place: what the
--              request has cost after all. 0: it is taken back
--   cost       what this request takes of that, at most max; 0 only looks
--   algorithm  0: a log, one entry per request, in a sorted set
--              'p': the same, packed into a string
--              else the parts of a window that are counted as wholes: its buckets
--   rule       'd' in it: requests that the limit refuses count, too
--              'n' in it: it never keeps a request from passing (a dry run)
--              'i' in it: the request may have to be settled in a packed log
-- Ordinary requests, whose limits have a cost of 1 and no rule, may be asked about in a
-- shorter form, and several that have the same limits at once:
-- KEYS      those of the first request, then of the second …
-- ARGV[1]   for each limit '/' and its algorithm, which is 'i' for a packed log with that rule
-- ARGV[2…]  window and max of each limit, then the ids of the requests, which only the
--           algorithms 0 and 'i' need
-- Then the numbers are returned as one string, eight bytes each, the lowest first:
-- that is less to write and to read. (One alone that is no ordinary request after
-- all is answered as others are.)
-- Whether this user of Redis may call all that the script ever needs is found out with
-- ARGV[1]   '?', and all else as for asking
-- Then every command of the script is called for each of the keys, whose counts are lost
-- by that, and the request is answered as if it had been asked about. A command that the
-- user may not call is an error, and nothing is left behind without a time to live.
--
-- Returns three whole numbers for each limit, of each request
--   admits   0 if the limit has no room for this request, 1 if it has, 2 if it
--            has and the request was counted, 3 if the client is banned; -1 if that
--            is not decided yet: the request has to be asked about once more, alone
--            (see below)
--   used     what is used of max, with this request if it was counted; or more than
--            that, while a log of costs still has many entries that have expired
--   wait     microseconds: until something leaves the window if the limit
--            admits (0: there is nothing in it), else until it would admit
-- and then the time in microseconds; or, for settling, of how many limits the counts were
-- changed. If an operator has given the client another max, one more number follows for
-- each limit: that max, or 0 where there is none.
--
-- The request is counted for every limit if every limit has room, else for none.
-- What is counted at time t is in the window while now - t < window.
--
-- What a request has cost may be known only when it has ended. Then it is settled.
--   less       is given back: what was counted keeps its time, and costs less from now on.
--              If it has cost nothing, it is gone. What has left the window makes no
--              difference any more, whether it is still there or not
--   more       is counted as of now, whether there is room for it or not, and whether what
--              was counted is still there or not: those who come next wait for it. Of a
--              request that only looked that is all that it has cost
-- In logs that may be repeated, because each is found by the request's id, and less only as
-- long as it costs what it did. (In a packed log one that was counted later is looked for
-- among the newest 16384.) Buckets know nobody: there each call counts.
--
-- All numbers that are given are at most 10^15. What is used is never more than 9 * 10^15,
-- so that sums stay exact: of what a request has cost more, what goes beyond is left out
-- (a log may count it if that is repeated when there is room again), and so is a refused one.
--
-- Redis's clock may step back, or be that of another server after a failover. Then
-- there are entries from the future. All of them were counted before now, so they
-- count as of the moment at which that is noticed: nothing passes early, and no wait
-- is longer than a window. It is noticed at the latest when a request is refused.
--
-- What an operator has ruled about the client stands with its counts: until when it is
-- banned, another max, and until when that holds, or 0. (client.lua writes it.) A ban
-- refuses all requests, and does not count them.
--
-- Every key lives as long as what is in it counts, at least: one window if that is
-- a single request, else two. Two are enough until the oldest request leaves or is
-- taken back, since all that is counted before that is counted within one window of
-- it. So its time is set anew with the second request, and whenever one leaves; where
-- it is known for how long the key lives, only when that would not be enough.
--
-- If a zone's algorithm was changed, a log is carried over to a packed one and the other
-- way round, by the first request that finds it. Of more than 1024 requests all count as
-- of the newest. To buckets and from them nothing is carried over but rulings, and what was
-- counted in the one is not settled in the other.
--
-- No call holds up Redis, whatever a client has done before: a call goes through a
-- bounded number of entries one by one, for all of its requests and limits together.
-- Every limit has its share of that, and what those before it have left of theirs. So it
-- takes Redis less than 1 ms (see bench/slowest.py), but for calls of very many keys, and
-- for those that move much of a very long packed log: these take up to 10 ms with 100,000.
--   what has expired   is removed as far as that goes; the rest is only counted, and
--                      removed by later calls. All of a log goes at once.
--   … with costs       has to be added up to be removed. While there is more of it, what
--                      is used is known to lie between two bounds. A request is admitted
--                      if there is room beside the higher one, and refused (perhaps with
--                      a wait that is too early) if there is none beside the lower one.
--                      Between them it is not decided: whoever asks again finds less
--   from the future    is given another time, or else not decided either. All of a
--                      long sorted set becomes a single entry that costs as much.
--   refused ones       that count: see the algorithms
--   a wait with costs  past so many entries it is too early, and whoever comes back
--                      then is told the rest
--
-- ---- Log
-- A sorted set. An entry is the request's id, '+' if it is what that has cost more than
-- was counted before, '*COST' if that is not 1, and '!' if it was refused, scored with its
-- time. The sum of what costs exceed 1 is an entry of its own, '+SUM' scored 0, so that
-- nobody has to add them up. Behind the '!' there may be a number: see set.forget(). A
-- ruling is '!BAN:MAX:UNTIL', scored 0. It is taken out while a limit is decided about, so
-- that nothing else need know of it.
--
-- ---- Packed log
-- A string: a head, and rings of as many slots, which begin anew at their first when the
-- last is taken. So requests come and leave, and nothing has to be moved. The first ring
-- has times; if requests may be settled there is one of ids; if they have costs or were
-- refused, one of these as well. Numbers are unsigned, the highest byte first.
--   1 byte   1, 2 or 3: how many rings there are; 0: nothing is counted, and this is all
--   3 bytes  slots
--   8 bytes  until when the key lives, at least
--   4 bytes  the slot of the oldest request, and  8 bytes  its time
--   4 bytes  how many there are, and              8 bytes  the time of the newest
-- and with three rings
--   8 bytes  the sum of what costs exceed 1
--   8 bytes  the sum of what refused ones cost (and start anew at 2^52)
--   8 bytes  how many of the newest were all refused
-- Ring of times: 8 bytes each. Of ids: 16 bytes each, 0 where none was kept. Of costs:
--   1 byte   1 if it was refused, 2 if it is what a request has cost more than was counted
--            before
--   7 bytes  its cost
--   8 bytes  the sum of what refused ones cost, up to it, if it was refused
-- If 128 is added to the first byte, the last 24 bytes of the string are a ruling, 8 for
-- each of its numbers. The string may be longer than all that.
--
-- ---- Buckets
-- A string, with a ruling at its end as in a packed log:
--   1 byte   4
--   2 bytes  how many buckets there are before the latest
--   8 bytes  when the latest ends, and  8 bytes  the oldest
--   8 bytes  when the last one ends that has counts from the future in it: nobody can tell
--            any more whose counts stand in those up to it, so nothing is taken back
--   8 bytes  what all of them count, and  8 bytes  the latest
-- and then, the oldest first, of each before the latest its end and its count, 8 bytes each.
-- A bucket leaves as a whole, when its last moment is one window old.

local time = redis.call('TIME')
local now_text = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local now = tonumber(now_text)
local args, keys = ARGV, KEYS

-- What this call may still do, and what of that is reserved for limits still to come: to
-- remove an entry takes one of it, and to read one and do something about it four. All of
-- it takes Redis about half a millisecond; the more keys there are, the more time is taken
-- by calls that are made for each of them.
local most = #keys < 24 and 1056 - 32 * #keys or 288
local work, reserved = most, 0
local few = 256

-- ---- What ordinary requests and others have in common
--
-- To make a function takes Redis as long as to count in a bucket, and so does each variable
-- that a function has from outside. So those that only some requests need are made by others,
-- once in a call, and all are told what they have to know.

-- A second more, so that rounding to milliseconds cannot cut it short.
local function keep_for(key, microseconds)
    redis.call('PEXPIRE', key, string.format('%d', microseconds / 1000 + 1000))
end

-- A string in the place of whatever is there.
local function write_for(key, text, microseconds)
    redis.call('SET', key, text, 'PX', string.format('%d', microseconds / 1000 + 1000))
end

-- ---- Log: what both have in common

-- Removes what has expired by then from a log of so many entries, none of which costs more
-- than 1: all of it if that is not more than `at_once`, else up to `at_most`. Returns how many
-- have not expired, behind how many that have and are still there, and how many were removed.
local function expire_set(key, count, expired_by, at_once, at_most)
    if count <= at_once then
        local removed = redis.call('ZREMRANGEBYSCORE', key, '-inf', expired_by)
        return count - removed, 0, removed
    end

    local expired = redis.call('ZCOUNT', key, '-inf', expired_by)
    if expired == count then
        redis.call('UNLINK', key)
        return 0, 0, 0
    end

    local removed = math.max(0, math.min(expired, math.floor(at_most)))
    if removed > 0 then
        redis.call('ZREMRANGEBYRANK', key, 0, removed - 1)
    end
    return count - expired, expired - removed, removed
end

-- ---- Packed log: what both have in common

local head_form = '>I1I3I8I4I8I4I8'
local now_8 = struct.pack('>I8', now)
local too_many = 2 ^ 22     -- from so many on, all of a log become a single entry that costs as much

-- As string.rep(), which is slow for what is long.
local function repeated(text, count)
    local result = ''
    while count > 0 do
        if count % 2 == 1 then
            result = result .. text
        end
        count = math.floor(count / 2)
        text = count > 0 and text .. text
    end
    return result
end

-- How many slots so many requests get, so that there is room for some more: as many as fit
-- into the piece of memory that Redis gets for it.
local function slots_for(rings, count)
    local base = rings == 3 and 60 or 36
    local width = rings == 1 and 8 or rings == 2 and 24 or 40
    local need = base + width * (count + math.max(6, math.floor(count / 64))) + 10
    local _, exponent = math.frexp(need)
    local step = 2 ^ (exponent - 3)

    return math.floor((math.ceil(need / step) * step - 10 - base) / width)
end

-- A packed log of these rings, the oldest first. Returns its slots, too.
local function lay_out(rings, expires, oldest, count, newest, more, times, ids, costs)
    local slots = slots_for(rings, count)
    local room = repeated('\0\0\0\0\0\0\0\0', slots - count)
    local head = struct.pack('>I1I3I8I4I8I4I8', rings, slots, expires, 0, oldest, count, newest)

    -- at once, as each part may be long
    if rings == 1 then
        return head .. times .. room, slots
    end
    return head .. more .. times .. room .. ids .. room .. room .. (rings > 2 and costs .. room .. room or ''), slots
end

local function make_ring_tools()
    local call, pack, unpack_from = redis.call, struct.pack, struct.unpack
    local tools = { no_id = string.rep('\0', 16) }

    -- So many in a row of a ring that begins at byte `at` and has so many bytes for each.
    local function read(key, at, width, slots, slot, count)
        local here = math.min(count, slots - slot)
        local text = call('GETRANGE', key, at + width * slot, at + width * (slot + here) - 1)

        if count > here then
            text = text .. call('GETRANGE', key, at, at + width * (count - here) - 1)
        end
        return text
    end
    tools.read = read

    -- How many of the times in a ring, from that slot on, are up to this moment, and the
    -- first that is not; the last is known not to be. Most often they are few.
    function tools.count_up_to(moment, key, at, slots, slot, count)
        local low, high = 0, count - 1

        local function is_up_to_it(n)
            return unpack_from('>I8', read(key, at, 8, slots, (slot + n) % slots, 1)) <= moment
        end

        while low <= high do
            local size = math.min(8, high - low + 1)
            local times = read(key, at, 8, slots, (slot + low) % slots, size)
            for n = 0, size - 1 do
                local found = unpack_from('>I8', times, 8 * n + 1)
                if found > moment then
                    return low + n, found
                end
            end

            -- all of these are: by leaps, and then by halves, to where the others begin
            local step = 16
            low = low + size
            while low + step < high and is_up_to_it(low + step) do
                low, step = low + step + 1, 4 * step
            end
            high = math.min(high, low + step)
            while high - low >= 8 do
                local middle = math.floor((low + high) / 2)
                if is_up_to_it(middle) then
                    low = middle + 1
                else
                    high = middle
                end
            end
        end
        return count, moment
    end

    -- So many bytes to a place behind theirs. In pieces, which Redis and Lua find memory for
    -- sooner than for all at once.
    local function move_up(key, from, to, size)
        while size > 0 do
            local piece = math.min(size, 8192)
            size = size - piece
            call('SETRANGE', key, to + size, call('GETRANGE', key, from + size, from + size + piece - 1))
        end
    end
    tools.move_up = move_up

    -- Makes a string as long as that. Then its key has no time to live any more. Redis gets twice
    -- the memory for what it makes longer, up to 1 MB more, until that is written anew.
    local function extend(key, size)
        call('SETRANGE', key, size - 1, '\0')
        if size < 2 ^ 17 then
            call('BITOP', 'OR', key, key)
        end
    end
    tools.extend = extend

    -- Gives rings that begin at byte `base` as many slots more. Of a ring that has begun anew
    -- those up to its end stay there. Returns the slot of the oldest. See extend() for the rest.
    function tools.grow(key, base, rings, slots, slot, more)
        local at_beginning = slot == 0 and slots or slot

        extend(key, base + (rings == 1 and 8 or rings == 2 and 24 or 40) * (slots + more))
        for number = rings, 1, -1 do
            local width = number == 1 and 8 or 16
            local before = number == 1 and 0 or number == 2 and 8 or 24
            local from, to = base + before * slots, base + before * (slots + more)

            move_up(key, from + width * at_beginning, to + width * (at_beginning + more), width * (slots - at_beginning))
            if to > from then
                move_up(key, from, to, width * at_beginning)
            end
        end
        return slot == 0 and 0 or slot + more
    end

    -- A UUID in 16 bytes; for any other id, and for none, they are 0.
    function tools.id_16(text)
        local a, b, c, d, e = string.match(text or '', '^(%x+)-(%x+)-(%x+)-(%x+)-(%x+)$')
        local digits = a and a .. b .. c .. d .. e or ''

        if #digits ~= 32 then
            return tools.no_id
        end
        return pack('>I4I4I4I4', tonumber(string.sub(digits, 1, 8), 16), tonumber(string.sub(digits, 9, 16), 16),
            tonumber(string.sub(digits, 17, 24), 16), tonumber(string.sub(digits, 25), 16))
    end

    return tools
end

local ring_tools    -- once they have been made

-- ---- Buckets: what both have in common

local buckets_form = '>I1I2I8I8I8I8I8'

-- Where a limit's buckets stand now.
local function place_buckets(limit, window, buckets, moment)
    limit.width = math.ceil(window / buckets)
    limit.span = buckets * limit.width
    limit.current = (math.floor(moment / limit.width) + 1) * limit.width
    limit.expired = moment - limit.span     -- so are buckets that ended by then
end

-- Goes on to the current bucket, and leaves out those that have expired. Returns those
-- before it, what all of them count, what the current one does, and when the oldest ends.
local function turn_buckets(limit, pairs, latest, used, count)
    local current, expired = limit.current, limit.expired
    local from = 1

    if latest < current then
        pairs = count > 0 and pairs .. struct.pack('>I8I8', latest, count) or pairs
        count = 0
    end
    while from < #pairs do
        local ends, counted = struct.unpack('>I8I8', pairs, from)
        if ends > expired then
            break
        end
        used, from = used - counted, from + 16
    end

    pairs = string.sub(pairs, from)
    return pairs, used, count, pairs ~= '' and struct.unpack('>I8', pairs) or current
end

local function buckets_text(pairs, latest, moved, used, count)
    local oldest = pairs ~= '' and struct.unpack('>I8', pairs) or latest

    return struct.pack('>I1I2I8I8I8I8I8', 4, #pairs / 16, latest, oldest, moved, used, count) .. pairs
end

-- ---- Ordinary requests
--
-- They are dealt with first and on their own, because most are. What counts here: every
-- redis.call, every function, table and string that is made, and every number that has to
-- be written out for Redis; so numbers that are known as text stay text, and all of it is one
-- loop that needs no further functions. What is no ordinary case is below, and slower.
--
-- All limits of a request are looked at before anything is added to one of them. `used` is what
-- is used of max, and `rest` how long until something leaves the window, if there is something
-- in it. What else was seen of a limit is for when the request is added to it, or for when only
-- what has expired is noted.

local call, pack, unpack_from = redis.call, struct.pack, struct.unpack
local is_short = string.byte(args[1]) == 47     -- '/'
local limits = {}

if is_short then
    local at = 2
    repeat
        local l, ends = #limits + 1, string.find(args[1], '/', at, true) or #args[1] + 1
        local algorithm, window = string.sub(args[1], at, ends - 1), tonumber(args[2 * #limits + 2])
        local limit = { window = window, max = tonumber(args[2 * #limits + 3]), left = now - window,
            algorithm = algorithm, rings = algorithm == 'p' and 1 or algorithm == 'i' and 2 or nil }
        if tonumber(algorithm) and algorithm ~= '0' then
            place_buckets(limit, window, tonumber(algorithm), now)
        end
        limits[l], at = limit, ends + 1
    until at > #args[1]

    local count = #limits
    local requests = #keys / count

    -- for what was seen of limits before the last
    for l = 1, count - 1 do
        limits[l].seen = { 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    end

    -- with room for what most calls need: to get more takes longer than to write into it
    local reply = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

    for r = 1, requests do
        local before = count * (r - 1)      -- its keys are behind so many others
        local is_ordinary, is_admitted = true, true
        local used, rest, rings, slots, expires, slot, oldest, newest, expired
        local latest, moved, pairs, is_new

        for l = 1, count do
            local limit, key = limits[l], keys[before + l]
            local algorithm, left, max = limit.algorithm, limit.left, limit.max

            if algorithm == '0' then
                -- one key that is no sorted set must not fail the others' requests
                local entry = redis.pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
                local first = entry[2]
                local behind = 0

                used, rest = first and first ~= '0' and call('ZCARD', key) or 0, first and first - left
                if used > 0 and rest <= 0 then
                    local removed
                    used, behind, removed = expire_set(key, used, left, work, work - most * (1 - (before + l) / #keys))
                    work = work - removed
                    rest = nil
                    if used > 0 then
                        rest = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] - left
                        keep_for(key, 2 * limit.window)
                    end
                end

                -- scored 0 is no request, but a ruling, or the sum of what costs exceed 1; and
                -- entries may be from the future
                if entry.err or first == '0' or behind > 0 or rest and rest > limit.window
                    or used >= max and call('ZCOUNT', key, '(' .. now_text, '+inf') > 0 then
                    is_ordinary = false
                end
            elseif limit.rings then
                local head = redis.pcall('GETRANGE', key, '0', '35')

                rings, expired = 0, 0
                if head == '' then
                    used, rest, slots = 0, nil, nil
                elseif #head < 36 then
                    is_ordinary = false
                else
                    rings, slots, expires, slot, oldest, used, newest = unpack_from(head_form, head)
                    if rings > 2 or rings < limit.rings or newest > now or used >= too_many then
                        is_ordinary = false
                    elseif oldest > left then
                        rest = oldest - left
                    elseif newest <= left then
                        used, rest, rings = 0, nil, 0
                    else
                        -- most often only few have expired: is the first that has not one of the next?
                        oldest = left
                        if used > 4 and slot + 4 < slots then
                            local times = call('GETRANGE', key, 44 + 8 * slot, 75 + 8 * slot)
                            repeat
                                expired = expired + 1
                                oldest = unpack_from('>I8', times, 8 * expired - 7)
                            until oldest > left or expired == 4
                        end
                        if oldest <= left then
                            ring_tools = ring_tools or make_ring_tools()
                            expired, oldest = ring_tools.count_up_to(left, key, 36, slots, slot, used)
                        end
                        used, rest, slot = used - expired, oldest - left, (slot + expired) % slots
                    end
                end
                if l < count then
                    local seen = limit.seen
                    seen[3], seen[4], seen[5], seen[6] = rings, slots, expires, slot
                    seen[7], seen[8], seen[9] = oldest, newest, expired
                end
            else
                -- if there are pairs, it is time to write all of it
                local head = redis.pcall('GETRANGE', key, '0', '42')

                is_new = head == ''
                if is_new then
                    used, rest, latest, moved, pairs = 0, nil, 0, 0, ''
                elseif #head < 43 then
                    is_ordinary = false
                else
                    local kind, older, ends, first, passed
                    kind, older, ends, first, moved, used, latest = unpack_from(buckets_form, head)
                    passed = limit.expired
                    if kind ~= 4 or ends > limit.current then
                        is_ordinary = false
                    elseif ends == limit.current and first > passed then
                        rest, pairs = used > 0 and first - passed or nil, nil
                    else
                        pairs = older > 0 and call('GETRANGE', key, 43, 42 + 16 * older) or ''
                        pairs, used, latest, first = turn_buckets(limit, pairs, ends, used, latest)
                        rest = used > 0 and first - passed or nil
                        moved = moved > passed and moved or 0
                    end
                    -- how long it takes if more than max is used is not for here
                    is_ordinary = is_ordinary and used <= max
                end
                if l < count then
                    local seen = limit.seen
                    seen[3], seen[4], seen[5], seen[6] = latest, moved, pairs, is_new
                end
            end

            if not is_ordinary then
                break
            end
            is_admitted = is_admitted and used < max
            if l < count then
                limit.seen[1], limit.seen[2] = used, rest
            end
        end

        if not is_ordinary and requests == 1 then
            reply = nil
            break
        end

        -- from the last on, of which all is known still
        for l = count, 1, -1 do
            local limit, key, seen = limits[l], keys[before + l], nil
            local window, max = limit.window, limit.max
            local admits = -1

            if l < count then
                seen = limit.seen
                used, rest = seen[1], seen[2]
            end

            if not is_ordinary then
                used, rest = 0, 0
            elseif limit.algorithm == '0' then
                if is_admitted then
                    call('ZADD', key, now_text, args[2 * count + 1 + r])
                    if used < 2 then
                        keep_for(key, (used + 1) * window)
                    end
                elseif used > max then
                    -- as many have to leave as are too many, and one
                    rest = call('ZRANGE', key, used - max, used - max, 'WITHSCORES')[2] - limit.left
                end
            elseif limit.rings then
                if seen then
                    rings, slots, expires, slot = seen[3], seen[4], seen[5], seen[6]
                    oldest, newest, expired = seen[7], seen[8], seen[9]
                end

                if not is_admitted then
                    if rings == 0 then
                        if slots then
                            call('UNLINK', key)
                        end
                    elseif expired > 0 then
                        call('SETRANGE', key, '12', pack('>I4I8I4I8', slot, oldest, used, newest))
                    end
                    if used > max then
                        ring_tools = ring_tools or make_ring_tools()
                        local first = ring_tools.read(key, 36, 8, slots, (slot + used - max) % slots, 1)
                        rest = unpack_from('>I8', first) - limit.left
                    end
                else
                    local id
                    if limit.rings == 2 or rings == 2 then
                        ring_tools = ring_tools or make_ring_tools()
                        id = ring_tools.id_16(args[2 * count + 1 + r])
                    end

                    if used == slots then
                        -- there is no room for one more
                        ring_tools = ring_tools or make_ring_tools()
                        local more = slots_for(rings, used + 1) - slots
                        slot = ring_tools.grow(key, 36, rings, slots, slot, more)
                        slots, expires = slots + more, now + 2 * window
                        call('SETRANGE', key, '0', pack('>I1I3I8I4', rings, slots, expires, slot))
                        keep_for(key, 2 * window)
                    end

                    if rings == 0 then
                        write_for(key, lay_out(limit.rings, now + window, now, 1, now, '', now_8, id), window)
                    elseif slots > 64 and used < slots / 4 then
                        -- there is far too much room
                        ring_tools = ring_tools or make_ring_tools()
                        local times = ring_tools.read(key, 36, 8, slots, slot, used)
                        local ids = rings == 2 and ring_tools.read(key, 36 + 8 * slots, 16, slots, slot, used) .. id
                        write_for(key, lay_out(rings, now + 2 * window, oldest, used + 1, now, '', times .. now_8, ids),
                            2 * window)
                    else
                        local free = (slot + used) % slots
                        if now + window > expires then
                            keep_for(key, 2 * window)
                            call('SETRANGE', key, '4', pack('>I8', now + 2 * window))
                        end
                        call('SETRANGE', key, 36 + 8 * free, now_8)
                        if rings == 2 then
                            call('SETRANGE', key, 36 + 8 * slots + 16 * free, id)
                        end
                        if expired > 0 then
                            call('SETRANGE', key, '12', pack('>I4I8I4I8', slot, oldest, used + 1, now))
                        else
                            call('SETRANGE', key, '24', pack('>I4I8', used + 1, now))
                        end
                    end
                end
            else
                if seen then
                    latest, moved, pairs, is_new = seen[3], seen[4], seen[5], seen[6]
                end

                local one = is_admitted and 1 or 0
                if not pairs then
                    if is_admitted then
                        call('SETRANGE', key, '27', pack('>I8I8', used + 1, latest + 1))
                    end
                elseif used + one > 0 or moved > 0 then
                    write_for(key, buckets_text(pairs, limit.current, moved, used + one, latest + one),
                        limit.span + limit.width)
                elseif not is_new then
                    call('UNLINK', key)
                end
            end

            if is_ordinary and is_admitted then
                admits, used = 2, used + 1
                -- the first to be counted leaves last
                rest = rest or limit.current and limit.current - limit.expired or window
            elseif is_ordinary then
                admits = used < max and 1 or 0
            end
            local last = 3 * (before + l)
            reply[last - 2], reply[last - 1], reply[last] = admits, used, rest or 0
        end
    end

    if reply then
        local numbers = 3 * #keys + 1
        reply[numbers] = now
        return pack('<' .. string.rep('i8', numbers), unpack(reply, 1, numbers))
    end
end

-- ---- Any request, alone
--
-- Each algorithm is a table of functions below: set, ring, buckets.
--   read       what it says to the request: admits, and used. False: not decided
--   count      counts it
--   last_out   the time with which as much has left as is needed; nil: that is never
--   lower      of a request that is settled: it cost less. False if that changes nothing
--   reopen     … it cost more: reads, as far as something can be added. False if it was
--              settled before
--   save       when all is done: what still has to be written, and the ruling

local id = is_short and args[2 * #limits + 2] or args[2]
local asked = {}    -- one for each limit
local counted_at = not is_short and tonumber(args[1])   -- if it is settled

for i, key in ipairs(keys) do
    if is_short then
        local limit = limits[i]
        asked[i] = { key = key, window = limit.window, max = limit.max, cost = 1, algorithm = limit.algorithm,
            keeps_id = limit.rings == 2 }
    else
        local window, max, cost, algorithm, rule = unpack(args, 5 * i - 2, 5 * i + 2)
        asked[i] = {
            key = key,
            window = tonumber(window),
            max = tonumber(max),
            true_cost = counted_at and tonumber(max),
            cost = tonumber(cost),
            algorithm = algorithm,
            counts_refused = string.find(rule, 'd', 1, true),
            is_dry_run = string.find(rule, 'n', 1, true),
            keeps_id = string.find(rule, 'i', 1, true),
        }
    end
end

ring_tools = ring_tools or make_ring_tools()
local no_id, read_ring, count_up_to = ring_tools.no_id, ring_tools.read, ring_tools.count_up_to
local id_16 = ring_tools.id_16
local costs_form = '>I8I8I8'

-- Calls everything that this script may ever call. What needs memory comes first: a script
-- that has changed something is given all it wants. Whatever is left behind has a time to
-- live.
local function rehearse(key)
    write_for(key, id, 1000000)
    call('SETRANGE', key, 0, id)
    keep_for(key, 1000000)
    call('BITOP', 'OR', key, key)
    keep_for(key, 1000000)
    call('GETRANGE', key, 0, 0)
    call('TYPE', key)
    call('UNLINK', key)
    call('ZADD', key, 'XX', 0, id)
    call('ZRANGE', key, 0, 0)
    call('ZCARD', key)
    call('ZCOUNT', key, 0, 0)
    call('ZREM', key, id)
    call('ZREMRANGEBYRANK', key, 0, 0)
    call('ZREMRANGEBYSCORE', key, 0, 0)
end

-- More is never used of a limit.
local most_used = 9 * 10 ^ 15

-- How many entries may still be read, and something be done about them, for this limit.
local function affordable()
    return math.max(0, math.floor((work - reserved) / 4))
end

-- Lets the limit be as an operator has ruled.
local function follow_ruling(limit, ban, max, ends)
    limit.own_max, limit.ban, limit.ruled_max, limit.ruled_until = limit.max, ban, 0, 0
    if ends > now then
        limit.max, limit.ruled_max, limit.ruled_until = max, max, ends
    end
    limit.is_banned = ban > now
end

-- For how long something that was ruled holds; 0: nothing does.
local function ruled_for(limit)
    return limit.ban and math.max(0, math.max(limit.ban, limit.ruled_until) - now) or 0
end

-- ---- What logs and packed logs have in common
--
-- Of these, the `kind` of a log says how it is done:
--   open        reads: size (how many there are), surplus (what they cost beyond 1), refused,
--               oldest (its time; nil: there is none) and first, where the oldest stands
--   expire      removes what has expired, where nothing costs more than 1
--   count_past  how many have expired
--   drop        removes so many of the oldest
--   clear       removes all
--   surpluses   what so many cost beyond 1, from one on
--   time_at     of one of them
--   set_sums    surplus and refused
--   is_ahead    whether it is time to look for entries from the future
--   bring_back  lets these count from now on. False if some are left
--   add         the request
--   forget      refused ones that do not matter any more

-- From so many entries on, or if they cost so much that sums could become inexact, refused
-- ones that do not matter any more are looked for.
local function is_crowded(log)
    if log.surplus > 0 then
        return log.size > 128 or log.surplus > 2 ^ 50
    end
    return log.size > 3 * log.max + 128
end

-- Where some cost more than 1. Those that have expired and are still there make it unsure
-- what the others cost.
local function expire_costs(log)
    local kind = log.kind
    local expired = kind.count_past(log)
    if expired == log.size then
        kind.clear(log)
        return
    end

    -- the other half is for what else there may be to read
    local removed = math.min(expired, math.floor(affordable() / 2))
    local left = log.surplus
    for _, surplus in ipairs(kind.surpluses(log, 0, removed)) do
        left = left - surplus
    end
    kind.drop(log, removed)
    work = work - 4 * removed

    kind.set_sums(log, left, log.refused)
    log.size, log.first = log.size - expired, log.first + expired - removed
    log.unsure = removed < expired and left or 0
end

-- Reads what some of the newest cost for sure, if it is unsure what all of them do.
local function read_newest(log)
    local count = math.min(32, affordable(), log.size)

    for _, surplus in ipairs(log.kind.surpluses(log, log.size - count, count)) do
        log.unsure = log.unsure - surplus
    end
    work = work - 4 * count
end

-- Opens a log, and removes what has expired.
local function open_log(log)
    local kind = log.kind

    log.size, log.surplus, log.refused, log.unsure, log.first = 0, 0, 0, 0, 0
    kind.open(log)

    if log.oldest and log.oldest <= now - log.window then
        if log.surplus == 0 then
            kind.expire(log)
        else
            expire_costs(log)
        end
        log.oldest = log.size > 0 and kind.time_at(log, 0) or nil
    end
    log.used = log.size + log.surplus
end

local function read_log(log)
    open_log(log)

    local kind, room = log.kind, log.max - log.cost
    log.admits = log.cost == 0 or log.used <= room

    if not log.admits and log.unsure > 0 then
        read_newest(log)
        if log.used - log.unsure <= room then
            return false
        end
    end
    return not kind.is_ahead(log) or kind.bring_back(log)
end

local function count_in_log(log)
    log.size, log.used = log.size + 1, log.used + log.cost
    log.kind.add(log)
    log.oldest = log.oldest or now
    if not log.admits and log.unsure == 0 and is_crowded(log) then
        log.kind.forget(log)
    end
end

local function last_out_of_log(log, need)
    local rank = 0

    if need == 1 then
        return log.oldest
    elseif log.surplus == 0 then
        rank = need - 1
    else
        local left, from, size = 0, 0, 8
        while left < need and affordable() > 0 and from < log.size do
            size = math.min(size, affordable())
            local surpluses = log.kind.surpluses(log, from, math.min(size, log.size - from))
            work = work - 4 * #surpluses
            for j, surplus in ipairs(surpluses) do
                left = left + 1 + surplus
                rank = from + j - 1
                if left >= need then
                    break
                end
            end
            from, size = from + size, 4 * size
        end
    end

    return log.kind.time_at(log, rank)
end

-- ---- Log

local set = { read = read_log, count = count_in_log, last_out = last_out_of_log }

-- What stands for a request, or for what it has cost more.
local function member_of(cost, is_settled)
    local member = is_settled and id .. '+' or id
    return cost == 1 and member or member .. string.format('*%.0f', cost)
end

-- What an entry costs beyond 1.
local function surplus_of(member)
    local star = string.find(member, '*', 1, true)
    return star and tonumber(string.match(member, '%d+', star)) - 1 or 0
end

-- The number behind the '!' of an entry, or of the sum.
local function refused_up_to(member)
    return tonumber(string.match(member, '!(%d+)')) or 0
end

-- Takes what a set begins with for its sum.
local function read_sum(log, member)
    log.sum, log.first = member, 1
    log.surplus, log.refused = tonumber(string.match(member, '%d+')), refused_up_to(member)
end

function set.set_sums(log, surplus, refused)
    local form = refused > 0 and '+%.0f!%.0f' or '+%.0f'
    local sum = surplus > 0 and string.format(form, surplus, refused) or nil

    if sum ~= log.sum then
        if log.sum then
            call('ZREM', log.key, log.sum)
        end
        if sum then
            call('ZADD', log.key, 0, sum)
        end
        log.first = log.first + (sum and 1 or 0) - (log.sum and 1 or 0)
    end
    log.sum, log.surplus, log.refused = sum, surplus, sum and refused or 0
end

-- If what a set begins with, and is scored 0, is a ruling: takes it out.
local function take_ruling(limit, member)
    local ban, max, ends = string.match(member, '^!(%d+):(%d+):(%d+)$')
    if not ban then
        return false
    end

    call('ZREM', limit.key, member)
    follow_ruling(limit, tonumber(ban), tonumber(max), tonumber(ends))
    return true
end

-- Of a key that is no set.
local function holds_buckets(key)
    return call('TYPE', key).ok == 'string' and (string.byte(call('GETRANGE', key, 0, 0)) or 0) % 128 == 4
end

-- What a key begins with, which may have held a packed log or buckets until now.
local carry_to_set

local function first_of_set(log, last)
    local first = redis.pcall('ZRANGE', log.key, '0', last, 'WITHSCORES')
    if first.err then
        if counted_at and holds_buckets(log.key) then
            log.is_other = true
            return {}
        end
        carry_to_set(log)
        first = call('ZRANGE', log.key, '0', last, 'WITHSCORES')
    end
    return first
end

function set.open(log)
    local entry = first_of_set(log, '0')

    if entry[2] == '0' and take_ruling(log, entry[1]) then
        entry = call('ZRANGE', log.key, '0', '0', 'WITHSCORES')
    end
    if entry[2] == '0' then
        read_sum(log, entry[1])
        entry = call('ZRANGE', log.key, '1', '1', 'WITHSCORES')
    end

    log.oldest = tonumber(entry[2])
    if log.oldest then
        log.size = call('ZCARD', log.key) - log.first
    end
end

function set.expire(log)
    local removed
    log.size, log.first, removed = expire_set(log.key, log.size, now - log.window, work, work - reserved)
    work = work - removed
    log.has_left = true
end

function set.count_past(log)
    log.has_left = true
    return call('ZCOUNT', log.key, '(0', now - log.window)
end

function set.drop(log, count)
    if count > 0 then
        call('ZREMRANGEBYRANK', log.key, log.first, log.first + count - 1)
    end
end

function set.clear(log)
    call('UNLINK', log.key)
    log.size, log.surplus, log.refused, log.first, log.sum = 0, 0, 0, 0, nil
end

function set.surpluses(log, from, count)
    local surpluses = {}
    if count > 0 then
        from = log.first + from
        for j, member in ipairs(call('ZRANGE', log.key, from, from + count - 1)) do
            surpluses[j] = surplus_of(member)
        end
    end
    return surpluses
end

function set.time_at(log, rank)
    rank = log.first + rank
    return tonumber(call('ZRANGE', log.key, rank, rank, 'WITHSCORES')[2])
end

function set.is_ahead(log)
    return log.oldest and (log.oldest > now or not log.admits)
end

function set.bring_back(log)
    local ahead = call('ZCOUNT', log.key, '(' .. now_text, '+inf')
    local moved = math.min(ahead, affordable())

    if ahead == log.size and ahead > few then
        if log.unsure > 0 then
            return false
        end
        call('UNLINK', log.key)
        call('ZADD', log.key, now_text, string.format('%s*%.0f', now_text, log.used))
        log.size, log.first, log.sum = 1, 0, nil
        set.set_sums(log, log.used - 1, 0)
        moved = ahead
    elseif moved > 0 then
        local entries = {}
        for j, member in ipairs(call('ZRANGE', log.key, -moved, -1)) do
            entries[2 * j - 1], entries[2 * j] = now_text, member
        end
        call('ZADD', log.key, unpack(entries))
        work = work - 4 * moved
    end

    if moved > 0 then
        log.oldest = math.min(log.oldest, now)
        log.has_left = true
    end
    return moved == ahead
end

-- A refused entry does not matter any more once refused ones that came after it have taken
-- all of max. That is what the numbers behind '!' say, in such parts of max.
local all_of_max = 2 ^ 30

function set.add(log)
    local member, refused = member_of(log.cost, log.is_settled), log.refused
    local surplus = log.surplus + log.cost - 1

    if not log.admits then
        member = member .. '!'
        if surplus > 0 and (refused > 0 or is_crowded(log)) then
            refused = refused + math.floor(log.cost / log.max * all_of_max)
            member = member .. string.format('%.0f', refused)
        end
    end

    call('ZADD', log.key, now_text, member)
    log.has_left = false
    keep_for(log.key, log.size == 1 and log.window or 2 * log.window)
    set.set_sums(log, surplus, refused)
end

-- Refused ones can be any number, but only the newest that together cost max matter. Where
-- there are too many, each that comes looks at some others, which the time picks: so of
-- any number of entries that stay, they get to be about one in thirty. Where none costs
-- more than 1, the newest max entries stay. Otherwise each refused one has the sum of what
-- they have taken up to it, in parts of max, behind its '!'; the latest is that of the log.
function set.forget(log)
    local has_costs = log.surplus > 0
    local others = has_costs and log.size or log.size - log.max
    local from = log.first + now % math.max(1, others - 31)
    local forgotten, surplus = {}, log.surplus

    for _, member in ipairs(call('ZRANGE', log.key, from, from + 31)) do
        if string.find(member, '!', 1, true)
            and (not has_costs or log.refused - refused_up_to(member) >= all_of_max) then
            forgotten[#forgotten + 1] = member
            surplus = surplus - surplus_of(member)
        end
    end

    if #forgotten > 0 then
        call('ZREM', log.key, unpack(forgotten))
        set.set_sums(log, surplus, log.refused)
        log.size = log.size - #forgotten
        log.used = log.size + surplus
        log.oldest = set.time_at(log, 0)
    end
end

-- Since something has left, or counts from now on, the others count for longer than the
-- key may live. Puts back what still holds of a ruling.
function set.save(log)
    local left = ruled_for(log)

    if left > 0 then
        call('ZADD', log.key, 0,
            string.format('!%.0f:%.0f:%.0f', log.ban, log.ruled_max, log.ruled_until))
        keep_for(log.key, math.max(left, 2 * log.window))
    elseif log.has_left and log.size > 0 then
        keep_for(log.key, 2 * log.window)
    end
end

-- When it was counted; nil: it is not there. (There is a command for that, which the script has
-- no other need of.)
local function time_of_member(log, member)
    return tonumber(call('ZADD', log.key, 'XX', 'INCR', 0, member) or nil)
end

-- To remove one that is not the oldest does not change for how long the log is needed.
function set.lower(log)
    local member, stays = member_of(log.cost), log.true_cost > 0
    local first = first_of_set(log, '1')

    if log.is_other then
        return false
    elseif first[1] and take_ruling(log, first[1]) then
        first = call('ZRANGE', log.key, 0, 1, 'WITHSCORES')
    end

    -- the other comes first, so that the set is never empty and keeps its time to live
    local moment = stays and time_of_member(log, member)
    if moment then
        call('ZADD', log.key, string.format('%.0f', moment), member_of(log.true_cost))
    end

    local is_there = call('ZREM', log.key, member) == 1

    if is_there and first[3] then
        local has_costs = string.sub(first[1], 1, 1) == '+'
        if not stays and (has_costs or first[1] == member) then
            keep_for(log.key, 2 * log.window)
        end
        if log.cost > 1 then
            read_sum(log, first[1])
            set.set_sums(log, log.surplus - log.cost + (stays and log.true_cost or 1), log.refused)
        end
    end
    set.save(log)
    return is_there
end

function set.reopen(log)
    open_log(log)
    return not log.is_other and not time_of_member(log, member_of(log.cost, true))
end

-- ---- Strings

-- Takes the ruling of a string that begins with this byte, if it has one. Returns what
-- the byte says otherwise.
local function take_flag(limit, byte)
    if byte < 128 then
        return byte
    end

    follow_ruling(limit, unpack_from('>I8I8I8', call('GETRANGE', limit.key, -24, -1)))
    limit.has_flag = true
    return byte - 128
end

-- What is not counted any more, but for a ruling.
local function write_ruling_alone(limit, stays)
    local left = ruled_for(limit)

    if left > 0 then
        write_for(limit.key, '\128' .. pack('>I8I8I8', limit.ban, limit.ruled_max, limit.ruled_until),
            math.max(left, stays))
    elseif limit.was_there then
        call('UNLINK', limit.key)
    end
end

-- A string with what still holds of a ruling.
local function write_with_ruling(limit, text, stays)
    local left = ruled_for(limit)

    if left > 0 then
        text = string.char(string.byte(text) + 128) .. string.sub(text, 2)
            .. pack('>I8I8I8', limit.ban, limit.ruled_max, limit.ruled_until)
    end
    write_for(limit.key, text, math.max(left, stays))
    limit.has_flag = left > 0
end

-- What no algorithm has written makes this an error, as it would be for Redis.
local function refuse_type(key)
    call('ZCARD', key)
    call('GETRANGE', key, 0, 0)
end

-- ---- Packed log

local ring = { read = read_log, count = count_in_log, last_out = last_out_of_log }
local carry_to_ring
local sums_start_anew = 2 ^ 52

-- So many requests from one on, of one of the rings.
local function at_and_width(log, number)
    if number == 1 then
        return log.base, 8
    end
    return log.base + (number == 2 and 8 or 24) * log.slots, 16
end

local function read_some(log, number, from, count)
    if count <= 0 then
        return ''
    end
    local at, width = at_and_width(log, number)
    return read_ring(log.key, at, width, log.slots, (log.slot + from) % log.slots, count)
end

local function write_some(log, number, from, text)
    if text == '' then
        return
    end
    local at, width = at_and_width(log, number)
    local slot = (log.slot + from) % log.slots
    local here = width * (log.slots - slot)

    call('SETRANGE', log.key, at + width * slot, string.sub(text, 1, here))
    if #text > here then
        call('SETRANGE', log.key, at, string.sub(text, here + 1))
    end
end

local function time_in_ring(log, n)
    return (unpack_from('>I8', read_some(log, 1, n, 1)))
end

-- `count` are in the ring, and `front` is the time of the first; if some have expired
-- and are still there, that is none of the others.
function ring.open(log)
    local head = redis.pcall('GETRANGE', log.key, 0, 59)

    log.rings, log.count, log.tail = 0, 0, 0
    log.was_there = head ~= ''
    if type(head) == 'table' then
        carry_to_ring(log)
        return
    elseif head == '' then
        return
    end

    local rings = take_flag(log, string.byte(head))
    if rings == 0 or rings == 4 then
        log.is_other = rings == 4
        return
    elseif rings > 4 then
        refuse_type(log.key)
    end

    local _
    log.rings, log.base = rings, rings == 3 and 60 or 36
    _, log.slots, log.expires, log.slot, log.front, log.count, log.newest = unpack_from(head_form, head)
    if rings == 3 then
        log.surplus, log.refused, log.tail = unpack_from(costs_form, head, 37)
    end
    log.size, log.oldest = log.count, log.front
end

-- Puts the log into a new string, which may have more rings or slots.
local function relay(log, rings, times, ids, costs)
    local count, stays = log.count, (log.count <= 1 and 1 or 2) * log.window
    local more = rings == 3 and pack(costs_form, log.surplus, log.refused, log.tail) or ''
    local text

    log.expires = now + stays
    text, log.slots = lay_out(rings, log.expires, log.front or now, count, log.newest or now, more, times, ids, costs)
    log.rings, log.base, log.slot = rings, rings == 3 and 60 or 36, 0
    write_with_ruling(log, text, stays)
end

-- What stands for a request in the third ring: what it is, and what it costs.
local as_counted, as_refused, as_settled = 0, 1, 2

local function cost_16(what, cost, refused)
    return pack('>I1I7I8', what, cost, what == as_refused and refused or 0)
end

-- A log has become longer where it is: a ruling moves to its end, and the key needs a time to
-- live again.
local function end_growth(log)
    log.expires = 0
    if log.has_flag then
        local size = log.base + (log.rings == 1 and 8 or log.rings == 2 and 24 or 40) * log.slots
        call('SETRANGE', log.key, size, pack('>I8I8I8', log.ban, log.ruled_max, log.ruled_until))
    end
end

local function grow(log)
    local more = slots_for(log.rings, log.count + 1) - log.slots

    log.slot = ring_tools.grow(log.key, log.base, log.rings, log.slots, log.slot, more)
    log.slots = log.slots + more
    end_growth(log)
end

-- With three rings the head is longer.
local function add_rings(log, rings)
    local slots, size = log.slots, (log.rings == 1 and 8 or 24) * log.slots

    ring_tools.extend(log.key, rings == 2 and 36 + 24 * slots or 60 + 40 * slots)
    if rings == 2 then
        -- a ruling may stand where ids begin
        call('SETRANGE', log.key, 36 + 8 * slots, string.rep('\0', 24))
    else
        local one = repeated(cost_16(as_counted, 1), math.min(512, slots))
        ring_tools.move_up(log.key, 36, 60, size)
        for at = 0, 16 * slots - 1, #one do
            call('SETRANGE', log.key, 60 + 24 * slots + at, string.sub(one, 1, 16 * slots - at))
        end
        log.base = 60
    end
    log.rings = rings
    end_growth(log)
end

-- Has only as many slots as it needs from now on.
local function shrink(log)
    local times, ids, costs = read_some(log, 1, 0, log.count), '', ''

    if log.rings > 1 then
        ids = read_some(log, 2, 0, log.count)
    end
    if log.rings > 2 then
        costs = read_some(log, 3, 0, log.count)
    end
    relay(log, log.rings, times, ids, costs)
end

function ring.count_past(log)
    if log.newest <= now - log.window then
        return log.size
    end
    return (count_up_to(now - log.window, log.key, log.base, log.slots, log.slot, log.count))
end

function ring.drop(log, count)
    if count > 0 then
        log.slot, log.count = (log.slot + count) % log.slots, log.count - count
        log.tail = math.min(log.tail, log.count)
        log.front = time_in_ring(log, 0)
        log.is_changed = true
    end
end

function ring.clear(log)
    log.rings, log.count, log.size, log.tail, log.surplus, log.refused = 0, 0, 0, 0, 0, 0
    log.is_changed = true
end

function ring.expire(log)
    local expired = ring.count_past(log)

    if expired == log.size then
        ring.clear(log)
    else
        ring.drop(log, expired)
        log.size = log.size - expired
    end
end

function ring.surpluses(log, from, count)
    local costs, surpluses = read_some(log, 3, log.first + from, count), {}
    for j = 1, count do
        local _, cost = unpack_from('>I1I7', costs, 16 * j - 15)
        surpluses[j] = cost - 1
    end
    return surpluses
end

function ring.time_at(log, rank)
    return time_in_ring(log, log.first + rank)
end

function ring.set_sums(log, surplus, refused)
    log.surplus, log.refused = surplus, refused
    log.is_changed = true
end

function ring.is_ahead(log)
    return log.count > 0 and log.newest > now
end

-- All of them at once: that is the same time as often.
function ring.bring_back(log)
    local from = 0
    if log.front <= now then
        from = count_up_to(now, log.key, log.base, log.slots, log.slot, log.count)
    end

    local same = repeated(now_8, math.min(1024, log.count - from))
    for n = from, log.count - 1, 1024 do
        write_some(log, 1, n, string.sub(same, 1, 8 * (log.count - n)))
    end
    log.front, log.newest = math.min(log.front, now), now
    log.oldest = log.oldest and math.min(log.oldest, now)
    log.is_changed = true
    return true
end

function ring.add(log)
    local is_refused = not log.admits
    local what = is_refused and as_refused or log.is_settled and as_settled or as_counted
    local rings = math.max(log.rings, (log.cost ~= 1 or what ~= as_counted) and 3 or log.keeps_id and 2 or 1)

    if log.count >= too_many and log.unsure == 0 then
        rings = 3
        log.front, log.size, log.surplus, log.tail = log.newest, 2, log.used - log.cost - 1, 0
        log.oldest, log.count = log.front, 1
        relay(log, rings, pack('>I8', log.front), no_id, cost_16(as_counted, log.surplus + 1))
    elseif log.rings == 0 then
        relay(log, rings, '', '', '')
    else
        if log.slots > 64 and log.count < log.slots / 4 then
            shrink(log)
        end
        if rings > log.rings then
            add_rings(log, rings)
        end
        if log.count == log.slots then
            grow(log)
        end
    end

    log.surplus, log.tail = log.surplus + log.cost - 1, is_refused and log.tail + 1 or 0
    if is_refused then
        log.refused = (log.refused + log.cost) % sums_start_anew
    end

    write_some(log, 1, log.count, now_8)
    if rings > 1 then
        write_some(log, 2, log.count, id_16(id))
    end
    if rings > 2 then
        write_some(log, 3, log.count, cost_16(what, log.cost, log.refused))
    end
    log.front = log.count > 0 and log.front or now
    log.count, log.newest = log.count + 1, now
    log.is_changed, log.is_added = true, true
end

-- So many requests move within the rings, in pieces.
local function move_some(log, from, to, count)
    for number = 1, log.rings do
        for done = 0, count - 1, 512 do
            local size = math.min(512, count - done)
            local offset = to < from and done or count - done - size
            write_some(log, number, to + offset, read_some(log, number, from + offset, size))
        end
    end
end

-- Removes so many from one on: those on the one side close the gap, whichever are fewer.
local function remove_some(log, from, count)
    local newer = log.count - from - count

    if newer <= from then
        move_some(log, from + count, from, newer)
    else
        move_some(log, 0, count, from)
        log.slot = (log.slot + count) % log.slots
    end
    log.count, log.size = log.count - count, log.size - count
    if log.count > 0 then
        log.front, log.newest = time_in_ring(log, 0), time_in_ring(log, log.count - 1)
    end
    log.is_changed = true
end

-- Refused ones can be any number, but only the newest that together cost max matter. Where
-- there are too many, and the next would take more memory, those of the newest that were
-- all refused go which do not matter. As long as requests are admitted there cannot be many.
function ring.forget(log)
    if log.count < log.slots and log.surplus <= 2 ^ 50 then
        return
    end

    local from = log.count - log.tail
    local function cost_and_sum(n)
        local _, cost, sum = unpack_from('>I1I7I8', read_some(log, 3, from + n, 1))
        return cost, sum
    end

    local low, high = 0, log.tail - 1
    while low < high do
        local middle = math.floor((low + high) / 2)
        local _, sum = cost_and_sum(middle)
        if (log.refused - sum) % sums_start_anew >= log.max then
            low = middle + 1
        else
            high = middle
        end
    end
    if low == 0 then
        return
    end

    local cost, first_sum = cost_and_sum(0)
    local _, last_sum = cost_and_sum(low - 1)

    remove_some(log, from, low)
    log.surplus = log.surplus - ((last_sum - first_sum) % sums_start_anew + cost - low)
    log.tail, log.used, log.oldest = log.tail - low, log.size + log.surplus, log.front
end

-- What stands there for the request with this id; nil: it does not. Most often it is where
-- its time is, if that is known, or else one of the newest.
local function find_in_ring(log, wanted, what, moment)
    local function among(from, count)
        local ids = read_some(log, 2, from, count)
        local at = string.find(ids, wanted, 1, true)

        while at do
            local n = from + (at - 1) / 16
            if at % 16 == 1 and (log.rings < 3 or string.byte(read_some(log, 3, n, 1)) == what) then
                return n
            end
            at = string.find(ids, wanted, at + 1, true)
        end
    end

    if moment > 0 and log.newest >= moment then
        local from = log.front < moment
            and count_up_to(moment - 1, log.key, log.base, log.slots, log.slot, log.count) or 0
        local n = among(from, math.min(64, log.count - from))
        if n then
            return n
        end
    end

    local ends = log.count
    while ends > 0 and ends > log.count - 16384 do
        local from = math.max(0, ends - 1024)
        local n = among(from, ends - from)
        if n then
            return n
        end
        ends = from
    end
end

function ring.lower(log)
    local wanted, n = id_16(id), nil
    local cost = 1

    log.size, log.surplus, log.refused, log.first = 0, 0, 0, 0
    ring.open(log)
    if log.is_other then
        return false
    elseif log.rings > 1 and wanted ~= no_id then
        n = find_in_ring(log, wanted, as_counted, counted_at)
    end
    if n and log.rings > 2 then
        local _
        _, cost = unpack_from('>I1I7', read_some(log, 3, n, 1))
    end

    local is_there = n and cost == log.cost
    if is_there then
        log.surplus = log.surplus - cost + 1
        if log.true_cost > 0 then
            log.surplus = log.surplus + log.true_cost - 1
            write_some(log, 3, n, cost_16(as_counted, log.true_cost))
            log.is_changed = true
        else
            remove_some(log, n, 1)
        end
    end
    ring.save(log)
    return is_there
end

-- Times are in their order: what is from the future counts from now on.
function ring.reopen(log)
    local wanted = id_16(id)

    open_log(log)
    if ring.is_ahead(log) then
        ring.bring_back(log)
    end
    return log.rings < 3 or wanted == no_id or not find_in_ring(log, wanted, as_settled, 0)
end

function ring.save(log)
    local left = ruled_for(log)

    if log.count == 0 then
        if log.is_changed or log.is_other or log.has_flag and left == 0 then
            write_ruling_alone(log, 2 * log.window)
        end
        return
    elseif not log.is_changed and (log.has_flag or false) == (left > 0) then
        return
    end

    if log.is_added and log.expires < now + log.window then
        -- a ruling may be lifted, and its key not live as long any more
        local stays = (log.count == 1 and 1 or 2) * log.window
        log.expires = now + stays
        keep_for(log.key, math.max(left, stays))
    end

    local rings = log.rings + (left > 0 and 128 or 0)
    local head = pack(head_form, rings, log.slots, log.expires, log.slot, log.front, log.count, log.newest)
    if log.rings == 3 then
        head = head .. pack(costs_form, log.surplus, log.refused, log.tail)
    end
    call('SETRANGE', log.key, 0, head)
end

-- ---- From one kind of log to the other

local most_carried = 1024

function carry_to_ring(log)
    if call('TYPE', log.key).ok ~= 'zset' then
        refuse_type(log.key)
    end

    set.open(log)
    local times, ids, costs, rings = {}, {}, {}, 2
    local past = log.oldest and log.oldest <= now - log.window and set.count_past(log) or 0
    local size, first = log.size - past, log.first + past

    if size > 0 and tonumber(call('ZRANGE', log.key, first, first)[1]) then
        size = 0    -- buckets, as they were once
    end
    if size > most_carried then
        local newest = call('ZRANGE', log.key, -1, -1, 'WITHSCORES')[2]
        times[1], ids[1] = pack('>I8', newest), no_id
        log.surplus, rings = size + log.surplus - 1, 3
        costs[1] = cost_16(as_counted, log.surplus + 1)
        log.front, log.newest, size = tonumber(newest), tonumber(newest), 1
    elseif size > 0 then
        local entries = call('ZRANGE', log.key, first, -1, 'WITHSCORES')
        log.surplus, log.refused = 0, 0
        for n = 1, size do
            local member = entries[2 * n - 1]
            local surplus, is_refused = surplus_of(member), string.find(member, '!', 1, true)
            if is_refused then
                log.refused = (log.refused + surplus + 1) % sums_start_anew
            end
            local what = is_refused and as_refused or string.find(member, '+', 1, true) and as_settled or as_counted
            if surplus > 0 or what ~= as_counted then
                rings = 3
            end
            log.tail, log.surplus = is_refused and log.tail + 1 or 0, log.surplus + surplus
            times[n], ids[n] = pack('>I8', entries[2 * n]), id_16(string.match(member, '^[^+*!]*'))
            costs[n] = cost_16(what, surplus + 1, log.refused)
        end
        log.front, log.newest = tonumber(entries[2]), tonumber(entries[2 * size])
    end

    log.sum, log.first, log.has_left = nil, 0, nil
    log.size, log.count = size, size
    log.oldest = size > 0 and log.front or nil
    if size > 0 then
        relay(log, rings, table.concat(times), table.concat(ids), table.concat(costs))
    else
        log.surplus, log.refused, log.is_other = 0, 0, true
    end
end

-- As text, if there is one.
local function id_of(id_bytes, otherwise)
    local a, b, c, d = unpack_from('>I4I4I4I4', id_bytes)
    if a + b + c + d == 0 then
        return otherwise
    end
    local digits = string.format('%08x%08x%08x%08x', a, b, c, d)
    return (string.gsub(digits, '^(%x%x%x%x%x%x%x%x)(%x%x%x%x)(%x%x%x%x)(%x%x%x%x)', '%1-%2-%3-%4-'))
end

function carry_to_set(log)
    if call('TYPE', log.key).ok ~= 'string' then
        refuse_type(log.key)
    end

    log.size, log.surplus, log.refused, log.first = 0, 0, 0, 0
    ring.open(log)
    local past = log.oldest and log.oldest <= now - log.window and ring.count_past(log) or 0
    local count, entries, surplus = log.count - past, {}, 0

    if count > most_carried then
        local newest = string.format('%.0f', log.newest)
        surplus = count + log.surplus - 1
        entries = { newest, string.format('%s*%.0f', newest, surplus + 1) }
    elseif count > 0 then
        local times = read_some(log, 1, past, count)
        local ids = log.rings > 1 and read_some(log, 2, past, count)
        local costs = log.rings > 2 and read_some(log, 3, past, count)
        for n = 1, count do
            local moment = string.format('%.0f', unpack_from('>I8', times, 8 * n - 7))
            local member = string.format('%s-%d', moment, n)
            if ids then
                member = id_of(string.sub(ids, 16 * n - 15, 16 * n), member)
            end
            if costs then
                local what, cost = unpack_from('>I1I7', costs, 16 * n - 15)
                member = (what == as_settled and member .. '+' or member)
                    .. (cost ~= 1 and string.format('*%.0f', cost) or '') .. (what == as_refused and '!' or '')
                surplus = surplus + cost - 1
            end
            entries[2 * n - 1], entries[2 * n] = moment, member
        end
    end

    call('UNLINK', log.key)
    if count > 0 then
        call('ZADD', log.key, unpack(entries))
        if surplus > 0 then
            call('ZADD', log.key, 0, string.format('+%.0f', surplus))
        end
        keep_for(log.key, 2 * log.window)
    end
    log.size, log.surplus, log.refused, log.oldest = 0, 0, 0, nil
end

-- ---- Buckets

local buckets = {}

-- As they are, whatever the time.
local function open_buckets(limit)
    local head = redis.pcall('GETRANGE', limit.key, 0, 42)

    place_buckets(limit, limit.window, tonumber(limit.algorithm), now)
    limit.pairs, limit.latest, limit.used, limit.count, limit.moved = '', limit.current, 0, 0, 0
    limit.was_there = head ~= ''

    if type(head) == 'table' then
        if call('TYPE', limit.key).ok ~= 'zset' then
            refuse_type(limit.key)
        end
        -- a log until now: the configuration has changed
        limit.is_other, limit.is_changed = true, true
        if not counted_at then
            local first = call('ZRANGE', limit.key, 0, 1)
            local _ = first[1] and take_ruling(limit, first[1]) or first[2] and take_ruling(limit, first[2])
        end
    elseif head ~= '' then
        local kind = take_flag(limit, string.byte(head))
        if kind == 4 then
            local _, older
            _, older, limit.latest, _, limit.moved, limit.used, limit.count = unpack_from(buckets_form, head)
            if older > 0 then
                limit.pairs = call('GETRANGE', limit.key, 43, 42 + 16 * older)
            end
        elseif kind > 4 then
            refuse_type(limit.key)
        elseif kind > 0 then
            limit.is_other, limit.is_changed = true, true
        end
    end
end

function buckets.read(limit)
    open_buckets(limit)

    if limit.latest > limit.current then
        -- what is from the future counts in the current one
        local texts, latest, count = {}, limit.current, limit.count

        if count > 0 then
            limit.moved = math.max(limit.moved, limit.latest)
        end
        for at = 1, #limit.pairs, 16 do
            local ends, counted = unpack_from('>I8I8', limit.pairs, at)
            if ends >= latest then
                count = count + counted
                limit.moved = ends > latest and math.max(limit.moved, ends) or limit.moved
            else
                texts[#texts + 1] = string.sub(limit.pairs, at, at + 15)
            end
        end
        limit.pairs, limit.latest, limit.count = table.concat(texts), latest, count
        limit.is_changed = true
    end

    local before = limit.used
    if limit.latest < limit.current then
        limit.is_changed = limit.is_changed or limit.was_there
    end
    limit.pairs, limit.used, limit.count = turn_buckets(limit, limit.pairs, limit.latest, limit.used, limit.count)
    limit.latest = limit.current
    limit.is_changed = limit.is_changed or limit.used ~= before
    limit.moved = limit.moved > limit.expired and limit.moved or 0
    limit.admits = limit.cost == 0 or limit.used + limit.cost <= limit.max
    return true
end

function buckets.count(limit)
    limit.used, limit.count = limit.used + limit.cost, limit.count + limit.cost
    limit.is_changed = true
end

function buckets.last_out(limit, need)
    local left = 0

    for at = 1, #limit.pairs, 16 do
        local ends, counted = unpack_from('>I8I8', limit.pairs, at)
        left = left + counted
        if left >= need then
            return ends
        end
    end
    return left + limit.count >= need and limit.current or nil
end

function buckets.save(limit)
    if limit.is_changed or (limit.has_flag or false) ~= (ruled_for(limit) > 0) then
        if limit.used > 0 or limit.moved > 0 then
            write_with_ruling(limit, buckets_text(limit.pairs, limit.latest, limit.moved, limit.used, limit.count),
                limit.span + limit.width)
        else
            write_ruling_alone(limit, limit.span + limit.width)
        end
    end
end

function buckets.lower(limit)
    open_buckets(limit)
    if limit.is_other then
        return false
    end

    local bucket = (math.floor(counted_at / limit.width) + 1) * limit.width
    local less, taken = limit.cost - limit.true_cost, 0

    if bucket <= limit.moved then
        taken = 0
    elseif bucket == limit.latest then
        taken = math.min(less, limit.count)
        limit.count = limit.count - taken
    else
        local texts = {}
        for at = 1, #limit.pairs, 16 do
            local ends, counted = unpack_from('>I8I8', limit.pairs, at)
            if ends == bucket then
                taken = math.min(less, counted)
                counted = counted - taken
            end
            if counted > 0 then
                texts[#texts + 1] = pack('>I8I8', ends, counted)
            end
        end
        limit.pairs = table.concat(texts)
    end

    limit.used, limit.is_changed = limit.used - taken, limit.is_changed or taken > 0
    buckets.save(limit)
    return taken > 0
end

buckets.reopen = buckets.read

-- ---- The request

for _, limit in ipairs(asked) do
    limit.kind = limit.algorithm == '0' and set or tonumber(limit.algorithm) and buckets or ring
end

-- What is counted of a request that was settled: false if nothing changes. If the zone has another
-- algorithm by now, and its counts are other ones, they are left alone.
local function settle(limit)
    local true_cost = limit.true_cost

    if true_cost <= limit.cost then
        return true_cost < limit.cost and limit.kind.lower(limit)
    end

    limit.is_settled = true
    limit.cost = true_cost - limit.cost
    local is_new = limit.kind.reopen(limit)
    if limit.is_other then
        return false
    end
    limit.cost = math.min(limit.cost, most_used - limit.used)
    is_new = is_new and limit.cost > 0
    if is_new then
        limit.admits = true
        limit.kind.count(limit)
    end
    limit.kind.save(limit)
    return is_new
end

if counted_at then
    local settled = 0

    for i, limit in ipairs(asked) do
        reserved = most * (1 - i / #asked)
        settled = settled + (settle(limit) and 1 or 0)
    end

    return settled
end

if args[1] == '?' then
    for _, limit in ipairs(asked) do
        rehearse(limit.key)
    end
end

-- How long until as much has left as is needed; nil: that is never.
local function until_left(limit, need)
    local leaves = limit.kind.last_out(limit, need)
    return leaves and leaves + (limit.span or limit.window) - now
end

-- How long until the limit, with this max, would admit the request; nil: that is never.
local function until_room(limit, max)
    local room = max - limit.cost
    local need = limit.used - room - (limit.unsure or 0)

    if limit.fits or need <= 0 then
        return 0
    end
    return room >= 0 and until_left(limit, need) or nil
end

-- The same with what was ruled, as long as that holds.
local function until_admitted(limit)
    local wait, rest = until_room(limit, limit.max), (limit.ruled_until or 0) - now

    if rest > 0 and (not wait or wait > rest) then
        wait = until_room(limit, limit.own_max)
        wait = wait and math.max(wait, rest)
    end
    return wait and math.max(wait, (limit.ban or 0) - now) or 0
end

local admitted, decided = true, true

for i, limit in ipairs(asked) do
    reserved = most * (1 - i / #asked)
    decided = limit.kind.read(limit) and decided
    limit.fits = limit.admits
    limit.admits = limit.fits and not limit.is_banned
    admitted = admitted and (limit.admits or limit.is_dry_run)
end

local reply, maxes = {}, {}
local is_ruled = false

for i, limit in ipairs(asked) do
    local admits = limit.admits
    local is_counted, wait

    if not decided then
        reply[3 * i - 2], reply[3 * i - 1], reply[3 * i] = -1, 0, 0
    else
        if admits then
            is_counted = admitted and limit.cost > 0
        else
            is_counted = limit.counts_refused and not limit.is_banned and limit.used + limit.cost <= most_used
        end

        if is_counted then
            limit.kind.count(limit)
        end

        if admits then
            wait = limit.used > 0 and until_left(limit, 1) or 0
        else
            wait = until_admitted(limit)
        end

        reply[3 * i - 2] = admits and (is_counted and 2 or 1) or limit.is_banned and 3 or 0
        reply[3 * i - 1] = limit.used
        reply[3 * i] = wait
    end

    limit.kind.save(limit)
    maxes[i] = limit.ruled_max or 0
    is_ruled = is_ruled or maxes[i] > 0
end

reply[#reply + 1] = now

if is_ruled then
    for _, max in ipairs(maxes) do
        reply[#reply + 1] = max
    end
end

return reply
