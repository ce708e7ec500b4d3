-- Check: may these requests pass all of their limits? Counts those that may.
--
-- KEYS      where each limit of the first request is counted, then of the second, and so on
-- ARGV[1]   the kinds of the limits, the same for all requests
-- ARGV[2…]  window and max of each limit, then the id of each request, a UUID: only logs need it
--
-- Returns a string of whole numbers, eight bytes each, the lowest first. Three for each limit of
-- each request
--   admits  0 the limit has no room for the request, 1 it has, 2 it has and the request was
--           counted, 3 the client is banned; -1 the key of one of the limits holds something
--           else, and the request was not counted
--   used    how many units are in the window, with those of this request
--   wait    microseconds: if the limit admits, until something leaves the window (0: it is
--           empty), else until the limit would admit the request (0: that is never)
-- then the time in microseconds and, if an operator gave a client another max, that max for each
-- limit, or 0.
--
-- A request is counted in all of its limits if all of them admit it, else in none. Where refused
-- requests count, too, the newest max units decide, so older ones are dropped.

-- What an operator has ruled about the client of a limit.
local function follow(limit)
    local ruling = limit.ruling or { ban = 0, max = 0, max_until = 0 }

    limit.own_max = limit.own_max or limit.max
    limit.ruled_max = ruling.max_until > now and ruling.max or 0
    limit.max = limit.ruled_max > 0 and ruling.max or limit.own_max
    limit.is_banned = ruling.ban > now
end

-- A limit refuses the request. Returns what the answer says about that.
local function refuse(limit, key, id, used, rest)
    local ruling, most = limit.ruling, math.max(limit.max, limit.own_max or 0)

    if limit.keeps_refused and not limit.is_banned then
        limit.format.add(limit, key, id, limit.cost, used)
        used, rest = math.min(used + limit.cost, most_used), rest or limit.stays
        if limit.format.drop and used > most then
            used, rest = used - limit.format.drop(limit, key, used - most, used), false
        end
    end

    -- math.huge: never
    local function until_room(max)
        local units = used - (max - limit.cost)    -- exact
        if limit.cost > max then
            return math.huge
        end
        return units > 0 and limit.cost > 0 and limit.format.wait(limit, key, units, rest) or 0
    end

    local wait = until_room(limit.max)
    if ruling and limit.ruled_max > 0 and wait > ruling.max_until - now then
        wait = math.max(ruling.max_until - now, until_room(limit.own_max))
    end
    wait = wait < math.huge and wait or 0
    if limit.is_banned then
        return 3, used, math.max(wait, ruling.ban - now)
    end
    return 0, used, wait
end

-- The reply has room for what most calls need: a table that grows takes long.
local requests, ruled = count > 0 and #keys / count or 0, nil
local reply = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

for r = 1, requests do
    local before, id = count * (r - 1), args[first + 2 * count - 1 + r]
    local is_readable, passes = true, true
    local used, rest, admits

    for l = 1, count do
        local limit, key = limits[l], keys[before + l]

        limit.ruling = false
        used, rest = limit.format.read(limit, key)
        if not used then
            is_readable, used = false, 0
        end
        if is_ruled then
            follow(limit)
            ruled = ruled or {}
            ruled[before + l] = limit.ruled_max
        end
        admits = (used + limit.cost <= limit.max or limit.cost == 0) and not (is_ruled and limit.is_banned)
        passes = passes and (admits or limit.is_dry_run)
        if count > 1 then
            limit.used, limit.rest, limit.admits = used, rest, admits
        end
    end

    for l = 1, count do
        local limit, key, n = limits[l], keys[before + l], 3 * (before + l)
        local cost, decision, wait = limit.cost, 1, 0

        if count > 1 then
            used, rest, admits = limit.used, limit.rest, limit.admits
        end
        if not is_readable then
            decision = -1
        elseif not admits then
            decision, used, wait = refuse(limit, key, id, used, rest)
        elseif passes and cost > 0 then
            limit.format.add(limit, key, id, cost, used)
            decision, used, wait = 2, used + cost, rest or limit.stays
        else
            wait = rest or 0
        end
        reply[n - 2], reply[n - 1], reply[n] = decision, used, wait
    end
end

local numbers = 3 * #keys + 1
reply[numbers] = now
if ruled then
    for n = 1, #keys do
        numbers = numbers + 1
        reply[numbers] = ruled[n] or 0
    end
end
return pack('<' .. string.rep('i8', numbers), unpack(reply, 1, numbers))
