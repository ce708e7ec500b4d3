-- Try: calls every command that the script may ever need on each key, whose counts are lost by
-- that, then answers as check.lua does. A command that the user may not call is an error, and
-- nothing is left behind without a time to live.
--
-- What needs memory comes first: a script that has changed something is given all it wants.

for l = 1, count do
    local key = keys[l]

    call('SET', key, 'x', 'PX', '1000')
    call('SETRANGE', key, '0', 'x')
    call('APPEND', key, 'x')
    call('PEXPIRE', key, '1000')
    call('GETRANGE', key, '0', '0')
    call('STRLEN', key)
    call('UNLINK', key)
    call('ZADD', key, 'XX', '0', 'x')
    call('ZRANGE', key, '0', '0')
    call('ZCARD', key)
    call('ZCOUNT', key, '0', '0')
    call('ZREM', key, 'x')
    call('ZREMRANGEBYRANK', key, '0', '0')
    call('ZREMRANGEBYSCORE', key, '0', '0')
end
