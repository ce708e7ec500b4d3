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
-- Whether this user of Redis may call all that the script ever needs is found out with
-- ARGV[1]   '?', and all else as for asking
-- Then every command of the script is called for each of the keys, whose sets are lost
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
-- an entry of its own, '+SUM' scored 0, so that nobody has to add them up. Behind the
-- '!' there may be a number: see forget_refused().
-- In buckets an entry is the time a bucket ends at, scored with its count. A
-- bucket leaves as a whole, when its last moment is one window old. If counts from the
-- future were moved, 'moved' is scored with the end of the last such bucket, below 0.
-- Nobody can tell any more whose counts stand in the buckets up to that one, so nothing
-- is taken back from them.
--
-- What an operator has ruled about the client stands in either as '!BAN:MAX:UNTIL', scored
-- 0: until when it is banned, another max, and until when that holds, or 0. (client.lua
-- writes it.) A ban refuses all requests, and does not count them. Rulings are taken out
-- of a set while a limit is decided about, so that nothing else need know of them.
--
-- Every key lives as long as what is in it counts, at least: one window if that is
-- a single request, else two. Two are enough until the oldest request leaves or is
-- taken back, since all that is counted before that is counted within one window of
-- it. So its time is set anew with the second request, and whenever one leaves.
--
-- No call holds up Redis, whatever a client has done before: a call goes through a
-- bounded number of entries one by one, for all of its requests and limits together.
-- Every limit has its share of that, and what those before it have left of theirs. So it
-- takes Redis less than 1 ms (see bench/slowest.py), but for calls of very many keys.
--   what has expired   is removed as far as that goes; the rest is only counted, and
--                      removed by later calls. All of a log goes at once.
--   … with costs       has to be added up to be removed. While there is more of it, what
--                      is used is known to lie between two bounds. A request is admitted
--                      if there is room beside the higher one, and refused (perhaps with
--                      a wait that is too early) if there is none beside the lower one.
--                      Between them it is not decided: whoever asks again finds less
--   … in buckets       at most 1025 entries, more than there can be buckets. A hundred
--                      take Redis some 50 µs: what sixteen limits have, nearly 1 ms
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

-- What this call may still do, and what of that is reserved for limits still to come: to
-- remove an entry takes one of it, and to read one and do something about it four. All of
-- it takes Redis about half a millisecond; the more keys there are, the more time is taken
-- by calls that are made for each of them.
local most = #KEYS < 24 and 1056 - 32 * #KEYS or 288
local work, reserved = most, 0
local few = 256

local function keep_for(key, microseconds)
    -- a second more, so that rounding to milliseconds cannot cut it short
    redis.call('PEXPIRE', key, string.format('%d', microseconds / 1000 + 1000))
end

-- Of a log of so many entries, none of which costs more than 1. Returns how many have
-- not expired, and behind how many that have and are still there. (If the set held
-- buckets until now, all of that has expired.)
local function expire(key, count, window)
    if count <= work then
        local removed = redis.call('ZREMRANGEBYSCORE', key, '-inf', now - window)
        work = work - removed
        return count - removed, 0
    end

    local expired = redis.call('ZCOUNT', key, '-inf', now - window)
    if expired == count then
        redis.call('UNLINK', key)
        return 0, 0
    end

    local removed = math.max(0, math.min(expired, math.floor(work - reserved)))
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

local id, asked     -- one of asked for each limit

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
                reserved = most * (1 - (before + l) / #KEYS)
                count, expired = expire(key, count, window)
                rest = nil
                if count > 0 then
                    rest = call('ZRANGE', key, '0', '0', 'WITHSCORES')[2] + window - now
                    keep_for(key, 2 * window)
                end
            end

            -- scored 0 is no request, but a ruling, or the sum of what costs exceed 1
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

    id, asked = args[first_id + 1], {}
    for l = 1, limits do
        asked[l] = { key = KEYS[l], window = windows[l], max = maxes[l], cost = 1, buckets = 0 }
    end
else
    id, asked = args[2], {}
    for i, key in ipairs(KEYS) do
        local window, max, cost, buckets, rule = unpack(args, 5 * i - 2, 5 * i + 2)
        asked[i] = {
            key = key,
            window = tonumber(window),
            max = tonumber(max),
            cost = tonumber(cost),
            buckets = tonumber(buckets),
            counts_refused = string.find(rule, 'd', 1, true),
            is_dry_run = string.find(rule, 'n', 1, true),
        }
    end
end

-- Calls everything that this script may ever call. Nothing is added before it is known
-- that it can be removed. What needs memory comes first: a script that has changed
-- something is given all it wants.
local function rehearse(key)
    local call = redis.call

    call('ZADD', key, 'XX', 0, id)
    call('UNLINK', key)
    call('ZRANGE', key, 0, 0)
    call('ZCARD', key)
    call('ZCOUNT', key, 0, 0)
    call('ZSCORE', key, id)
    call('ZREM', key, id)
    call('ZREMRANGEBYRANK', key, 0, 0)
    call('ZREMRANGEBYSCORE', key, 0, 0)
    keep_for(key, 0)
    call('ZINCRBY', key, 1, id)
    call('UNLINK', key)
end

-- How many entries may still be read, and something be done about them, for this limit.
local function affordable()
    return math.max(0, math.floor((work - reserved) / 4))
end

-- What stands for a request in a log.
local function member_of(cost)
    return cost == 1 and id or id .. string.format('*%.0f', cost)
end

-- What an entry of a log costs beyond 1.
local function surplus_of(member)
    local star = string.find(member, '*', 1, true)
    return star and tonumber(string.match(member, '%d+', star)) - 1 or 0
end

-- The number behind the '!' of an entry, or of the sum.
local function refused_up_to(member)
    return tonumber(string.match(member, '!(%d+)')) or 0
end

-- Takes what a log begins with for its sum.
local function read_sum(log, member)
    log.sum, log.first = member, 1
    log.surplus, log.refused = tonumber(string.match(member, '%d+')), refused_up_to(member)
end

local function write_sum(log, surplus, refused)
    local form = refused > 0 and '+%.0f!%.0f' or '+%.0f'
    local sum = surplus > 0 and string.format(form, surplus, refused) or nil

    if sum ~= log.sum then
        if log.sum then
            redis.call('ZREM', log.key, log.sum)
        end
        if sum then
            redis.call('ZADD', log.key, 0, sum)
        end
        log.first = log.first + (sum and 1 or 0) - (log.sum and 1 or 0)
    end
    log.sum, log.surplus, log.refused = sum, surplus, sum and refused or 0
end

-- If what a set begins with, and is scored 0, is a ruling: takes it out, and lets the
-- limit be as it says.
local function take_ruling(limit, member)
    local ban, max, ends = string.match(member, '^!(%d+):(%d+):(%d+)$')
    if not ban then
        return false
    end

    redis.call('ZREM', limit.key, member)
    limit.own_max, limit.ban, limit.ruled_max, limit.ruled_until = limit.max, tonumber(ban), 0, 0
    if tonumber(ends) > now then
        limit.max, limit.ruled_max, limit.ruled_until = tonumber(max), tonumber(max), tonumber(ends)
    end
    limit.is_banned = limit.ban > now
    return true
end

-- Puts back what still holds of it.
local function put_back_ruling(limit)
    local ends = limit.ban and math.max(limit.ban, limit.ruled_until) or 0

    if ends > now then
        redis.call('ZADD', limit.key, 0,
            string.format('!%.0f:%.0f:%.0f', limit.ban, limit.ruled_max, limit.ruled_until))
        keep_for(limit.key, math.max(ends - now, 2 * (limit.span or limit.window)))
    end
end

-- To take back one that is not the oldest does not change for how long the log is needed.
local function take_back_from_log(log)
    local member, first = member_of(log.cost), redis.call('ZRANGE', log.key, 0, 1)

    if first[1] and take_ruling(log, first[1]) then
        first = redis.call('ZRANGE', log.key, 0, 1)
    end

    local is_there = redis.call('ZREM', log.key, member) == 1

    if is_there and first[2] then
        local has_costs = string.sub(first[1], 1, 1) == '+'
        if has_costs or first[1] == member then
            keep_for(log.key, 2 * log.window)
        end
        if log.cost > 1 then
            read_sum(log, first[1])
            write_sum(log, log.surplus - log.cost + 1, log.refused)
        end
    end
    put_back_ruling(log)
    return is_there
end

local function take_back_from_bucket(limit, counted_at)
    local width = math.ceil(limit.window / limit.buckets)
    local bucket = (math.floor(counted_at / width) + 1) * width
    local count = tonumber(redis.call('ZSCORE', limit.key, bucket) or 0)

    if count == 0 or bucket <= -(redis.call('ZSCORE', limit.key, 'moved') or 0) then
        return false
    end

    if count > limit.cost then
        redis.call('ZINCRBY', limit.key, -limit.cost, bucket)
    else
        redis.call('ZREM', limit.key, bucket)
    end
    return true
end

local counted_at = tonumber(args[1])

if counted_at then
    local taken_back = 0

    for _, limit in ipairs(asked) do
        local is_taken_back
        if limit.buckets == 0 then
            is_taken_back = take_back_from_log(limit)
        else
            is_taken_back = take_back_from_bucket(limit, counted_at)
        end
        taken_back = taken_back + (is_taken_back and 1 or 0)
    end

    return taken_back
end

if args[1] == '?' then
    for _, limit in ipairs(asked) do
        rehearse(limit.key)
    end
end

-- Of a log with costs: as expire() does. Those that have expired and are still there make
-- it unsure what the others cost.
local function expire_costs(log)
    local expired = redis.call('ZCOUNT', log.key, '(0', now - log.window)
    if expired == log.size then
        redis.call('UNLINK', log.key)
        log.size, log.surplus, log.refused, log.first, log.sum = 0, 0, 0, 0, nil
        return
    end

    -- the other half is for what else there may be to read
    local removed = math.min(expired, math.floor(affordable() / 2))
    local left = log.surplus
    for _, member in ipairs(redis.call('ZRANGE', log.key, 1, removed)) do
        left = left - surplus_of(member)
    end
    redis.call('ZREMRANGEBYRANK', log.key, 1, removed)
    work = work - 4 * removed

    write_sum(log, left, log.refused)
    log.size, log.first = log.size - expired, log.first + expired - removed
    log.unsure = removed < expired and left or 0
end

-- Reads what some of the newest cost for sure, if it is unsure what all of them do.
local function read_newest(log)
    local count = math.min(32, affordable(), log.size)

    for _, member in ipairs(count > 0 and redis.call('ZRANGE', log.key, -count, -1) or {}) do
        log.unsure = log.unsure - surplus_of(member)
    end
    work = work - 4 * count
end

-- Entries from the future count from now on. False if some are left.
local function bring_back(log)
    local ahead = ahead_of_now(log.key)
    local moved = math.min(ahead, affordable())

    if ahead == log.size and ahead > few then
        if log.unsure > 0 then
            return false
        end
        redis.call('UNLINK', log.key)
        redis.call('ZADD', log.key, now_text, string.format('%s*%.0f', now_text, log.used))
        log.size, log.first, log.sum = 1, 0, nil
        write_sum(log, log.used - 1, 0)
        moved = ahead
    elseif moved > 0 then
        local entries = {}
        for j, member in ipairs(redis.call('ZRANGE', log.key, -moved, -1)) do
            entries[2 * j - 1], entries[2 * j] = now_text, member
        end
        redis.call('ZADD', log.key, unpack(entries))
        work = work - 4 * moved
    end

    if moved > 0 then
        log.oldest = math.min(log.oldest, now)
        keep_for(log.key, 2 * log.window)
    end
    return moved == ahead
end

-- What a log says to a request, and what is in it: so many requests from rank `first`
-- on, and what they cost beyond 1, of which some may be unsure. False: not decided.
local function read_log(log)
    local entry = redis.call('ZRANGE', log.key, '0', '0', 'WITHSCORES')

    log.size, log.surplus, log.refused, log.unsure, log.first = 0, 0, 0, 0, 0

    if entry[2] == '0' and take_ruling(log, entry[1]) then
        entry = redis.call('ZRANGE', log.key, '0', '0', 'WITHSCORES')
    end
    if entry[2] == '0' then
        read_sum(log, entry[1])
        entry = redis.call('ZRANGE', log.key, '1', '1', 'WITHSCORES')
    end

    log.oldest = tonumber(entry[2])
    if log.oldest then
        log.size = redis.call('ZCARD', log.key) - log.first
    end

    if log.oldest and log.oldest <= now - log.window then
        if log.surplus == 0 then
            log.size, log.first = expire(log.key, log.size, log.window)
        else
            expire_costs(log)
        end
        log.oldest = nil
        if log.size > 0 then
            log.oldest = tonumber(redis.call('ZRANGE', log.key, log.first, log.first, 'WITHSCORES')[2])
            keep_for(log.key, 2 * log.window)
        end
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
    return not log.oldest or log.oldest <= now and log.admits or bring_back(log)
end

-- From so many entries on, or if they cost so much that sums could become inexact, refused
-- ones that do not matter any more are looked for in a log with costs.
local function is_crowded(log)
    if log.surplus > 0 then
        return log.size > 128 or log.surplus > 2 ^ 50
    end
    return log.size > 3 * log.max + 128
end

-- A refused entry does not matter any more once refused ones that came after it have taken
-- all of max. That is what the numbers behind '!' say, in such parts of max.
local all_of_max = 2 ^ 30

local function count_in_log(log)
    local member, refused = member_of(log.cost), log.refused
    local surplus = log.surplus + log.cost - 1

    log.size, log.used = log.size + 1, log.used + log.cost
    if not log.admits then
        member = member .. '!'
        if surplus > 0 and (refused > 0 or is_crowded(log)) then
            refused = refused + math.floor(log.cost / log.max * all_of_max)
            member = member .. string.format('%.0f', refused)
        end
    end

    redis.call('ZADD', log.key, now_text, member)
    keep_for(log.key, log.size == 1 and log.window or 2 * log.window)
    write_sum(log, surplus, refused)
    log.oldest = log.oldest or now
end

-- Refused ones can be any number, but only the newest that together cost max matter. Where
-- there are too many, each that comes looks at some others, which the time picks: so of
-- any number of entries that stay, they get to be about one in thirty. Where none costs
-- more than 1, the newest max entries stay. Otherwise each refused one has the sum of what
-- they have taken up to it, in parts of max, behind its '!'; the latest is that of the log.
local function forget_refused(log)
    local has_costs = log.surplus > 0
    local others = has_costs and log.size or log.size - log.max
    local from = log.first + now % math.max(1, others - 31)
    local forgotten, surplus = {}, log.surplus

    for _, member in ipairs(redis.call('ZRANGE', log.key, from, from + 31)) do
        if string.find(member, '!', 1, true)
            and (not has_costs or log.refused - refused_up_to(member) >= all_of_max) then
            forgotten[#forgotten + 1] = member
            surplus = surplus - surplus_of(member)
        end
    end

    if #forgotten > 0 then
        redis.call('ZREM', log.key, unpack(forgotten))
        write_sum(log, surplus, log.refused)
        log.size = log.size - #forgotten
        log.used = log.size + surplus
        log.oldest = tonumber(redis.call('ZRANGE', log.key, log.first, log.first, 'WITHSCORES')[2])
    end
end

-- The time of the request with which as much has left as is needed; nil: there is none.
local function last_to_leave(log, need)
    local rank = log.first

    if need == 1 then
        return log.oldest
    elseif log.surplus == 0 then
        rank = rank + need - 1
    else
        local left, from, size = 0, rank, 8
        while left < need and affordable() > 0 and from < log.first + log.size do
            size = math.min(size, affordable())
            local members = redis.call('ZRANGE', log.key, from, from + size - 1)
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

    return tonumber(redis.call('ZRANGE', log.key, rank, rank, 'WITHSCORES')[2])
end

local function count_in_bucket(limit, cost)
    redis.call('ZINCRBY', limit.key, cost, limit.current)
    keep_for(limit.key, limit.span + limit.width)
    limit.added, limit.used = limit.added + cost, limit.used + cost
    limit.oldest = math.min(limit.oldest or limit.current, limit.current)
end

-- What buckets say to a request, and what is in them: ends and counts as they were read,
-- and what was added to the current one since. There can be a hundred of them for each
-- limit, so nothing else is made of an entry before it is needed.
local function read_buckets(limit)
    local width = math.ceil(limit.window / limit.buckets)
    local current = (math.floor(now / width) + 1) * width
    local expired = now - limit.buckets * width     -- so are buckets that ended by then
    local entries = redis.call('ZRANGE', limit.key, 0, 1024, 'WITHSCORES')
    local first = entries[1] == 'moved' and 3 or 1
    local moved = first == 3 and -entries[2] or 0
    local used, oldest, ahead, removed = 0, current + 1, 0, {}

    if entries[first + 1] == '0' and take_ruling(limit, entries[first]) then
        table.remove(entries, first)
        table.remove(entries, first)
    end
    if entries[first] and (entries[first + 1] == '0' or not tonumber(entries[first])) then
        -- a log until now, of costs or ids: the configuration has changed
        redis.call('UNLINK', limit.key)
        entries = {}
    end

    if first == 3 and moved <= expired then
        removed[1] = 'moved'
    end
    for j = first, #entries, 2 do
        -- as numbers, which arithmetic makes of them faster than tonumber() does
        local bucket, count = entries[j] + 0, entries[j + 1] + 0
        if bucket > expired and bucket <= current then
            entries[j], entries[j + 1] = bucket, count
            used = used + count
            if bucket < oldest then
                oldest = bucket
            end
        else
            removed[#removed + 1] = entries[j]
            entries[j] = expired
            if bucket > current then
                ahead, moved = ahead + count, math.max(moved, bucket)
            end
        end
    end

    limit.used, limit.added, limit.current = used, 0, current
    limit.oldest = oldest <= current and oldest or nil
    limit.span, limit.width, limit.expired = limit.buckets * width, width, expired
    limit.entries, limit.first = entries, first

    if #removed > 0 then
        redis.call('ZREM', limit.key, unpack(removed))
    end
    if ahead > 0 then
        redis.call('ZADD', limit.key, -moved, 'moved')
        count_in_bucket(limit, ahead)
    end
    limit.admits = limit.cost == 0 or limit.used + limit.cost <= limit.max
end

-- When the bucket ends with which as much has left as is needed. (One of another width, as
-- the configuration was before, is taken for the one that ends before it.)
local function last_bucket_to_leave(limit, need)
    if need == 1 then
        return limit.oldest
    end

    local entries, current, width = limit.entries, limit.current, limit.width
    local counts = { limit.added }      -- from the current one on, backwards
    for n = 2, limit.buckets + 2 do
        counts[n] = 0
    end
    for j = limit.first, #entries, 2 do
        local bucket = entries[j]
        if bucket > limit.expired then
            local n = (current - bucket) / width + 1
            n = counts[n] and n or math.ceil(n)
            counts[n] = counts[n] + entries[j + 1]
        end
    end

    local left = 0
    for n = #counts, 1, -1 do
        left = left + counts[n]
        if left >= need then
            return current - (n - 1) * width
        end
    end
end

-- How long until as much has left as is needed; nil: that is never.
local function until_left(limit, need)
    local leaves

    if limit.buckets == 0 then
        leaves = last_to_leave(limit, need)
    else
        leaves = last_bucket_to_leave(limit, need)
    end
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
    if limit.buckets > 0 then
        read_buckets(limit)
    elseif not read_log(limit) then
        decided = false
    end
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

        if is_counted and limit.buckets == 0 then
            count_in_log(limit)
            if not admits and limit.unsure == 0 and is_crowded(limit) then
                forget_refused(limit)
            end
        elseif is_counted then
            count_in_bucket(limit, limit.cost)
        end

        if admits then
            wait = until_left(limit, 1) or 0
        else
            wait = until_admitted(limit)
        end

        reply[3 * i - 2] = admits and (is_counted and 2 or 1) or limit.is_banned and 3 or 0
        reply[3 * i - 1] = limit.used
        reply[3 * i] = wait
    end

    put_back_ruling(limit)
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
