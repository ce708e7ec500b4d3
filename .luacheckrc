-- What luacheck has to know of the Lua files: see make lint.

std = 'lua51'
max_line_length = 130
color = false

-- what Redis gives to scripts
read_globals = { 'redis', 'struct', 'KEYS', 'ARGV' }

-- these run in nginx; the others beside them in Redis
files['bench/peer/limiter.lua'] = { std = '+ngx_lua' }
files['bench/peer/inexact.lua'] = { std = '+ngx_lua' }

-- this one in wrk, which calls some of its functions by their names
files['bench/clients.lua'] = { read_globals = { 'wrk' }, globals = { 'init', 'request', 'done' } }

-- this one is a test's
files['t/lua/*.lua'] = { std = 'lua54' }
