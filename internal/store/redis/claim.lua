-- Claims a batch of keys and puts the events of the new ones into the outbox.
-- KEYS: 1 outbox, 2 instances, 3 counters, 4... one claim each
-- ARGV: 1 instance, 2 lease ms, 3 max events, 4 max bytes,
--       then for each claim: value without the entry's id, ttl ms, event
-- Answers for each claim: {"n", id} new, {"o", value, id} own token again (id
-- empty: settled or adopted), {"d", value} duplicate, {"f"} outbox full,
-- {"u"} not a value of ours.

-- First, because it is refused when memory is short, before anything is
-- written; and so that no outbox is ever unregistered.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])

local counts = redis.call('HMGET', KEYS[3], 'events', 'bytes')
local had_events, had_bytes = tonumber(counts[1] or 0) or 0, tonumber(counts[2] or 0) or 0
local events, bytes = 0, 0
local max_events, max_bytes = tonumber(ARGV[3]), tonumber(ARGV[4])

local out = {}
for i = 4, #KEYS do
  local a = 5 + (i - 4) * 3
  local value, ttl, event = ARGV[a], ARGV[a + 1], ARGV[a + 2]
  local have = redis.pcall('GET', KEYS[i])
  local answer
  if type(have) == 'table' then -- an error: the key holds another type
    answer = {'u'}
  elseif not have then
    if had_events + events + 1 > max_events or had_bytes + bytes + #event > max_bytes then
      answer = {'f'}
    else
      local id = redis.call('XADD', KEYS[1], '*', 'd', event)
      redis.call('SET', KEYS[i], value .. id, 'PX', ttl)
      events, bytes = events + 1, bytes + #event
      answer = {'n', id}
    end
  elseif string.sub(have, 1, 3) ~= string.sub(value, 1, 3) then
    answer = {'u'}
  elseif string.sub(have, 4, 19) ~= string.sub(value, 4, 19) then
    answer = {'d', have}
  else
    -- Ours: is the entry still there? An adopted one has moved, and its id may
    -- name another event here, so the event must be the same one.
    answer = {'o', have, ''}
    local id = string.match(have, '@(%d+%-%d+)$')
    if id then
      local found = redis.pcall('XRANGE', KEYS[1], id, id)
      if not found.err and #found > 0 and found[1][2][2] == event then
        answer[3] = id
      end
    end
  end
  out[#out + 1] = answer
end

if events > 0 then
  redis.call('HINCRBY', KEYS[3], 'events', events)
  redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
  redis.call('HINCRBY', KEYS[3], 'b:' .. ARGV[1], bytes)
end
return out
