-- Removes entries of this instance's outbox, and counts those off that were there.
-- KEYS: 1 outbox, 2 counters
-- ARGV: 1 instance, then for each entry: id, bytes
local events, bytes = 0, 0
for i = 2, #ARGV, 2 do
  if redis.call('XDEL', KEYS[1], ARGV[i]) == 1 then
    events, bytes = events + 1, bytes + ARGV[i + 1]
  end
end
if events == 0 then
  return 0
end
local mine = 'b:' .. ARGV[1]
local left = redis.call('HINCRBY', KEYS[2], mine, 0 - bytes)
redis.call('HINCRBY', KEYS[2], 'events', 0 - events)
if left ~= 0 and redis.call('XLEN', KEYS[1]) == 0 then
  bytes = bytes + left -- a wrong size cannot stay: an empty outbox has no bytes
  left = 0
end
if left == 0 then
  redis.call('HDEL', KEYS[2], mine)
end
redis.call('HINCRBY', KEYS[2], 'bytes', 0 - bytes)
return events
