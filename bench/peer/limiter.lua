-- The same limit as one would write it with nginx-Lua: pooled connections, the script sent
-- once and called by its digest, the same headers.

local redis = require "nginx.redis"

local MAX = 1000000

local limiter = {}
local port, script, digest

-- Once, before there are workers.
function limiter.init(redis_port, path)
    local file = assert(io.open(path))
    script = file:read("*a")
    file:close()
    port = redis_port
end

local function call(connection, ...)
    if not digest then
        digest = connection:script("load", script)
    end

    local reply, err = connection:evalsha(digest, 1, ...)

    if not reply and err and err:sub(1, 8) == "NOSCRIPT" then
        digest = connection:script("load", script)
        reply, err = connection:evalsha(digest, 1, ...)
    end

    return reply, err
end

function limiter.check(window_ms)
    local connection = redis:new()
    connection:set_timeout(2000)

    if not connection:connect("127.0.0.1", port) then
        return ngx.exit(503)
    end

    local reply = call(connection, "rate_limit:lua:" .. ngx.var.arg_client, ngx.now() * 1000, window_ms,
        MAX, ngx.var.request_id)

    if not reply then
        return ngx.exit(503)
    end

    connection:set_keepalive(60000, 256)

    local headers = ngx.header
    headers["X-RateLimit-Limit"] = MAX
    headers["X-RateLimit-Remaining"] = MAX - reply[2]
    headers["X-RateLimit-Reset"] = reply[1] == 1 and math.ceil(window_ms / 1000) or reply[3]

    if reply[1] == 0 then
        headers["Retry-After"] = reply[3]
        return ngx.exit(429)
    end
end

return limiter
