-- For wrk: many clients that take turns, evenly, in an order that is no order. Arguments:
-- the prefix of their names, how many there are, and how many have had their turn before.
-- The result is one line of JSON.

local head, count
local tail = " HTTP/1.1\r\nHost: bench\r\n\r\n"
local current
local stride = 7919  -- a prime, so that every client has its turn

function init(args)
    head = "GET " .. wrk.path .. "?client=" .. args[1]
    count = tonumber(args[2])
    current = args[3] * stride % count
end

function request()
    current = (current + stride) % count
    return head .. current .. tail
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        '{"requests":%d,"seconds":%.6f,"p50_us":%d,"p99_us":%d,"not_2xx":%d,"broken":%d}',
        summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
        errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
