-- Renews this instance's lease, and names up to n others whose lease has ended.
-- KEYS: 1 instances
-- ARGV: 1 instance, 2 lease ms, 3 n
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
if ARGV[3] == '0' then
  return {}
end
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '(' .. string.format('%.0f', now), 'LIMIT', 0, ARGV[3])
