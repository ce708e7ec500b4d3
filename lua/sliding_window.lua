-- Sliding windows: may this request pass all of its limits?
--
-- KEYS[i]   where limit i is counted for this client
-- ARGV[1]   '' to ask, or the time that an earlier answer ended with: then what
--           was counted by it is taken back
-- ARGV[2]   the request's id, a UUID
-- ARGV[3…]  five for each limit:
--   window     in microseconds
--   max        what it allows per window, at least 1
--   cost       what this request takes of that, at most max; 0 only looks
--   algorithm  0: a log, one entry per request, in a sorted set
--              'p': the same, packed into a string
--              else the parts of a window that are counted as wholes: its buckets
--   rule       'd' in it: requests that the limit refuses count, too
--              'n' in it: it never keeps a request from passing (a dry run)
--              'i' in it: the request may have to be taken back from a packed log
-- Ordinary requests, whose limits have a cost of 1 and no rule, may be asked about in a
-- shorter form, and several that have the same limits at once:
-- KEYS      those of the first request, then of the second …
-- ARGV[1]   for each limit '/' and its algorithm, which is 'i' for a packed log with that rule
-- ARGV[2…]  window and max of each limit, then the ids of the requests
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
-- and then the time in microseconds; or, for taking back, how many were. If an operator
-- has given the client another max, one more number follows for each limit: that max, or 0
-- where there is none.
--
-- The request is counted for every limit if every limit has room, else for none.
-- What is counted at time t is in the window while now - t < window.
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
-- of the newest. To buckets and from them nothing is carried over but rulings.
--
-- No call holds up Redis, whatever a client has done before: a call goes through a
-- bounded number of entries one by one, for all of its requests and limits together.
-- Every limit has its share of that, and what those before it have left of theirs. So it
-- takes Redis less than 1 ms (see bench/slowest.py), but for calls of very many keys, and
-- for those with which a very long packed log gets another string.
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
-- A sorted set. An entry is the request's id, '*COST' behind it if that is not 1, and
-- '!' if it was refused, scored with its time. The sum of what costs exceed 1 is
-- an entry of its own, '+SUM' scored 0, so that nobody has to add them up. Behind the
-- '!' there may be a number: see set.forget(). A ruling is '!BAN:MAX:UNTIL', scored 0. It
-- is taken out while a limit is decided about, so that nothing else need know of it.
--
-- ---- Packed log
-- A string: a head, and rings of as many slots, which begin anew at their first when the
-- last is taken. So requests come and leave, and nothing has to be moved. The first ring
-- has times; if requests may be taken back there is one of ids; if they have costs or were
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
--   1 byte   1 if it was refused
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
local args = ARGV

-- What this call may still do, and what of that is reserved for limits still to come: to
-- remove an entry takes one of it, and to read one and do something about it four. All of
-- it takes Redis about half a millisecond; the more keys there are, the more time is taken
-- by calls that are made for each of them.
local most = #KEYS < 24 and 1056 - 32 * #KEYS or 288
local work, reserved = most, 0
local few = 256

-- A second more, so that rounding to milliseconds cannot cut it short.
local function keep_for(key, microseconds)
    redis.call('PEXPIRE', key, string.format('%d', microseconds / 1000 + 1000))
end

-- ---- Ordinary requests
--
-- They are dealt with first and on their own, because most are. What counts here: every
-- redis.call, every function, table and string that is made, and every number that has to
-- be written out for Redis; so numbers that are known as text stay text. All else is below,
-- and slower.
--
-- For each algorithm there are two functions. One looks at a key. It returns what is used,
-- and how long until something leaves the window if there is something in it; or nothing, if
-- this is no ordinary case; and then up to seven values that it hands to the other one, which
-- adds the request. Without an id that one only notes what has expired. If more is used than
-- max, it returns how long until it is less.
--
-- All functions are made by others, and only if they are needed: to make one takes Redis as
-- long as to count in a bucket.

-- Answers the requests of a call in the shorter form; nil if there is only one, which is no
-- ordinary one. `way` has the two functions, how long a first request stays in the window,
-- and what else they want to know.
local function answer_one_limit(way, window, max)
    local look, add, stays, pack = way.look, way.add, way.stays, struct.pack
    local requests = #args - 3
    local reply = {}

    for r = 1, requests do
        local key = KEYS[r]
        reserved = most * (1 - r / requests)
        local count, rest, a, b, c, d, e, f, g = look(key, window, max, way)

        if not count then
            if requests == 1 then
                return nil
            end
            reply[r] = pack('<i8i8i8', -1, 0, 0)
        elseif count < max then
            add(key, window, max, args[3 + r], count, way, a, b, c, d, e, f, g)
            reply[r] = pack('<i8i8i8', 2, count + 1, rest or stays)
        else
            rest = add(key, window, max, nil, count, way, a, b, c, d, e, f, g) or rest
            reply[r] = pack('<i8i8i8', 0, count, rest)
        end
    end

    reply[requests + 1] = pack('<i8', now)
    return table.concat(reply)
end

local is_short = string.byte(args[1]) == 47     -- '/'
local answer_several_limits

if is_short and #args[1] > 2 then
    -- The same for requests of several limits: all have to be looked at before anything is added.
    function answer_several_limits(ways, windows, maxes)
        local pack = struct.pack
        local limits = #ways
        local requests = #args - 2 * limits - 1
        local keys = requests * limits
        local used, leaves, seen, reply = {}, {}, {}, {}

        for r = 1, requests do
            local before = (r - 1) * limits     -- its keys are behind so many others
            local request_id = args[2 * limits + 1 + r]
            local is_ordinary, is_admitted = true, true

            for l = 1, limits do
                reserved = most * (1 - (before + l) / keys)
                local way, max = ways[l], maxes[l]
                local count, rest, a, b, c, d, e, f, g = way.look(KEYS[before + l], windows[l], max, way)
                if not count then
                    is_ordinary = false
                    break
                elseif a and seen[l] then
                    local values = seen[l]
                    values[1], values[2], values[3], values[4], values[5], values[6], values[7] = a, b, c, d, e, f, g
                elseif a then
                    seen[l] = { a, b, c, d, e, f, g }
                end
                used[l], leaves[l] = count, rest
                is_admitted = is_admitted and count < max
            end

            if not is_ordinary and requests == 1 then
                return nil
            end
            for l = 1, limits do
                local way, window, max, values = ways[l], windows[l], maxes[l], seen[l]
                local key, count, rest = KEYS[before + l], used[l], leaves[l]

                if not is_ordinary then
                    reply[before + l] = pack('<i8i8i8', -1, 0, 0)
                elseif is_admitted then
                    if values then
                        way.add(key, window, max, request_id, count, way, unpack(values, 1, 7))
                    else
                        way.add(key, window, max, request_id, count)
                    end
                    reply[before + l] = pack('<i8i8i8', 2, count + 1, rest or way.stays or window)
                else
                    local wait
                    if values then
                        wait = way.add(key, window, max, nil, count, way, unpack(values, 1, 7))
                    else
                        wait = way.add(key, window, max, nil, count)
                    end
                    reply[before + l] = pack('<i8i8i8', count < max and 1 or 0, count, wait or rest or 0)
                end
            end
        end

        reply[#reply + 1] = pack('<i8', now)
        return table.concat(reply)
    end
end

local id, asked     -- one of asked for each limit

-- ---- Log: ordinary requests

local expire, ahead_of_now, look_at_set, add_to_set

local function know_sets()
    local call = redis.call

    -- Of a log of so many entries, none of which costs more than 1. Returns how many have
    -- not expired, and behind how many that have and are still there.
    function expire(key, count, window)
        if count <= work then
            local removed = call('ZREMRANGEBYSCORE', key, '-inf', now - window)
            work = work - removed
            return count - removed, 0
        end

        local expired = call('ZCOUNT', key, '-inf', now - window)
        if expired == count then
            call('UNLINK', key)
            return 0, 0
        end

        local removed = math.max(0, math.min(expired, math.floor(work - reserved)))
        if removed > 0 then
            call('ZREMRANGEBYRANK', key, 0, removed - 1)
            work = work - removed
        end
        return count - expired, expired - removed
    end

    -- How many entries are from the future.
    function ahead_of_now(key)
        return call('ZCOUNT', key, '(' .. now_text, '+inf')
    end

    function look_at_set(key, window, max)
        -- one key that is no sorted set must not fail the others' requests
        local entry = redis.pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
        local first = entry[2]
        local rest = first and first + window - now
        local count, expired = first and first ~= '0' and call('ZCARD', key) or 0, 0

        if count > 0 and rest <= 0 then
            count, expired = expire(key, count, window)
            rest = nil
            if count > 0 then
                rest = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] + window - now
                keep_for(key, 2 * window)
            end
        end

        -- scored 0 is no request, but a ruling, or the sum of what costs exceed 1
        if entry.err or first == '0' or expired > 0 or rest and rest > window
            or count >= max and ahead_of_now(key) > 0 then
            return nil
        end
        return count, rest
    end

    function add_to_set(key, window, max, request_id, count)
        if request_id then
            call('ZADD', key, now_text, request_id)
            if count == 0 then
                keep_for(key, window)
            elseif count == 1 then
                keep_for(key, 2 * window)
            end
        elseif count > max then
            -- as many have to leave as are too many, and one
            return call('ZRANGE', key, count - max, count - max, 'WITHSCORES')[2] + window - now
        end
    end
end

if args[1] == '/0' then
    know_sets()
    local window = tonumber(args[2])
    local reply = answer_one_limit({ look = look_at_set, add = add_to_set, stays = window }, window, tonumber(args[3]))
    if reply then
        return reply
    end
elseif is_short and not string.find(args[1], '[^/0]') then
    know_sets()
    local ways, windows, maxes = {}, {}, {}
    local way = { look = look_at_set, add = add_to_set }
    for l = 1, #args[1] / 2 do
        ways[l], windows[l], maxes[l] = way, tonumber(args[2 * l]), tonumber(args[2 * l + 1])
    end
    local reply = answer_several_limits(ways, windows, maxes)
    if reply then
        return reply
    end
end

-- ---- Packed log: ordinary requests

local call, pack, unpack_from = redis.call, struct.pack, struct.unpack
local head_form, costs_form = '>I1I3I8I4I8I4I8', '>I8I8I8'
local now_8 = pack('>I8', now)
local too_many = 2 ^ 22     -- from so many on, all of a log become a single entry that costs as much
local no_id, read_ring, count_up_to, repeated, lay_out, id_16, look_at_ring, add_to_ring

-- A string in the place of whatever is there.
local function write_for(key, text, microseconds)
    call('SET', key, text, 'PX', string.format('%d', microseconds / 1000 + 1000))
end

-- What only some requests need to know.
local function know_more_of_rings()
    if read_ring then
        return
    end

    no_id = string.rep('\0', 16)

    -- So many in a row of a ring that begins at byte `at` and has so many bytes for each.
    function read_ring(key, at, width, slots, slot, count)
        local here = math.min(count, slots - slot)
        local text = call('GETRANGE', key, at + width * slot, at + width * (slot + here) - 1)

        if count > here then
            text = text .. call('GETRANGE', key, at, at + width * (count - here) - 1)
        end
        return text
    end

    -- How many of the times in a ring, from that slot on, are up to this moment, and the
    -- first that is not; the last is known not to be. Most often they are few.
    function count_up_to(moment, key, at, slots, slot, count)
        local low, high = 0, count - 1

        local function is_up_to_it(n)
            return unpack_from('>I8', read_ring(key, at, 8, slots, (slot + n) % slots, 1)) <= moment
        end

        while low <= high do
            local size = math.min(8, high - low + 1)
            local times = read_ring(key, at, 8, slots, (slot + low) % slots, size)
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

    -- As string.rep(), which is slow for what is long.
    function repeated(text, count)
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

    -- A packed log of these rings, the oldest first, with room for some more requests: as
    -- many as fit into the piece of memory that Redis gets for it. Returns its slots, too.
    function lay_out(rings, expires, oldest, count, newest, more, times, ids, costs)
        local base = rings == 3 and 60 or 36
        local width = rings == 1 and 8 or rings == 2 and 24 or 40
        local need = base + width * (count + math.max(6, math.floor(count / 64))) + 10
        local _, exponent = math.frexp(need)
        local step = 2 ^ (exponent - 3)
        local slots = math.floor((math.ceil(need / step) * step - 10 - base) / width)
        local room = repeated('\0\0\0\0\0\0\0\0', slots - count)

        -- at once, as each part may be long
        return pack(head_form, rings, slots, expires, 0, oldest, count, newest) .. more .. times .. room
            .. (rings > 1 and ids .. room .. room or '') .. (rings > 2 and costs .. room .. room or ''), slots
    end

    -- A UUID in 16 bytes; for any other id they are 0.
    function id_16(text)
        local a, b, c, d, e = string.match(text, '^(%x+)-(%x+)-(%x+)-(%x+)-(%x+)$')
        local digits = a and a .. b .. c .. d .. e or ''

        if #digits ~= 32 then
            return no_id
        end
        return pack('>I4I4I4I4', tonumber(string.sub(digits, 1, 8), 16), tonumber(string.sub(digits, 9, 16), 16),
            tonumber(string.sub(digits, 17, 24), 16), tonumber(string.sub(digits, 25), 16))
    end
end

local function know_rings()
    function look_at_ring(key, window, _, way)
        local head = redis.pcall('GETRANGE', key, '0', '35')

        if head == '' then
            return 0, nil, 0
        elseif #head < 36 then
            return nil
        end

        local rings, slots, expires, slot, oldest, count, newest = unpack_from(head_form, head)
        local left = now - window

        if rings > 2 or rings < way.least_rings or newest > now or count >= too_many then
            return nil
        elseif oldest > left then
            return count, oldest - left, rings, slots, expires, slot, oldest, newest, 0
        elseif newest <= left then
            return 0, nil, 0, slots
        end

        -- most often only few have expired: is the first that has not one of the next?
        local expired, first = 0, left
        if count > 4 and slot + 4 < slots then
            local times = call('GETRANGE', key, 44 + 8 * slot, 75 + 8 * slot)
            repeat
                expired = expired + 1
                first = unpack_from('>I8', times, 8 * expired - 7)
            until first > left or expired == 4
        end
        if first <= left then
            know_more_of_rings()
            expired, first = count_up_to(left, key, 36, slots, slot, count)
        end
        return count - expired, first - left, rings, slots, expires, (slot + expired) % slots, first, newest, expired
    end

    function add_to_ring(key, window, max, request_id, count, way, rings, slots, expires, slot, oldest, newest, expired)
        if not request_id then
            if rings == 0 then
                if slots then
                    call('UNLINK', key)
                end
            elseif expired > 0 then
                call('SETRANGE', key, '12', pack('>I4I8I4I8', slot, oldest, count, newest))
            end
            if count > max then
                know_more_of_rings()
                return unpack_from('>I8', read_ring(key, 36, 8, slots, (slot + count - max) % slots, 1)) + window - now
            end
            return nil
        end

        if rings == 0 then
            know_more_of_rings()
            rings = way.least_rings
            write_for(key, lay_out(rings, now + window, now, 1, now, '', now_8, rings == 2 and id_16(request_id)), window)
            return nil
        elseif count == slots and slot == 0 and rings == 1 and slots >= 16384 then
            -- so long a log grows where it is: it would take too long to write it anew
            slots = slots + math.floor(slots / 8)
            call('SETRANGE', key, 36 + 8 * slots - 1, '\0')
            call('SETRANGE', key, '0', pack('>I1I3I8', 1, slots, now + 2 * window))
            keep_for(key, 2 * window)
        elseif count == slots or slots > 64 and count < slots / 4 then
            -- there is no room for one more, or far too much of it
            know_more_of_rings()
            local times = read_ring(key, 36, 8, slots, slot, count)
            local ids = rings == 2 and read_ring(key, 36 + 8 * slots, 16, slots, slot, count)
            local text
            text, slots = lay_out(rings, now + 2 * window, oldest, count, newest, '', times, ids)
            write_for(key, text, 2 * window)
            slot, expired = 0, 0
        elseif now + window > expires then
            keep_for(key, 2 * window)
            call('SETRANGE', key, '4', pack('>I8', now + 2 * window))
        end

        local free = (slot + count) % slots
        call('SETRANGE', key, 36 + 8 * free, now_8)
        if rings == 2 then
            know_more_of_rings()
            call('SETRANGE', key, 36 + 8 * slots + 16 * free, id_16(request_id))
        end
        if expired > 0 then
            call('SETRANGE', key, '12', pack('>I4I8I4I8', slot, oldest, count + 1, now))
        else
            call('SETRANGE', key, '24', pack('>I4I8', count + 1, now))
        end
    end
end

if args[1] == '/p' or args[1] == '/i' then
    know_rings()
    local window = tonumber(args[2])
    local way = { look = look_at_ring, add = add_to_ring, stays = window, least_rings = args[1] == '/i' and 2 or 1 }
    local reply = answer_one_limit(way, window, tonumber(args[3]))
    if reply then
        return reply
    end
end

-- ---- Buckets: ordinary requests

local buckets_form = '>I1I2I8I8I8I8I8'
local place_buckets, turn_buckets, buckets_text, look_at_buckets, add_to_buckets

local function know_buckets()
    -- Where a limit's buckets stand now.
    function place_buckets(limit, window, buckets)
        limit.width = math.ceil(window / buckets)
        limit.span = buckets * limit.width
        limit.current = (math.floor(now / limit.width) + 1) * limit.width
        limit.expired = now - limit.span    -- so are buckets that ended by then
        limit.stays = limit.current - limit.expired
        return limit
    end

    -- Goes on to the current bucket, and leaves out those that have expired. Returns those
    -- before it, what all of them count, what the current one does, and when the oldest ends.
    function turn_buckets(limit, pairs, latest, used, count)
        local current, expired = limit.current, limit.expired
        local from = 1

        if latest < current then
            pairs = count > 0 and pairs .. pack('>I8I8', latest, count) or pairs
            count = 0
        end
        while from < #pairs do
            local ends, counted = unpack_from('>I8I8', pairs, from)
            if ends > expired then
                break
            end
            used, from = used - counted, from + 16
        end

        pairs = string.sub(pairs, from)
        return pairs, used, count, pairs ~= '' and unpack_from('>I8', pairs) or current
    end

    function buckets_text(pairs, latest, moved, used, count)
        local oldest = pairs ~= '' and unpack_from('>I8', pairs) or latest

        return pack(buckets_form, 4, #pairs / 16, latest, oldest, moved, used, count) .. pairs
    end

    function look_at_buckets(key, _, max, limit)
        local head = redis.pcall('GETRANGE', key, '0', '42')

        if head == '' then
            return 0, nil, 0, 0, ''
        elseif #head < 43 then
            return nil
        end

        local current, expired = limit.current, limit.expired
        local kind, older, latest, oldest, moved, used, count = unpack_from(buckets_form, head)

        if kind ~= 4 or latest > current then
            return nil
        elseif latest == current and oldest > expired then
            -- how long it takes if more than max is used is not for here
            if used > max then
                return nil
            end
            return used, used > 0 and oldest - expired or nil, count, moved
        end

        local pairs = older > 0 and call('GETRANGE', key, 43, 42 + 16 * older) or ''
        pairs, used, count, oldest = turn_buckets(limit, pairs, latest, used, count)
        if used > max then
            return nil
        elseif used == 0 then
            return 0, nil, 0, moved > expired and moved or 0, '', true
        end
        return used, oldest - expired, count, moved > expired and moved or 0, pairs, true
    end

    -- If there are pairs, it is time to write all of it.
    function add_to_buckets(key, _, _, request_id, used, limit, count, moved, pairs, was_there)
        if not pairs then
            if request_id then
                call('SETRANGE', key, '27', pack('>I8I8', used + 1, count + 1))
            end
            return nil
        end

        if request_id then
            used, count = used + 1, count + 1
        end
        if used > 0 or moved > 0 then
            write_for(key, buckets_text(pairs, limit.current, moved, used, count), limit.span + limit.width)
        elseif was_there then
            call('UNLINK', key)
        end
    end
end

local only_buckets = string.match(args[1], '^/([1-9]%d*)$')

if only_buckets then
    know_buckets()
    local window = tonumber(args[2])
    local way = place_buckets({ look = look_at_buckets, add = add_to_buckets }, window, tonumber(only_buckets))
    local reply = answer_one_limit(way, window, tonumber(args[3]))
    if reply then
        return reply
    end
end

-- ---- Several limits: ordinary requests

if is_short then
    local ways, windows, maxes, algorithms = {}, {}, {}, {}

    if not look_at_set and string.find(args[1], '/0') then
        know_sets()
    end
    if not look_at_ring and string.find(args[1], '[pi]') then
        know_rings()
    end
    if not look_at_buckets and string.find(args[1], '[1-9]') then
        know_buckets()
    end
    for algorithm in string.gmatch(args[1], '[^/]+') do
        local l = #ways + 1
        local window = tonumber(args[2 * l])
        windows[l], maxes[l], algorithms[l] = window, tonumber(args[2 * l + 1]), algorithm
        if algorithm == '0' then
            ways[l] = { look = look_at_set, add = add_to_set, stays = window }
        elseif tonumber(algorithm) then
            ways[l] = place_buckets({ look = look_at_buckets, add = add_to_buckets }, window, tonumber(algorithm))
        else
            ways[l] = { look = look_at_ring, add = add_to_ring, stays = window, least_rings = algorithm == 'i' and 2 or 1 }
        end
    end

    local reply = #ways > 1 and answer_several_limits(ways, windows, maxes)
    if reply then
        return reply
    end

    id, asked = args[2 * #windows + 2], {}
    for l, algorithm in ipairs(algorithms) do
        asked[l] = { key = KEYS[l], window = windows[l], max = maxes[l], cost = 1, algorithm = algorithm,
            keeps_id = algorithm == 'i' }
    end
else
    id, asked = args[2], {}
    for i, key in ipairs(KEYS) do
        local window, max, cost, algorithm, rule = unpack(args, 5 * i - 2, 5 * i + 2)
        asked[i] = {
            key = key,
            window = tonumber(window),
            max = tonumber(max),
            cost = tonumber(cost),
            algorithm = algorithm,
            counts_refused = string.find(rule, 'd', 1, true),
            is_dry_run = string.find(rule, 'n', 1, true),
            keeps_id = string.find(rule, 'i', 1, true),
        }
    end
end

-- ---- Any request, alone
--
-- Each algorithm is a table of functions below: set, ring, buckets.
--   read       what it says to the request: admits, and used. False: not decided
--   count      counts it
--   last_out   the time with which as much has left as is needed; nil: that is never
--   take_back  false if it is not there
--   save       when all is done: what still has to be written, and the ruling

know_sets()
know_more_of_rings()
know_buckets()

-- Calls everything that this script may ever call. What needs memory comes first: a script
-- that has changed something is given all it wants. Whatever is left behind has a time to
-- live.
local function rehearse(key)
    write_for(key, id, 1000000)
    call('SETRANGE', key, 0, id)
    call('GETRANGE', key, 0, 0)
    call('TYPE', key)
    keep_for(key, 1000000)
    call('UNLINK', key)
    call('ZADD', key, 'XX', 0, id)
    call('ZRANGE', key, 0, 0)
    call('ZCARD', key)
    call('ZCOUNT', key, 0, 0)
    call('ZREM', key, id)
    call('ZREMRANGEBYRANK', key, 0, 0)
    call('ZREMRANGEBYSCORE', key, 0, 0)
end

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

local function read_log(log)
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

    local room = log.max - log.cost
    log.used = log.size + log.surplus
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

-- What stands for a request.
local function member_of(cost)
    return cost == 1 and id or id .. string.format('*%.0f', cost)
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

-- What a key begins with, which may have held a packed log or buckets until now.
local carry_to_set

local function first_of_set(log, last)
    local first = redis.pcall('ZRANGE', log.key, '0', last, 'WITHSCORES')
    if first.err then
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
    log.size, log.first = expire(log.key, log.size, log.window)
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
    local ahead = ahead_of_now(log.key)
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
    local member, refused = member_of(log.cost), log.refused
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

-- To take back one that is not the oldest does not change for how long the log is needed.
function set.take_back(log)
    local member, first = member_of(log.cost), first_of_set(log, '1')

    if first[1] and take_ruling(log, first[1]) then
        first = call('ZRANGE', log.key, 0, 1, 'WITHSCORES')
    end

    local is_there = call('ZREM', log.key, member) == 1

    if is_there and first[3] then
        local has_costs = string.sub(first[1], 1, 1) == '+'
        if has_costs or first[1] == member then
            keep_for(log.key, 2 * log.window)
        end
        if log.cost > 1 then
            read_sum(log, first[1])
            set.set_sums(log, log.surplus - log.cost + 1, log.refused)
        end
    end
    set.save(log)
    return is_there
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

local function make_rings(log, rings)
    local count = log.count
    local times, ids, costs = read_some(log, 1, 0, count), '', ''

    if rings > 1 then
        ids = log.rings > 1 and read_some(log, 2, 0, count) or repeated(no_id, count)
    end
    if rings > 2 then
        costs = log.rings > 2 and read_some(log, 3, 0, count) or repeated(pack('>I1I7I8', 0, 1, 0), count)
    end
    relay(log, rings, times, ids, costs)
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

    write_some(log, 1, from, repeated(now_8, log.count - from))
    log.front, log.newest = math.min(log.front, now), now
    log.oldest = log.oldest and math.min(log.oldest, now)
    log.is_changed = true
    return true
end

function ring.add(log)
    local is_refused = not log.admits
    local rings = math.max(log.rings, (log.cost ~= 1 or is_refused) and 3 or log.keeps_id and 2 or 1)

    if log.count >= too_many and log.unsure == 0 then
        rings = 3
        log.front, log.size, log.surplus, log.tail = log.newest, 2, log.used - log.cost - 1, 0
        log.oldest, log.count = log.front, 1
        relay(log, rings, pack('>I8', log.front), no_id, pack('>I1I7I8', 0, log.surplus + 1, 0))
    elseif log.rings == 0 then
        relay(log, rings, '', '', '')
    elseif rings > log.rings or log.count == log.slots
        or log.slots > 64 and log.count < log.slots / 4 then
        make_rings(log, rings)
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
        write_some(log, 3, log.count, pack('>I1I7I8', is_refused and 1 or 0, log.cost, is_refused and log.refused or 0))
    end
    log.front = log.count > 0 and log.front or now
    log.count, log.newest = log.count + 1, now
    log.is_changed, log.is_added = true, true
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
    local left, rings = log.tail - low, {}
    for number = 1, 3 do
        rings[number] = read_some(log, number, 0, from) .. read_some(log, number, from + low, left)
    end

    log.surplus = log.surplus - ((last_sum - first_sum) % sums_start_anew + cost - low)
    log.size, log.count, log.tail = log.size - low, log.count - low, left
    log.used = log.size + log.surplus
    log.front = unpack_from('>I8', rings[1])
    log.oldest = log.front
    relay(log, 3, unpack(rings))
end

-- Of the request with this id; nil: it is not there. Most often it is where its time is, or
-- else one of the newest.
local function find_in_ring(log, wanted, counted_at)
    local function among(from, count)
        local ids = read_some(log, 2, from, count)
        local at = string.find(ids, wanted, 1, true)

        while at do
            local n = from + (at - 1) / 16
            if at % 16 == 1 and (log.rings < 3 or string.byte(read_some(log, 3, n, 1)) == 0) then
                return n
            end
            at = string.find(ids, wanted, at + 1, true)
        end
    end

    if counted_at > 0 and log.newest >= counted_at then
        local from = log.front < counted_at
            and count_up_to(counted_at - 1, log.key, log.base, log.slots, log.slot, log.count) or 0
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

-- Those on its one side move up, whichever are fewer.
local function close_gap(log, n)
    local newer = log.count - 1 - n

    for number = 1, log.rings do
        if newer <= n then
            write_some(log, number, n, read_some(log, number, n + 1, newer))
        else
            write_some(log, number, 1, read_some(log, number, 0, n))
        end
    end
    if newer > n then
        log.slot = (log.slot + 1) % log.slots
    end
    log.count, log.size = log.count - 1, log.size - 1
    if log.count > 0 then
        log.front, log.newest = time_in_ring(log, 0), time_in_ring(log, log.count - 1)
    end
    log.is_changed = true
end

function ring.take_back(log, counted_at)
    local wanted, n = id_16(id), nil

    log.size, log.surplus, log.refused, log.first = 0, 0, 0, 0
    ring.open(log)
    if log.rings > 1 and wanted ~= no_id then
        n = find_in_ring(log, wanted, counted_at)
    end
    if n then
        if log.rings > 2 then
            local _, cost = unpack_from('>I1I7', read_some(log, 3, n, 1))
            log.surplus = log.surplus - cost + 1
        end
        close_gap(log, n)
    end
    ring.save(log)
    return n ~= nil
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
        costs[1] = pack('>I1I7I8', 0, log.surplus + 1, 0)
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
            if surplus > 0 or is_refused then
                rings = 3
            end
            log.tail, log.surplus = is_refused and log.tail + 1 or 0, log.surplus + surplus
            times[n], ids[n] = pack('>I8', entries[2 * n]), id_16(string.match(member, '^[^*!]*'))
            costs[n] = pack('>I1I7I8', is_refused and 1 or 0, surplus + 1, is_refused and log.refused or 0)
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
                local is_refused, cost = unpack_from('>I1I7', costs, 16 * n - 15)
                member = member .. (cost ~= 1 and string.format('*%.0f', cost) or '') .. (is_refused == 1 and '!' or '')
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

    place_buckets(limit, limit.window, tonumber(limit.algorithm))
    limit.pairs, limit.latest, limit.used, limit.count, limit.moved = '', limit.current, 0, 0, 0
    limit.was_there = head ~= ''

    if type(head) == 'table' then
        if call('TYPE', limit.key).ok ~= 'zset' then
            refuse_type(limit.key)
        end
        -- a log until now: the configuration has changed
        local first = call('ZRANGE', limit.key, 0, 1)
        local _ = first[1] and take_ruling(limit, first[1]) or first[2] and take_ruling(limit, first[2])
        limit.is_changed = true
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
            limit.is_changed = true
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

function buckets.take_back(limit, counted_at)
    open_buckets(limit)

    local bucket = (math.floor(counted_at / limit.width) + 1) * limit.width
    local taken = 0

    if bucket <= limit.moved then
        taken = 0
    elseif bucket == limit.latest then
        taken = math.min(limit.cost, limit.count)
        limit.count = limit.count - taken
    else
        local texts = {}
        for at = 1, #limit.pairs, 16 do
            local ends, counted = unpack_from('>I8I8', limit.pairs, at)
            if ends == bucket then
                taken = math.min(limit.cost, counted)
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

-- ---- The request

for _, limit in ipairs(asked) do
    limit.kind = limit.algorithm == '0' and set or tonumber(limit.algorithm) and buckets or ring
end

local counted_at = tonumber(args[1])

if counted_at then
    local taken_back = 0

    for _, limit in ipairs(asked) do
        taken_back = taken_back + (limit.kind.take_back(limit, counted_at) and 1 or 0)
    end

    return taken_back
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
    local need = limit.used + limit.cost - max - (limit.unsure or 0)

    if limit.fits or need <= 0 then
        return 0
    end
    return limit.cost <= max and until_left(limit, need) or nil
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
            is_counted = limit.counts_refused and not limit.is_banned
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
