-- Buckets: a string with counts of parts of the window. A bucket is known by when it ends, and
-- leaves as a whole, when its last moment is one window old. Numbers are unsigned, the highest
-- byte first.
--   4 bytes  how many buckets there are before the latest; 2^31 more if a ruling follows the head
--   8 bytes  when the latest ends
--   8 bytes  when the oldest ends
--   8 bytes  when the last one ends that has had units from the future in it: nobody can tell any
--            more whose units stand in those up to it, so nothing is taken from them
--   8 bytes  how many units there are in all
--   8 bytes  how many there are in the latest
--  24 bytes  the ruling, if there is one, as in a packed log
--  16 bytes  of each bucket before the latest, the oldest first: when it ends, and its units
--
-- What is known of a key meanwhile is in `limit.buckets`. Its `pairs` are the buckets before the
-- current one; false if the string need not be written anew. What ended by `expired` has left.

buckets = { read = false, add = false, wait = false, drop = false }

for l = 1, count do
    local limit = limits[l]
    if limit.format == 98 then
        local width = math.ceil(limit.window / limit.buckets)
        local span = limit.buckets * width
        local current = (math.floor(now / width) + 1) * width

        limit.stays = current - now + span
        limit.buckets = { width = width, span = span, current = current, expired = now - span,
            base = 44, older = 0, pairs = '', count = 0, moved = 0 }
    end
end

-- What is from the future counts in the current bucket.
local function bring_back(current, pairs, latest, count_now, moved)
    local kept = {}

    moved = count_now > 0 and math.max(moved, latest) or moved
    for from = 1, #pairs, 16 do
        local ends, units = unpack_from('>I8I8', pairs, from)
        if ends >= current then
            count_now = count_now + units
            moved = ends > current and math.max(moved, ends) or moved
        else
            kept[#kept + 1] = string.sub(pairs, from, from + 15)
        end
    end
    return table.concat(kept), count_now, moved
end

-- Writes all of it.
local function write(limit, key, used)
    local it, ruling, flag, more = limit.buckets, limit.ruling, 0, ''
    local pairs = it.pairs
    local oldest = pairs ~= '' and unpack_from('>I8', pairs) or it.current

    if ruling then
        flag, more = 0x80000000, pack('>I8I8I8', ruling.ban, ruling.max, ruling.max_until)
    end
    call('SET', key, pack('>I4I8I8I8I8I8', #pairs / 16 + flag, it.current, oldest, it.moved, used, it.count)
        .. more .. pairs, 'PX', milliseconds(limit, it.span + it.width))
end

-- As of a log. Returns nil if the key is no buckets.
function buckets.read(limit, key)
    local it, head = limit.buckets, pcall('GETRANGE', key, '0', '43')
    local current, expired = it.current, it.expired

    if head == '' then
        it.pairs, it.count, it.moved = '', 0, 0
        return 0, false
    elseif #head ~= 44 then
        return nil
    end

    local older, latest, oldest, moved, used, count_now = unpack_from('>I4I8I8I8I8I8', head)
    local pairs, base = false, 44
    if latest > 2 ^ 53 then     -- somebody else's text
        return nil
    elseif older >= 0x80000000 then
        local ban, max, max_until = unpack_from('>I8I8I8', call('GETRANGE', key, '44', '67'))
        limit.ruling = { ban = ban, max = max, max_until = max_until }
        is_ruled, older, base = true, older - 0x80000000, 68
    end

    if latest ~= current or oldest <= expired then
        pairs = older > 0 and call('GETRANGE', key, base, base + 16 * older - 1) or ''
        if latest > current then
            pairs, count_now, moved = bring_back(current, pairs, latest, count_now, moved)
        elseif latest < current then
            pairs = count_now > 0 and pairs .. pack('>I8I8', latest, count_now) or pairs
            count_now = 0
        end

        local from = 1
        oldest = current
        while from < #pairs do
            local ends, units = unpack_from('>I8I8', pairs, from)
            if ends > expired then
                oldest = ends
                break
            end
            used, from = used - units, from + 16
        end
        pairs = string.sub(pairs, from)
        moved = moved > expired and moved or 0
    end

    it.base, it.older, it.pairs, it.count, it.moved = base, older, pairs, count_now, moved
    if latest > current then
        write(limit, key, used)     -- or they would begin anew with each request
    end
    return used, used > 0 and oldest - expired
end

-- All that stands before the current bucket.
local function load_pairs(it, key)
    local older, base = it.older, it.base

    it.pairs = it.pairs or older > 0 and call('GETRANGE', key, base, base + 16 * older - 1) or ''
    return it.pairs
end

-- Counts so many units of now, as far as sums stay exact.
function buckets.add(limit, key, _, units, used)
    local it = limit.buckets

    units = math.min(units, most_used - used)
    it.count = it.count + units
    if it.pairs then
        write(limit, key, used + units)
    else
        call('SETRANGE', key, '28', pack('>I8I8', used + units, it.count))
    end
end

-- How long until so many units have left.
function buckets.wait(limit, key, units)
    local pairs, expired = load_pairs(limit.buckets, key), limit.buckets.expired

    for from = 1, #pairs, 16 do
        local ends, counted = unpack_from('>I8I8', pairs, from)
        units = units - counted
        if units <= 0 then
            return ends - expired
        end
    end
    return limit.stays
end

if not is_check and task ~= ':try' then
    -- As of a log. Of nothing there need be no key.
    function buckets.rule(limit, key, used)
        load_pairs(limit.buckets, key)
        if used > 0 or limit.buckets.moved > 0 or limit.ruling then
            write(limit, key, used)
        else
            call('UNLINK', key)
        end
    end

    -- Removes units from the bucket that a request was counted in. False: there are none.
    function buckets.remove(limit, key, _, used, keep, counted, moment)
        local it = limit.buckets
        local pairs, width = load_pairs(it, key), it.width
        local bucket, less, taken = (math.floor(moment / width) + 1) * width, counted - keep, 0

        if moment == 0 or bucket <= it.moved then
            return false
        elseif bucket == it.current then
            taken = math.min(less, it.count)
            it.count = it.count - taken
        end
        for from = 1, #pairs, 16 do
            local ends, units = unpack_from('>I8I8', pairs, from)
            if ends == bucket then
                taken = math.min(less, units)
                local left = units > taken and pack('>I8I8', ends, units - taken) or ''
                it.pairs = string.sub(pairs, 1, from - 1) .. left .. string.sub(pairs, from + 16)
            end
        end

        if taken > 0 then
            buckets.rule(limit, key, used - taken)
        end
        return taken > 0
    end

    -- As of a log: the time at which a bucket began.
    function buckets.newest(limit, key)
        local it, units = limit.buckets, {}
        local pairs = load_pairs(it, key)

        if it.count > 0 then
            pairs = pairs .. pack('>I8I8', it.current, it.count)
        end
        for from = #pairs - 15, 1, -16 do
            local ends, counted = unpack_from('>I8I8', pairs, from)
            units[#units + 1] = { time = ends - it.width, id = '', count = counted }
        end
        return units
    end
end
