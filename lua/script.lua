-- The script that nginx calls in Redis, put together from the files of this folder when the module
-- is built. The file of each task says what it takes and returns.
--
--   check.lua   may these requests pass? ARGV[1] is the kinds of their limits
--   settle.lua  what a request has cost after all: ARGV[1] is ':settle'
--   client.lua  what an operator asks about one client: ':look', ':forget', ':ban', ':max'
--   try.lua     a check, after every command that the script needs has been called: ':try'
--
-- The kinds are one word for each limit, separated by '/':
--   l, p, b6  how it counts: log.lua, packed.lua, buckets.lua with as many buckets
--   *COST     how many units a request takes; 0 only looks. Not said: 1
--   d         requests that the limit refuses count, too
--   n         the limit never keeps a request from passing (a dry run)
-- Two numbers for each limit follow elsewhere:
--   window    in microseconds
--   max       how many units fit into a window, at least 1
--
-- A request of cost 5 is five units of one moment. A unit counted at time t is in the window while
-- now - t < window. Redis's clock may step back. Units are then in the future; they become units
-- of now when that is noticed, at the latest when a request is refused. Nothing passes early, and
-- no wait is longer than a window (of buckets: and a bucket).
--
-- A key lives at least as long as its units count. The work of a call does not depend on what a
-- client has done before: it removes at most 1,000 entries of logs, and only counts the rest.
--
-- Functions are made only in calls that need them, since each takes Redis a part of a command.

local call, pcall, format = redis.call, redis.pcall, string.format
local pack, unpack_from = struct.pack, struct.unpack
local unpack = unpack or table.unpack    -- luacheck: ignore
local keys, args = KEYS, ARGV
local time = call('TIME')
local now_text = #time[2] == 6 and time[1] .. time[2] or format('%s%06d', time[1], time[2])
local now = tonumber(now_text)
local task = args[1]
local is_check = string.byte(task) ~= 58    -- ':'

-- ---- The limits

local limits, count = {}, 0
local kinds, first = task, 2        -- where the limits' numbers begin
local uses_log, uses_packed, uses_buckets, keeps_refused
local is_ruled = false              -- an operator has ruled about a client of this call
local most_used = 9 * 10 ^ 15       -- no more is counted, so that sums stay exact

if not is_check then
    kinds, first = args[2], task == ':try' and 3 or 5
end

local next_kind = 1
while next_kind <= #kinds do
    local letter, window = string.byte(kinds, next_kind), tonumber(args[first + 2 * count])

    -- with all that formats note in it: a table that grows takes long
    local limit = { format = letter, window = window, max = tonumber(args[first + 2 * count + 1]), cost = 1,
        left = now - window,        -- units of this time have left the window
        stays = window,             -- for how long what is counted now stays in it
        first = 0, ruling = false }

    uses_log = uses_log or letter == 108        -- 'l'
    uses_packed = uses_packed or letter == 112  -- 'p'
    uses_buckets = uses_buckets or letter == 98 -- 'b'
    if next_kind < #kinds then
        local more = string.match(kinds, '^[^/]*', next_kind + 1)

        limit.buckets = tonumber(string.match(more, '^%d+'))
        limit.cost = tonumber(string.match(more, '%*(%d+)') or 1)
        limit.keeps_refused = string.find(more, 'd', 1, true)
        limit.is_dry_run = string.find(more, 'n', 1, true)
        keeps_refused = keeps_refused or limit.keeps_refused
        next_kind = next_kind + #more
    end
    next_kind, count = next_kind + 2, count + 1
    limits[count] = limit
end

-- For how long a key is to live, or longer if a ruling holds longer; a second more, for rounding.
local function milliseconds(limit, microseconds)
    local ruling = limit.ruling
    if ruling then
        microseconds = math.max(microseconds, ruling.ban - now, ruling.max_until - now)
    end
    return format('%.0f', math.floor(microseconds / 1000) + 1000)
end

-- ---- The formats

local log, packed, buckets
if uses_log then
    -- include log.lua
end
if uses_packed then
    -- include packed.lua
end
if uses_buckets then
    -- include buckets.lua
end

for l = 1, count do
    local letter = limits[l].format
    limits[l].format = letter == 108 and log or letter == 112 and packed or buckets
end

-- ---- The tasks

if task == ':settle' then
    -- include settle.lua
elseif task == ':try' then
    -- include try.lua
elseif not is_check then
    -- include client.lua
end

-- include check.lua
