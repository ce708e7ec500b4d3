-- Log: a sorted set with an entry for each unit, scored with its time. The first unit of a request
-- is its id, the others are 'ID:2', 'ID:3' and so on; units that were settled later begin 'ID+'.
-- If an operator has ruled about the client, '!BAN:MAX:UNTIL' scored 0 stands before them.
--
-- `first` is the rank of the oldest unit in the window.

local budget = 1000     -- how many entries this call may still remove

log = { read = false, add = false, wait = false, drop = false }

-- Returns how many units are in the window, and how long until the oldest of them leaves; false:
-- there is none. Removes what has left. Returns nil if the key is no sorted set.
function log.read(limit, key)
    local entry = pcall('ZRANGE', key, '0', '0', 'WITHSCORES')
    local oldest, left = entry[2], limit.left
    local rank, lowest = 0, '-inf'

    limit.first = 0
    if oldest == '0' then
        local ban, max, max_until = string.match(entry[1], '^!(%d+):(%d+):(%d+)$')
        if ban then
            limit.ruling = { ban = tonumber(ban), max = tonumber(max), max_until = tonumber(max_until) }
            is_ruled, limit.first, rank, lowest = true, 1, 1, '(0'
            oldest = call('ZRANGE', key, '1', '1', 'WITHSCORES')[2]
        end
    end
    if not oldest then
        return not entry.err and 0, false
    end

    local used, rest = call('ZCARD', key) - rank, oldest - left
    if rest > limit.window then     -- the clock has stepped back
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
        return used, limit.window
    elseif rest > 0 then
        return used, rest
    end

    if used <= budget then
        local removed = call('ZREMRANGEBYSCORE', key, lowest, left)
        used, budget = used - removed, budget - removed
    else
        local expired = call('ZCOUNT', key, lowest, left)
        local removed = math.min(expired, budget)
        if expired == used and rank == 0 then
            call('UNLINK', key)
            removed = expired
        elseif removed > 0 then
            call('ZREMRANGEBYRANK', key, rank, rank + removed - 1)
            budget = budget - removed
        end
        used, rank = used - expired, rank + expired - removed
    end
    limit.first = rank
    if used == 0 then
        return 0, false
    end

    call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
    return used, math.min(call('ZRANGE', key, rank, rank, 'WITHSCORES')[2] - left, limit.window)
end

-- Counts so many units of a request. Two windows are long enough for a key until its oldest unit
-- leaves: all of its units are counted before that. When settling is repeated that may be moved.
function log.add(limit, key, id, units, used)
    if units == 1 then
        call('ZADD', key, now_text, id)
    else
        local words = { now_text, id }
        for n = 2, units do
            words[2 * n - 1], words[2 * n] = now_text, id .. ':' .. n
        end
        call('ZADD', key, unpack(words))
    end
    if used < 2 or not is_check then
        call('PEXPIRE', key, milliseconds(limit, used + units == 1 and limit.window or 2 * limit.window))
    end
end

-- How long until so many units have left, where the oldest does in `rest`. Units from the future
-- become units of now first, up to a thousand of them.
function log.wait(limit, key, units, rest)
    local newest = call('ZRANGE', key, '-1', '-1', 'WITHSCORES')[2]

    if newest - now > 0 then
        local entries, words = call('ZRANGE', key, '-1000', '-1', 'WITHSCORES'), {}
        for n = 1, #entries, 2 do
            if entries[n + 1] - now > 0 then
                words[#words + 1], words[#words + 2] = now_text, entries[n]
            end
        end
        call('ZADD', key, unpack(words))
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
    end
    if units == 1 and rest then
        return rest
    end

    local rank = limit.first + units - 1
    return math.min(call('ZRANGE', key, rank, rank, 'WITHSCORES')[2] - limit.left, limit.window)
end

if keeps_refused then
    -- Drops the oldest units, a thousand at most. Returns how many.
    function log.drop(limit, key, units)
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
        return call('ZREMRANGEBYRANK', key, limit.first, limit.first + math.min(units, 1000) - 1)
    end
end

if task == ':settle' then
    -- Removes units of a request, the last first. False: there are none.
    function log.remove(limit, key, id, _, keep, counted)
        local members = { keep == 0 and id or nil }
        for n = math.max(2, keep + 1), counted do
            members[#members + 1] = id .. ':' .. n
        end
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
        return call('ZREM', key, unpack(members)) > 0
    end
elseif not is_check and task ~= ':try' then
    -- Puts the limit's ruling in the place of what was ruled before.
    function log.rule(limit, key)
        local ruling = limit.ruling

        call('ZREMRANGEBYSCORE', key, '0', '0')
        if ruling then
            call('ZADD', key, '0', format('!%.0f:%.0f:%.0f', ruling.ban, ruling.max, ruling.max_until))
        end
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
    end

    -- The newest units, at most so many, the newest first: the time, the id and how many, of each.
    function log.newest(_, key, used, most)
        local entries, units = call('ZRANGE', key, -math.min(used, most), -1, 'WITHSCORES'), {}

        for n = #entries - 1, 1, -2 do
            -- others may have written what is longer
            local id = string.sub(string.match(entries[n], '^[^+:]*'), 1, 36)
            units[#units + 1] = { time = tonumber(entries[n + 1]), id = id, count = 1 }
        end
        return units
    end
end
