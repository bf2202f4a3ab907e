-- Reads a claim that lies in another shard than the key it decides about.
-- KEYS: 1 its name
-- ARGV: 1 "1": a WAIT follows
-- Answers false: not there, {value}, or {} when the name holds another type.
local have = redis.pcall('GET', KEYS[1])
if not have then
  return false
elseif type(have) == 'table' then
  return {}
end
if ARGV[1] == '1' then
  local ttl = redis.call('PTTL', KEYS[1])
  if ttl > 0 then
    redis.call('PEXPIRE', KEYS[1], ttl) -- a write for WAIT to wait for
  end
end
return {have}
