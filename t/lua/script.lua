-- script.lua SCRIPT: runs the script as Redis would, in this Lua, for every line that it reads
--
--   eval  how many keys  key…  argument…    prints the reply
--   call  command  argument…                in what stands in for Redis
--   show  key                               what the key holds, and for how many milliseconds
--
-- Words are separated by tabs. What a command of Redis is given has to be a string or a whole
-- number, whose text is the same in all Luas; a float is an error here.

local values, lives = {}, {}        -- by key: a string, or { member = score }; milliseconds
local commands = {}

local function holds(key, kind)
    local value = values[key]
    if value ~= nil and type(value) ~= kind then
        error('WRONGTYPE')
    end
    return value
end

-- Members and scores of a sorted set, in order.
local function sorted(key)
    local entries = {}
    for member, score in pairs(holds(key, 'table') or {}) do
        entries[#entries + 1] = { member, score }
    end
    table.sort(entries, function(a, b) return a[2] < b[2] or a[2] == b[2] and a[1] < b[1] end)
    return entries
end

local function remove(key, members)
    local set, removed = holds(key, 'table') or {}, 0
    for _, member in ipairs(members) do
        removed = removed + (set[member] and 1 or 0)
        set[member] = nil
    end
    if values[key] and not next(set) then
        values[key], lives[key] = nil, nil
    end
    return removed
end

local function between(key, from, to)
    local members = {}
    local low, high = tonumber((string.gsub(from, '^%(', ''))) or -math.huge, tonumber(to) or math.huge
    for _, entry in ipairs(sorted(key)) do
        if entry[2] <= high and (entry[2] > low or entry[2] == low and string.sub(from, 1, 1) ~= '(') then
            members[#members + 1] = entry[1]
        end
    end
    return members
end

local function ranked(key, from, to)
    local entries = sorted(key)
    from, to = math.tointeger(from), math.tointeger(to)
    return table.move(entries, math.max(from < 0 and #entries + from + 1 or from + 1, 1),
        math.min(to < 0 and #entries + to + 1 or to + 1, #entries), 1, {})
end

function commands.ZADD(key, ...)
    local words, set = { ... }, holds(key, 'table')
    if words[1] == 'XX' then
        return 0
    end
    set = set or {}
    values[key] = set
    for n = 1, #words, 2 do
        set[words[n + 1]] = math.tointeger(words[n])
    end
    return #words / 2
end

function commands.ZRANGE(key, from, to, with_scores)
    local reply = {}
    for _, entry in ipairs(ranked(key, from, to)) do
        reply[#reply + 1] = entry[1]
        reply[#reply + 1] = with_scores and string.format('%d', entry[2])
    end
    return reply
end

function commands.ZREMRANGEBYRANK(key, from, to)
    local members = {}
    for _, entry in ipairs(ranked(key, from, to)) do
        members[#members + 1] = entry[1]
    end
    return remove(key, members)
end

function commands.ZCARD(key) return #sorted(key) end
function commands.ZCOUNT(key, from, to) return #between(key, from, to) end
function commands.ZREM(key, ...) return remove(key, { ... }) end
function commands.ZREMRANGEBYSCORE(key, from, to) return remove(key, between(key, from, to)) end

function commands.SET(key, value, px, milliseconds)
    values[key], lives[key] = value, px and math.tointeger(milliseconds)
    return { ok = 'OK' }
end

function commands.GETRANGE(key, from, to)
    return string.sub(holds(key, 'string') or '', math.tointeger(from) + 1, math.tointeger(to) + 1)
end

function commands.SETRANGE(key, from, text)
    local value = holds(key, 'string') or ''
    from = math.tointeger(from)
    value = value .. string.rep('\0', from - #value)
    values[key] = string.sub(value, 1, from) .. text .. string.sub(value, from + #text + 1)
    return #values[key]
end

function commands.APPEND(key, text)
    values[key] = (holds(key, 'string') or '') .. text
    return #values[key]
end

function commands.STRLEN(key) return #(holds(key, 'string') or '') end

function commands.PEXPIRE(key, milliseconds)
    lives[key] = values[key] and math.tointeger(milliseconds)
    return values[key] and 1 or 0
end

function commands.UNLINK(key)
    values[key], lives[key] = nil, nil
    return 1
end

local function call(name, ...)
    local words = { ... }
    for n, word in ipairs(words) do
        if type(word) ~= 'string' and math.type(word) ~= 'integer' then
            error(name .. ' is given ' .. tostring(word))
        end
        words[n] = tostring(word)
    end
    return commands[name](table.unpack(words))
end

local redis = {
    call = call,
    pcall = function(...)
        local is_good, reply = pcall(call, ...)
        return is_good and reply or { err = reply }
    end,
    error_reply = function(text) return { err = text } end,
}

local file = assert(io.open(arg[1]))
local text = file:read('a')
file:close()

-- What Redis gives to scripts, which may make no globals.
local function environment(keys, words)
    local given = { redis = redis, struct = { pack = string.pack, unpack = string.unpack }, KEYS = keys, ARGV = words }
    for name in string.gmatch('string table math tonumber tostring type ipairs pairs next select error', '%a+') do
        given[name] = _G[name]
    end
    return setmetatable({}, {
        __index = given,
        __newindex = function(_, name) error('the script makes a global ' .. name) end,
    })
end

local function hex(bytes)
    return (string.gsub(bytes, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end

local function text_of(reply)
    if type(reply) == 'string' then
        return 'string ' .. hex(reply)
    elseif type(reply) == 'number' then
        return 'number ' .. string.format('%d', reply // 1)
    elseif reply.err then
        return 'error: ' .. reply.err
    end
    local items = {}
    for n, item in ipairs(reply) do
        items[n] = type(item) == 'number' and string.format('%d', item // 1) or item
    end
    return 'table ' .. table.concat(items, ' ')
end

local does = {}

function does.eval(words)
    local count = math.tointeger(words[1])
    local keys, args = table.move(words, 2, count + 1, 1, {}), table.move(words, count + 2, #words, 1, {})
    local is_good, reply = pcall(assert(load(text, '@script', 't', environment(keys, args))))
    return is_good and text_of(reply) or 'error: ' .. tostring(reply)
end

function does.call(words)
    call(table.unpack(words))
    return 'called'
end

function does.show(words)
    local value, shown = values[words[1]], {}
    if type(value) == 'string' then
        shown[1] = hex(value)
    else
        for _, entry in ipairs(sorted(words[1])) do
            shown[#shown + 1] = entry[1] .. ' ' .. entry[2]
        end
    end
    return tostring(lives[words[1]]) .. ' ' .. table.concat(shown, ' ')
end

for line in io.lines() do
    local words = {}
    for word in string.gmatch(line .. '\t', '([^\t]*)\t') do
        words[#words + 1] = word
    end
    print(does[table.remove(words, 1)](words))
end
