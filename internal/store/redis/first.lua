-- Says when the first entry of an outbox was claimed, in ms; false: empty.
-- KEYS: 1 outbox
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if not first then
  return false
end
return first[2][4] or string.match(first[1], '^%d+')
