-- Client: where does one client stand, and what does an operator want to be done about it?
--
-- KEYS[1]   where a limit is counted for this client
-- KEYS[2]   where a ruling is noted once more while it holds, so that it is found by its name. Not
--           needed to look
-- ARGV[1]   ':look'    changes nothing
--           ':forget'  removes what was counted, and a ban
--           ':ban'     bans the client, or lifts a ban
--           ':max'     gives it another max, or its own again
-- ARGV[2]   the kind of the limit
-- ARGV[3]   for how many microseconds it is banned or has that max; 0: no more
-- ARGV[4]   that max
-- ARGV[5…]  the limit's window, and its max, which does not matter
--
-- Returns where the client stands then, in whole numbers
--   used       how many units are in the window
--   wait       microseconds until something leaves the window; 0: it is empty
--   ban        microseconds for which the client is still banned; 0: it is not
--   max, left  the max that it was given, and for how many microseconds more; 0, 0: none
--   entries    how many there are: units, or buckets
-- and then three for each of the newest 100, the newest first; units of a request are shown as one
--   ago        how many microseconds ago it was counted, or the bucket began
--   units      how many
--   id         the request's id, a string; '' where it is not known

local limit, key, act = limits[1], keys[1], task
local lasts, max = tonumber(args[3]), tonumber(args[4])
local used, rest = limit.format.read(limit, key)

if not used and act ~= ':forget' then
    return redis.error_reply('WRONGTYPE the key holds what this script has not written')
end

-- What is over is not said any more.
local ruling = limit.ruling or { ban = 0, max = 0, max_until = 0 }
local ban = act == ':ban' and now + lasts or act ~= ':forget' and ruling.ban or 0
if act == ':max' then
    ruling.max, ruling.max_until = max, now + lasts
end
ruling.ban = ban > now and ban or 0
if ruling.max_until <= now then
    ruling.max, ruling.max_until = 0, 0
end

if act ~= ':look' then
    -- what may be denied comes first, so that nothing is half done
    local holds = ruling.ban + ruling.max_until > 0 and ruling
    limit.ruling = holds
    if holds then
        call('SET', keys[2], format('%.0f:%.0f:%.0f', ruling.ban, ruling.max, ruling.max_until),
            'PX', milliseconds(limit, 0))
    else
        call('UNLINK', keys[2])
    end
    if act == ':forget' then
        call('UNLINK', key)
        used, rest = limit.format.read(limit, key)
        limit.ruling = holds
    end
    limit.format.rule(limit, key, used)
end

local units = used > 0 and limit.format.newest(limit, key, used, 1000) or {}
local shown, last = {}, nil

for _, unit in ipairs(units) do
    local n = #shown
    if last and unit.time == last.time and unit.id == last.id then
        shown[n - 1] = shown[n - 1] + unit.count
    elseif n == 300 then
        break
    else
        shown[n + 1], shown[n + 2], shown[n + 3] = math.max(0, now - unit.time), unit.count, unit.id
        last = unit
    end
end

return { used, rest or 0, ruling.ban > 0 and ruling.ban - now or 0, ruling.max,
    ruling.max > 0 and ruling.max_until - now or 0, limit.buckets and #units or used, unpack(shown) }
