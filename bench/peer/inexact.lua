-- Limiters that others use, each a script with the same arguments: the key, the window in
-- microseconds and what it allows. They return 1 for a request that may pass, else 0.

local Script = require "script"

local inexact = {}
local scripts = {}

-- Once, before there are workers.
function inexact.init(redis_port, directory)
    for _, name in ipairs({ "fixed_window", "two_windows", "gcra" }) do
        scripts[name] = Script.new(redis_port, directory .. "/" .. name .. ".lua")
    end
end

function inexact.check(name, window_us, max)
    local reply = scripts[name]:call(name .. ":" .. ngx.var.arg_client, window_us, max)

    if not reply then
        return ngx.exit(503)
    end
    if reply == 0 then
        return ngx.exit(429)
    end
end

return inexact
