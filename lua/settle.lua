-- Settle: a request has cost something else than was counted of it.
--
-- KEYS      one for each limit
-- ARGV[2]   the kinds of the limits, with the cost that was counted
-- ARGV[3]   the time that the answer to the check ended with; 0: it is not known
-- ARGV[4]   the request's id
-- ARGV[5…]  window of each limit and, in the place of max, what the request has cost after all;
--           0: it is taken back
--
-- Returns of how many limits the counts were changed.
--
-- What is less is removed; what is more is counted as units of now, whether there is room or not.
-- A log finds units by the request's id, so this may be repeated there. A packed log and buckets
-- find them by the time they were counted at: they change nothing if that is not known, and change
-- it again if this is repeated.

local moment, id = tonumber(args[3]), args[4]
local changed = 0

for l = 1, count do
    local limit, key = limits[l], keys[l]
    local counted, cost = limit.cost, limit.max
    local used = limit.format.read(limit, key)

    -- what is no format of ours is left alone
    if used and cost < counted then
        changed = changed + (limit.format.remove(limit, key, id, used, cost, counted, moment) and 1 or 0)
    elseif used and cost > counted then
        limit.format.add(limit, key, id .. '+', cost - counted, used)
        changed = changed + 1
    end
end

return changed
