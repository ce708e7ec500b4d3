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
--            has and the request was counted; -1 if that is not decided yet: the
--            request has to be asked about once more, alone (see below)
--   used     what is used of max, with this request if it was counted
--   wait     microseconds: until something leaves the window if the limit
--            admits (0: there is nothing in it), else until it would admit
-- and then the time in microseconds; or, for taking back, how many were.
--
-- The request is counted in every set if every limit has room, else in none.
-- What is counted at time t is in the window while now - t < window.
--
-- Redis's clock may step back, or be that of another server after a failover. Then
-- there are entries from the future. All of them were counted before now, so they
-- count as of the moment at which that is noticed: nothing passes early, and no wait
-- is longer than a window. It is noticed at the latest when a request is refused.
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
-- No call holds up Redis, whatever a client has done before: a call goes through a
-- bounded number of entries one by one, for all of its requests and limits together.
--   what has expired   is removed as far as that goes; the rest is only counted, and
--                      removed by later calls. All of a log goes at once.
--   … with costs       has to be added up to be removed. If there is more of it the
--                      request is not decided: whoever asks again finds less
--   … in buckets       at most 1024 entries, one more than there can be buckets
--   from the future    is given another time, or else not decided either. All of a
--                      long log becomes a single entry that costs as much.
--   refused ones       that count: 32 are looked at by each that comes to too many
--   a wait with costs  past so many entries it is too early, and whoever comes back
--                      then is told the rest
--
-- The ordinary request is dealt with first and on its own, because most are. What
-- counts there: every redis.call, every function and table that is made, and every
-- number that has to be written out for Redis; so numbers that are known as text
-- stay text. All else is below, and slower.

local time = redis.call('TIME')
local now_text = #time[2] == 6 and time[1] .. time[2] or string.format('%s%06d', time[1], time[2])
local now = tonumber(now_text)
local args = ARGV

-- What this call may still do: to remove an entry takes one of it, and to read one
-- and do something about it four. All of it takes Redis about half a millisecond.
local work = 1024
local few = work / 4

local function keep_for(key, microseconds)
    -- a second more, so that rounding to milliseconds cannot cut it short
    redis.call('PEXPIRE', key, string.format('%d', microseconds / 1000 + 1000))
end

-- Of a log of so many entries, none of which costs more than 1. Returns how many have
-- not expired, and behind how many that have and are still there.
local function expire(key, count, window)
    if count <= work then
        local removed = redis.call('ZREMRANGEBYSCORE', key, '(0', now - window)
        work = work - removed
        return count - removed, 0
    end

    local expired = redis.call('ZCOUNT', key, '(0', now - window)
    if expired == count then
        redis.call('UNLINK', key)
        return 0, 0
    end

    local removed = math.min(expired, work)
    if removed > 0 then
        redis.call('ZREMRANGEBYRANK', key, 0, removed - 1)
        work = work - removed
    end
    return count - expired, expired - removed
end

-- How many entries are from the future.
local function ahead_of_now(key)
    return redis.call('ZCOUNT', key, '(' .. now_text, '+inf')
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
            local count, expired = first and first ~= '0' and call('ZCARD', key) or 0, 0

            if count > 0 and rest <= 0 then
                count, expired = expire(key, count, window)
                rest = nil
                if count > 0 then
                    rest = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] + window - now
                    keep_for(key, 2 * window)
                end
            end

            -- scored 0 is no request, but the sum of what costs exceed 1
            if entry.err or first == '0' or expired > 0 or rest and rest > window
                or count >= maxes[l] and ahead_of_now(key) > 0 then
                is_ordinary = false
                break
            end

            used[l] = count
            leaves[l] = rest
            is_admitted = is_admitted and count < maxes[l]
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
                reply[before + l] = pack('<i8i8i8', 2, count + 1, rest or window)
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

-- Returns by how many places the requests behind it move.
local function replace_surplus(key, old, new)
    if new == old then
        return 0
    end
    if old > 0 then
        redis.call('ZREM', key, string.format('+%.0f', old))
    end
    if new > 0 then
        redis.call('ZADD', key, 0, string.format('+%.0f', new))
    end
    return (new > 0 and 1 or 0) - (old > 0 and 1 or 0)
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

-- Of a log with costs: as expire() does. False if some that have expired are left.
local function expire_costs(key, log, window)
    local expired = redis.call('ZCOUNT', key, '(0', now - window)
    if expired == log.size then
        redis.call('UNLINK', key)
        log.size, log.surplus, log.first = 0, 0, 0
        return true
    end

    local removed = math.min(expired, math.floor(work / 4))
    local left = log.surplus
    for _, member in ipairs(redis.call('ZRANGE', key, 1, removed)) do
        left = left - surplus_of(member)
    end
    redis.call('ZREMRANGEBYRANK', key, 1, removed)
    work = work - 4 * removed

    log.first = log.first + replace_surplus(key, log.surplus, left)
    log.size, log.surplus = log.size - removed, left
    return removed == expired
end

-- Entries from the future count from now on. False if some are left.
local function bring_back(key, log, window)
    local ahead = ahead_of_now(key)
    local moved = math.min(ahead, math.floor(work / 4))

    if ahead == log.size and ahead > few then
        redis.call('UNLINK', key)
        redis.call('ZADD', key, now_text, string.format('%s*%.0f', now_text, log.used))
        log.size, log.surplus, log.first = 1, log.used - 1, 0
        log.first = replace_surplus(key, 0, log.surplus)
        moved = ahead
    elseif moved > 0 then
        local entries = {}
        for j, member in ipairs(redis.call('ZRANGE', key, -moved, -1)) do
            entries[2 * j - 1], entries[2 * j] = now_text, member
        end
        redis.call('ZADD', key, unpack(entries))
        work = work - 4 * moved
    end

    if moved > 0 then
        log.oldest = math.min(log.oldest, now)
        keep_for(key, 2 * window)
    end
    return moved == ahead
end

-- What a log says to a request, and what is in it: so many requests from rank `first`
-- on, and what they cost beyond 1. nil: not decided.
local function read_log(key, window, max, cost)
    local log = { size = 0, surplus = 0, first = 0 }
    local entry = redis.call('ZRANGE', key, '0', '0', 'WITHSCORES')

    if entry[2] == '0' then
        log.surplus, log.first = tonumber(entry[1]), 1
        entry = redis.call('ZRANGE', key, '1', '1', 'WITHSCORES')
    end

    log.oldest = tonumber(entry[2])
    if log.oldest then
        log.size = redis.call('ZCARD', key) - log.first
    end

    if log.oldest and log.oldest <= now - window then
        if log.surplus == 0 then
            log.size, log.first = expire(key, log.size, window)
        elseif not expire_costs(key, log, window) then
            return nil
        end
        log.oldest = nil
        if log.size > 0 then
            log.oldest = tonumber(redis.call('ZRANGE', key, log.first, log.first, 'WITHSCORES')[2])
            keep_for(key, 2 * window)
        end
    end

    log.used = log.size + log.surplus
    log.admits = cost == 0 or log.used + cost <= max

    if log.oldest and (log.oldest > now or not log.admits) and not bring_back(key, log, window) then
        return nil
    end
    return log
end

local function count_in_log(key, log, window, cost)
    local member = cost == 1 and id or id .. '*' .. cost

    redis.call('ZADD', key, now_text, log.admits and member or member .. '!')
    keep_for(key, log.size == 0 and window or 2 * window)
    log.first = log.first + replace_surplus(key, log.surplus, log.surplus + cost - 1)
    log.surplus = log.surplus + cost - 1
    log.size, log.used = log.size + 1, log.used + cost
    log.oldest = log.oldest or now
end

-- Refused ones can be any number, but only the newest max of them matter. Where there
-- are too many, each that comes looks at some others, which the time picks: so of any
-- number of admitted ones, which stay, they get to be about one in thirty.
local function forget_refused(key, log, max)
    local from = log.first + now % (log.size - max - 31)
    local refused, surplus = {}, log.surplus

    for _, member in ipairs(redis.call('ZRANGE', key, from, from + 31)) do
        if string.sub(member, -1) == '!' then
            refused[#refused + 1] = member
            surplus = surplus - surplus_of(member)
        end
    end

    if #refused > 0 then
        redis.call('ZREM', key, unpack(refused))
        log.first = log.first + replace_surplus(key, log.surplus, surplus)
        log.size, log.surplus = log.size - #refused, surplus
        log.used = log.size + surplus
        log.oldest = tonumber(redis.call('ZRANGE', key, log.first, log.first, 'WITHSCORES')[2])
    end
end

-- The time of the request with which as much has left as is needed.
local function last_to_leave(key, log, need)
    local rank = log.first

    if need == 1 then
        return log.oldest
    elseif log.surplus == 0 then
        rank = rank + need - 1
    else
        local left, from, size = 0, rank, 8
        while left < need and work >= 4 and from < log.first + log.size do
            size = math.min(size, math.floor(work / 4))
            local members = redis.call('ZRANGE', key, from, from + size - 1)
            work = work - 4 * #members
            for j, member in ipairs(members) do
                left = left + 1 + surplus_of(member)
                rank = from + j - 1
                if left >= need then
                    break
                end
            end
            from, size = from + size, 4 * size
        end
    end

    return tonumber(redis.call('ZRANGE', key, rank, rank, 'WITHSCORES')[2])
end

local function count_in_bucket(key, buckets, cost)
    local current, counts = buckets.current, buckets.counts

    redis.call('ZINCRBY', key, cost, current)
    keep_for(key, buckets.span + buckets.width)
    if not counts[current] then
        buckets.ends[#buckets.ends + 1], counts[current] = current, 0
    end
    counts[current] = counts[current] + cost
    buckets.used = buckets.used + cost
end

-- What buckets say to a request, and what is in them: when they end, and their counts.
local function read_buckets(key, window, number, max, cost)
    local width = math.ceil(window / number)
    local span, current = number * width, (math.floor(now / width) + 1) * width
    local ends, counts = {}, {}
    local used, ahead, removed = 0, 0, {}
    local entries = redis.call('ZRANGE', key, 0, 1023, 'WITHSCORES')

    if entries[1] and (entries[2] == '0' or not tonumber(entries[1])) then
        -- a log until now, of costs or ids: the configuration has changed
        redis.call('UNLINK', key)
        entries = {}
    end

    for j = 1, #entries, 2 do
        local bucket, count = tonumber(entries[j]), tonumber(entries[j + 1])
        if bucket <= current and bucket > now - span then
            ends[#ends + 1], counts[bucket] = bucket, count
            used = used + count
        else
            removed[#removed + 1] = entries[j]
            ahead = ahead + (bucket > current and count or 0)
        end
    end

    local buckets = { used = used, ends = ends, counts = counts, current = current, span = span, width = width }

    if #removed > 0 then
        redis.call('ZREM', key, unpack(removed))
    end
    if ahead > 0 then
        count_in_bucket(key, buckets, ahead)
    end
    buckets.admits = cost == 0 or buckets.used + cost <= max
    return buckets
end

-- When the bucket ends with which as much has left as is needed.
local function last_bucket_to_leave(buckets, need)
    local left = 0

    table.sort(buckets.ends)
    for _, bucket in ipairs(buckets.ends) do
        left = left + buckets.counts[bucket]
        if left >= need then
            return bucket
        end
    end
end

local admitted = true
local found = {}

for i, key in ipairs(KEYS) do
    local window, max = tonumber(args[5 * i - 2]), tonumber(args[5 * i - 1])
    local cost, buckets = tonumber(args[5 * i]), tonumber(args[5 * i + 1])
    local limit

    if buckets == 0 then
        limit = read_log(key, window, max, cost)
    else
        limit = read_buckets(key, window, buckets, max, cost)
    end

    if not limit then
        local undecided = {}
        for j = 1, #KEYS do
            undecided[3 * j - 2], undecided[3 * j - 1], undecided[3 * j] = -1, 0, 0
        end
        undecided[#undecided + 1] = now
        return undecided
    end

    if not limit.admits and not string.find(args[5 * i + 2], 'n', 1, true) then
        admitted = false
    end
    found[i] = limit
end

local reply = {}

for i, key in ipairs(KEYS) do
    local window, max, cost = tonumber(args[5 * i - 2]), tonumber(args[5 * i - 1]), tonumber(args[5 * i])
    local limit = found[i]
    local admits, is_log = limit.admits, not limit.ends
    local is_counted

    if admits then
        is_counted = admitted and cost > 0
    else
        is_counted = string.find(args[5 * i + 2], 'd', 1, true)
    end

    if is_counted and is_log then
        count_in_log(key, limit, window, cost)
        if not admits and limit.size > 3 * max + 128 then
            forget_refused(key, limit, max)
        end
    elseif is_counted then
        count_in_bucket(key, limit, cost)
    end

    -- when as much will have left as this request needs, or anything at all
    local need = admits and 1 or limit.used + cost - max
    local leaves

    if is_log then
        leaves = last_to_leave(key, limit, need)
        leaves = leaves and leaves + window
    else
        leaves = last_bucket_to_leave(limit, need)
        leaves = leaves and leaves + limit.span
    end

    reply[3 * i - 2] = admits and (is_counted and 2 or 1) or 0
    reply[3 * i - 1] = limit.used
    reply[3 * i] = leaves and leaves - now or 0
end

reply[#reply + 1] = now

return reply
