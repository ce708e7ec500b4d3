-- The same limit as one would write it with nginx-Lua, with the same headers.

local Script = require "script"

local MAX = 1000000

local limiter = {}
local script

-- Once, before there are workers.
function limiter.init(redis_port, path)
    script = Script.new(redis_port, path)
end

function limiter.check(window_ms)
    local reply = script:call("rate_limit:lua:" .. ngx.var.arg_client, ngx.now() * 1000, window_ms, MAX,
        ngx.var.request_id)

    if not reply then
        return ngx.exit(503)
    end

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
