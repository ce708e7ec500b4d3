-- Packed log: a string. Numbers are unsigned, the highest byte first.
--   4 bytes  how many units in front have left the window; 2^31 more if a ruling follows the head
--   4 bytes  how many have not, when a unit was last counted
--   8 bytes  the time of the oldest of these
--   8 bytes  the time of the newest
--   8 bytes  until when the key lives, at least
--  24 bytes  the ruling, if there is one: until when the client is banned, another max, until when
--   8 bytes  the time of each unit, the oldest first
-- What has left stays in front until it is more than the rest, which is then written anew.
--
-- What is known of a key meanwhile is in `limit.packed`: the byte `at` which the oldest unit in the
-- window stands, the `base` where the first of all does, `oldest` and `ends`.

packed = { read = false, add = false, wait = false, drop = false }

local now_8 = pack('>I8', now)

for l = 1, count do
    limits[l].packed = { at = 32, base = 32, oldest = 0, ends = 0 }
end

-- Writes all of it: so many units with these times, the oldest first.
local function write(limit, key, oldest, units, times, lasts)
    local it, ruling, flag, more = limit.packed, limit.ruling, 0, ''
    local newest = units > 0 and unpack_from('>I8', times, #times - 7) or now

    if ruling then
        flag, more = 0x80000000, pack('>I8I8I8', ruling.ban, ruling.max, ruling.max_until)
    end
    it.at, it.base, it.oldest, it.ends = 32 + #more, 32 + #more, oldest, now + lasts
    call('SET', key, pack('>I4I4I8I8I8', flag, units, oldest, newest, it.ends) .. more .. times,
        'PX', milliseconds(limit, lasts))
end

-- The time of the unit that stands behind so many others.
local function time_of(limit, key, units)
    local at = limit.packed.at + 8 * units
    return (unpack_from('>I8', call('GETRANGE', key, at, at + 7)))
end

-- How many of so many units are no later than a moment.
local function count_until(limit, key, units, moment)
    local low, high = 0, units

    while low < high do
        local middle = math.floor((low + high) / 2)
        if time_of(limit, key, middle) <= moment then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

-- As of a log. Returns nil if the key is no packed log.
function packed.read(limit, key)
    local head, left = pcall('GETRANGE', key, '0', '31'), limit.left
    if head == '' then
        return 0, false
    elseif #head ~= 32 then     -- an error is a table without entries
        return nil
    end

    local gone, used, oldest, newest, ends = unpack_from('>I4I4I8I8I8', head)
    local it, base = limit.packed, 32
    if ends > 2 ^ 53 then       -- somebody else's text
        return nil
    elseif gone >= 0x80000000 then
        local ban, max, max_until = unpack_from('>I8I8I8', call('GETRANGE', key, '32', '55'))
        limit.ruling = { ban = ban, max = max, max_until = max_until }
        is_ruled, gone, base = true, gone - 0x80000000, 56
    end
    it.at, it.base, it.ends = base + 8 * gone, base, ends

    if used == 0 or newest <= left then
        return 0, false
    elseif newest > now then
        -- what is from the future is of now
        local kept = count_until(limit, key, used, now)
        oldest = math.min(oldest, now)
        call('SETRANGE', key, it.at + 8 * kept, string.rep(now_8, used - kept))
        call('SETRANGE', key, '8', pack('>I8I8I8', oldest, now, now + 2 * limit.window))
        call('PEXPIRE', key, milliseconds(limit, 2 * limit.window))
        it.ends = now + 2 * limit.window
    end
    if oldest <= left then
        -- most often few have left
        local times, expired = call('GETRANGE', key, it.at + 8, it.at + 39), 0
        repeat
            expired = expired + 1
            oldest = unpack_from('>I8', times, 8 * expired - 7)
        until oldest > left or 8 * expired == #times
        if oldest <= left then
            expired = count_until(limit, key, used, left)
            oldest = time_of(limit, key, expired)
        end
        used, it.at = used - expired, it.at + 8 * expired
    end
    it.oldest = oldest
    return used, oldest - left
end

-- Counts so many units of now.
function packed.add(limit, key, _, units, used)
    local it, window, times = limit.packed, limit.window, units == 1 and now_8 or string.rep(now_8, units)
    local at, gone = it.at, (it.at - it.base) / 8

    if used == 0 then
        write(limit, key, now, units, times, window)
    elseif gone > 64 and gone > used then
        times = call('GETRANGE', key, at, at + 8 * used - 1) .. times
        write(limit, key, it.oldest, used + units, times, 2 * window)
    else
        call('APPEND', key, times)
        gone = limit.ruling and gone + 0x80000000 or gone
        call('SETRANGE', key, '0', pack('>I4I4I8I8', gone, used + units, it.oldest, now))
        if now + window > it.ends then
            call('PEXPIRE', key, milliseconds(limit, 2 * window))
            call('SETRANGE', key, '24', pack('>I8', now + 2 * window))
            it.ends = now + 2 * window
        end
    end
end

-- How long until so many units have left, where the oldest does in `rest`.
function packed.wait(limit, key, units, rest)
    return units == 1 and rest or time_of(limit, key, units - 1) - limit.left
end

if keeps_refused then
    -- Drops the oldest units, a thousand at most. Returns how many.
    function packed.drop(limit, key, units, used)
        local it = limit.packed

        units = math.min(units, 1000)
        it.at = it.at + 8 * units
        it.oldest = time_of(limit, key, 0)
        call('SETRANGE', key, '0',
            pack('>I4I4I8', (it.at - it.base) / 8 + (limit.ruling and 0x80000000 or 0), used - units, it.oldest))
        return units
    end
end

if not is_check and task ~= ':try' then
    -- As of a log; without so many units behind `before` others.
    function packed.rule(limit, key, used, before, units)
        local at = limit.packed.at
        local times = used > 0 and call('GETRANGE', key, at, at + 8 * used - 1) or ''

        if units then
            times = string.sub(times, 1, 8 * before) .. string.sub(times, 8 * (before + units) + 1)
        end
        if times ~= '' or limit.ruling then
            write(limit, key, times ~= '' and unpack_from('>I8', times) or now, #times / 8, times, 2 * limit.window)
        else
            call('UNLINK', key)
        end
    end

    -- Removes units of the moment at which a request was counted. False: there are none.
    function packed.remove(limit, key, _, used, keep, counted, moment)
        local before = count_until(limit, key, used, moment - 1)
        local units = math.min(count_until(limit, key, used, moment) - before, counted - keep)

        if moment > 0 and units > 0 then
            packed.rule(limit, key, used, before, units)
        end
        return moment > 0 and units > 0
    end

    -- As of a log.
    function packed.newest(limit, key, used, most)
        local at = limit.packed.at + 8 * used
        local times, units = call('GETRANGE', key, at - 8 * math.min(used, most), at - 1), {}

        for from = #times - 7, 1, -8 do
            units[#units + 1] = { time = unpack_from('>I8', times, from), id = '', count = 1 }
        end
        return units
    end
end
