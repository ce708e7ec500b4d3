-- Sliding windows: may this request pass all of its limits?
--
-- KEYS[i]   the sorted set that counts limit i for this client
-- ARGV[1]   '' to ask, or the time that an earlier answer ended with: then what
--           was counted by it is taken back
-- ARGV[2]   the request's id
-- ARGV[3…]  five for each limit:
--   window    in microseconds
--   max       what it allows per window, at least 1
--   cost      what this request takes of that, at most max; 0 only looks
--   buckets   0: a log, one entry per request; else the parts of a window that
--             are counted as wholes
--   rule      'd' in it: requests that the limit refuses count, too
--             'n' in it: it never keeps a request from passing (a dry run)
-- Ordinary requests, whose limits are logs with a cost of 1 and no rule, may be asked
-- about in a shorter form, and several that have the same limits at once:
-- KEYS      the sets of the first request, then of the second …
-- ARGV[1]   '/' and how many limits a request has
-- ARGV[2…]  window and max of each limit, then the ids of the requests
-- Then the numbers are returned as one string, eight bytes each, the lowest first:
-- that is less to write and to read. (One alone that is no ordinary request after
-- all is answered as others are.)
--
-- Returns three whole numbers for each limit, of each request
--   admits   0 if the limit has no room for this request, 1 if it has, 2 if it
--            has and the request was counted; -1 if it is no ordinary one after
--            all and has to be asked about alone (only of several in one call)
--   used     what is used of max, with this request if it was counted
--   wait     microseconds: until something leaves the window if the limit
--            admits (0: there is nothing in it), else until it would admit
-- and then the time in microseconds; or, for taking back, how many were.
--
-- The request is counted in every set if every limit has room, else in none.
-- What is counted at time t is in the window while now - t < window. Entries
-- from the future (the clock stepped back) are in it too: nothing passes early.
--
-- In a log an entry is the request's id, '*COST' behind it if that is not 1, and
-- '!' if it was refused, scored with its time. The sum of what costs exceed 1 is
-- an entry of its own, '+SUM' scored 0, so that nobody has to add them up.
-- In buckets an entry is the time a bucket ends at, scored with its count. A
-- bucket leaves as a whole, when its last moment is one window old.
--
-- Every key lives as long as what is in it counts, at least: one window if that is
-- a single request, else two. Two are enough until the oldest request leaves or is
-- taken back, since all that is counted before that is counted within one window of
-- it. So its time is set anew with the second request, and whenever one leaves.
--
-- The ordinary request is dealt with first and on its own, because most are. What
-- counts there: every redis.call, every function and table that is made, and every
-- number that has to be written out for Redis; so numbers that are known as text
-- stay text. All else is below, and slower.

local time = redis.call('TIME')
local now_text = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local now = tonumber(now_text)
local args = ARGV

local function keep_for(key, microseconds)
    -- a second more, so that rounding to milliseconds cannot cut it short
    redis.call('PEXPIRE', key, string.format('%d', microseconds / 1000 + 1000))
end

if string.sub(args[1], 1, 1) == '/' then
    local call, pack = redis.call, struct.pack
    local limits = tonumber(string.sub(args[1], 2))
    local first_id = 2 * limits + 1
    local requests = #args - first_id
    local reply = {}
    local windows, maxes = {}, {}
    local used, leaves = {}, {}
    local is_ordinary, is_admitted

    for l = 1, limits do
        windows[l], maxes[l] = tonumber(args[2 * l]), tonumber(args[2 * l + 1])
    end

    for r = 1, requests do
        local before = (r - 1) * limits     -- its keys are behind so many others

        is_ordinary, is_admitted = true, true

        for l = 1, limits do
            local key, window = KEYS[before + l], windows[l]

            -- one key that is no sorted set must not fail the others' requests
            local entry = redis.pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
            local first = entry[2]
            local rest = first and first + window - now

            if rest and rest <= 0 and first ~= '0' then
                call('ZREMRANGEBYSCORE', key, '(0', now - window)
                first = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2]
                rest = first and first + window - now
                if first then
                    keep_for(key, 2 * window)
                end
            end

            -- scored 0 is no request, but the sum of what costs exceed 1
            if first == '0' or entry.err then
                is_ordinary = false
                break
            end

            used[l] = first and call('ZCARD', key) or 0
            leaves[l] = rest
            is_admitted = is_admitted and used[l] < maxes[l]
        end

        for l = 1, limits do
            local key, window, max = KEYS[before + l], windows[l], maxes[l]
            local count, rest = used[l], leaves[l]

            if not is_ordinary then
                reply[before + l] = pack('<i8i8i8', -1, 0, 0)
            elseif is_admitted then
                call('ZADD', key, now_text, args[first_id + r])
                if count == 0 then
                    keep_for(key, window)
                elseif count == 1 then
                    keep_for(key, 2 * window)
                end
                reply[before + l] = pack('<i8i8i8', 2, count + 1, rest and rest < window and rest or window)
            else
                if count > max then
                    local rank = count - max
                    rest = call('ZRANGE', key, rank, rank, 'WITHSCORES')[2] + window - now
                end
                reply[before + l] = pack('<i8i8i8', count < max and 1 or 0, count, rest or 0)
            end
        end
    end

    if requests > 1 or is_ordinary then
        reply[#reply + 1] = pack('<i8', now)
        return table.concat(reply)
    end

    local all = { '', args[first_id + 1] }
    for l = 1, limits do
        all[5 * l - 2], all[5 * l - 1] = args[2 * l], args[2 * l + 1]
        all[5 * l], all[5 * l + 1], all[5 * l + 2] = 1, '0', ''
    end
    args = all
end

local id = args[2]

-- What an entry of a log costs beyond 1.
local function surplus_of(member)
    local star = string.find(member, '*', 1, true)
    return star and tonumber(string.match(member, '%d+', star)) - 1 or 0
end

local function replace_surplus(key, old, new)
    if new == old then
        return
    end
    if old > 0 then
        redis.call('ZREM', key, string.format('+%.0f', old))
    end
    if new > 0 then
        redis.call('ZADD', key, 0, string.format('+%.0f', new))
    end
end

if args[1] ~= '' then
    local taken_back = 0

    for i, key in ipairs(KEYS) do
        local cost = tonumber(args[5 * i])
        local buckets = tonumber(args[5 * i + 1])

        if buckets == 0 then
            local member = cost == 1 and id or id .. '*' .. cost
            if redis.call('ZREM', key, member) == 1 then
                taken_back = taken_back + 1
                keep_for(key, 2 * args[5 * i - 2])
                if cost > 1 then
                    local surplus = tonumber(redis.call('ZRANGE', key, 0, 0)[1])
                    replace_surplus(key, surplus, surplus - cost + 1)
                end
            end
        else
            local width = math.ceil(args[5 * i - 2] / buckets)
            local bucket = (math.floor(args[1] / width) + 1) * width
            local count = tonumber(redis.call('ZSCORE', key, bucket) or 0)
            if count > 0 then
                taken_back = taken_back + 1
                if count > cost then
                    redis.call('ZINCRBY', key, -cost, bucket)
                else
                    redis.call('ZREM', key, bucket)
                end
            end
        end
    end

    return taken_back
end

local admitted = true
local found = {}

for i, key in ipairs(KEYS) do
    local window = tonumber(args[5 * i - 2])
    local max = tonumber(args[5 * i - 1])
    local cost = tonumber(args[5 * i])
    local buckets = args[5 * i + 1]
    local used = 0
    local oldest            -- a log's first request
    local surplus = 0       -- of a log
    local counts            -- of buckets: a list of { number, count }

    if buckets == '0' then
        local first = redis.call('ZRANGE', key, '0', '0', 'WITHSCORES')

        if first[2] == '0' then
            surplus = tonumber(first[1])
            first = redis.call('ZRANGE', key, '1', '1', 'WITHSCORES')
        end

        oldest = tonumber(first[2])

        if oldest and oldest <= now - window then
            if surplus > 0 then
                local left = surplus
                for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(0', now - window)) do
                    left = left - surplus_of(member)
                end
                replace_surplus(key, surplus, left)
                surplus = left
            end
            redis.call('ZREMRANGEBYSCORE', key, '(0', now - window)
            local rank = surplus > 0 and 1 or 0
            oldest = tonumber(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
            if oldest then
                keep_for(key, 2 * window)
            end
        end

        if oldest then
            used = redis.call('ZCARD', key)
            if surplus > 0 then
                used = used - 1 + surplus
            end
        end
    else
        local span = buckets * math.ceil(window / buckets)
        local entries = redis.call('ZRANGE', key, 0, 1023, 'WITHSCORES')
        counts = {}

        for j = 1, #entries, 2 do
            local bucket, count = tonumber(entries[j]), tonumber(entries[j + 1])
            if not bucket then
                -- a log until now: the configuration has changed
                redis.call('UNLINK', key)
                used, counts = 0, {}
                break
            end
            if bucket + span <= now then
                redis.call('ZREM', key, entries[j])
            else
                used = used + count
                counts[#counts + 1] = { bucket, count }
            end
        end
    end

    local admits = cost == 0 or used + cost <= max

    if not admits and not string.find(args[5 * i + 2], 'n', 1, true) then
        admitted = false
    end

    found[i] = { used = used, oldest = oldest, surplus = surplus, counts = counts, admits = admits }
end

local reply = {}

for i, key in ipairs(KEYS) do
    local window = tonumber(args[5 * i - 2])
    local max = tonumber(args[5 * i - 1])
    local cost = tonumber(args[5 * i])
    local limit = found[i]
    local used, oldest, surplus, counts = limit.used, limit.oldest, limit.surplus, limit.counts
    local buckets = counts and tonumber(args[5 * i + 1])
    local width = counts and math.ceil(window / buckets)

    local is_counted
    if limit.admits then
        is_counted = admitted and cost > 0
    else
        is_counted = string.find(args[5 * i + 2], 'd', 1, true)
    end

    if is_counted then
        local lifetime

        if counts then
            local bucket = (math.floor(now / width) + 1) * width
            redis.call('ZINCRBY', key, cost, bucket)
            counts[#counts + 1] = { bucket, cost }
            lifetime = (buckets + 1) * width
        else
            local member = cost == 1 and id or id .. '*' .. cost
            redis.call('ZADD', key, now_text, limit.admits and member or member .. '!')
            oldest = math.min(oldest or now, now)
            if cost > 1 then
                replace_surplus(key, surplus, surplus + cost - 1)
                surplus = surplus + cost - 1
            end
            lifetime = used == 0 and window or 2 * window
        end

        used = used + cost
        keep_for(key, lifetime)
    end

    -- refused ones can be any number, but only the newest max of them matter;
    -- not every time, because admitted ones have to be read and stay
    if is_counted and not limit.admits and not counts then
        local size = redis.call('ZCARD', key)
        if size > 3 * max + 128 and size % 128 == 0 then
            local refused, their_surplus = {}, 0
            for _, member in ipairs(redis.call('ZRANGE', key, 0, size - max - 1)) do
                if string.sub(member, -1) == '!' then
                    refused[#refused + 1] = member
                    their_surplus = their_surplus + surplus_of(member)
                end
            end
            for from = 1, #refused, 1000 do
                redis.call('ZREM', key, unpack(refused, from, math.min(from + 999, #refused)))
            end
            used = used - #refused - their_surplus
            replace_surplus(key, surplus, surplus - their_surplus)
            surplus = surplus - their_surplus
            local rank = surplus > 0 and 1 or 0
            oldest = tonumber(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
        end
    end

    -- when as much will have left as this request needs, or anything at all
    local need = limit.admits and 1 or used + cost - max
    local leaves

    if counts then
        table.sort(counts, function (a, b) return a[1] < b[1] end)
        local left = 0
        for _, entry in ipairs(counts) do
            left = left + entry[2]
            if left >= need then
                leaves = entry[1] + buckets * width
                break
            end
        end
    elseif need == 1 then
        leaves = oldest and oldest + window
    elseif surplus == 0 then
        leaves = redis.call('ZRANGE', key, need - 1, need - 1, 'WITHSCORES')[2] + window
    else
        -- past some two thousand entries this is too early, and whoever comes
        -- back then is told the rest: better than to hold up Redis
        local left, first, size = 0, 1, 8
        while left < need and size <= 2048 do
            local entries = redis.call('ZRANGE', key, first, first + size - 1, 'WITHSCORES')
            for j = 1, #entries, 2 do
                left = left + 1 + surplus_of(entries[j])
                leaves = entries[j + 1] + window
                if left >= need then
                    break
                end
            end
            first, size = first + size, size * 4
        end
    end

    reply[3 * i - 2] = limit.admits and (is_counted and 2 or 1) or 0
    reply[3 * i - 1] = used
    reply[3 * i] = leaves and leaves - now or 0
end

reply[#reply + 1] = now

return reply
