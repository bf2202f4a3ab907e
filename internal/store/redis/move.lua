-- Moves up to n entries of an instance whose lease has ended to this one's
-- outbox, and forgets the instance when it has none left.
-- KEYS: 1 own outbox, 2 instances, 3 counters, 4 the other outbox
-- ARGV: 1 own instance, 2 the other one, 3 n, 4 bytes after which it stops
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ends = redis.call('ZSCORE', KEYS[2], ARGV[2])
if not ends or tonumber(ends) >= now then
  return 0 -- it is back, or somebody else was faster
end
local moved, bytes = 0, 0
local max = tonumber(ARGV[4])
for i = 1, tonumber(ARGV[3]) do
  local first = redis.call('XRANGE', KEYS[4], '-', '+', 'COUNT', 1)[1]
  if not first or bytes >= max then
    break
  end
  -- t: when it was claimed, which the new id does not tell.
  local id, fields = first[1], first[2]
  local claimed = fields[4] or string.match(id, '^%d+')
  redis.call('XADD', KEYS[1], '*', 'd', fields[2], 't', claimed)
  redis.call('XDEL', KEYS[4], id)
  moved, bytes = moved + 1, bytes + #fields[2]
end
local mine, theirs = 'b:' .. ARGV[1], 'b:' .. ARGV[2]
if moved > 0 then
  redis.call('HINCRBY', KEYS[3], mine, bytes)
  redis.call('HINCRBY', KEYS[3], theirs, 0 - bytes)
end
if redis.call('XLEN', KEYS[4]) == 0 then
  local left = tonumber(redis.call('HGET', KEYS[3], theirs) or 0) or 0
  if left ~= 0 then
    redis.call('HINCRBY', KEYS[3], 'bytes', 0 - left)
  end
  redis.call('HDEL', KEYS[3], theirs)
  redis.call('DEL', KEYS[4])
  redis.call('ZREM', KEYS[2], ARGV[2])
end
return moved
