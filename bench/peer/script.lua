-- A script in Redis, as one calls it from nginx-Lua: pooled connections, sent once and then
-- called by its digest.

local redis = require "nginx.redis"

local Script = {}
Script.__index = Script

-- Once, before there are workers.
function Script.new(redis_port, path)
    local file = assert(io.open(path))
    local text = file:read("*a")
    file:close()

    return setmetatable({ port = redis_port, text = text }, Script)
end

local function evaluate(self, connection, ...)
    if not self.digest then
        self.digest = connection:script("load", self.text)
    end

    local reply, err = connection:evalsha(self.digest, 1, ...)

    if not reply and err and err:sub(1, 8) == "NOSCRIPT" then
        self.digest = connection:script("load", self.text)
        reply, err = connection:evalsha(self.digest, 1, ...)
    end

    return reply, err
end

-- With a key and arguments. Nothing if Redis gives no answer.
function Script:call(...)
    local connection = redis:new()
    connection:set_timeout(2000)

    if not connection:connect("127.0.0.1", self.port) then
        return nil
    end

    local reply = evaluate(self, connection, ...)

    if reply then
        connection:set_keepalive(60000, 256)
    end

    return reply
end

return Script
