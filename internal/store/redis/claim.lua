-- Claims a batch of keys and puts the events of the new ones into the outbox.
-- KEYS: 1 outbox, 2 instances, 3 counters, 4... the names of each claim: its
--       key's, then those of older recipes and older guards
-- ARGV: 1 instance, 2 lease ms, 3 max events, 4 max bytes, 5 max bytes of an
--       event that has the outbox to itself, 6 "1": a WAIT follows,
--       then for each claim: how many names it has, ttl ms, event, and for each
--       name the value without the entry's id (empty: the name is looked at only)
-- Answers for each claim: {"n", id} new, {"o", i, value, id} own token again (id
-- empty: settled or adopted), {"d", i, value} duplicate, {"f"} outbox full,
-- {"u", i, value} not a value of ours; i counts the claim's names from 0.

-- First, because it is refused when memory is short, before anything is
-- written; and so that no outbox is ever unregistered.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
redis.call('ZADD', KEYS[2], now + ARGV[2], ARGV[1])

local counts = redis.call('HMGET', KEYS[3], 'events', 'bytes')
local had_events, had_bytes = tonumber(counts[1] or 0) or 0, tonumber(counts[2] or 0) or 0
local events, bytes = 0, 0
local max_events, max_bytes, max_alone = tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local known -- a name that was found

local out = {}
local a, k = 7, 4
while a <= #ARGV do
  local n, ttl, event, value = tonumber(ARGV[a]), ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  local answer
  for i = 0, n - 1 do
    local have = redis.pcall('GET', KEYS[k + i])
    if type(have) == 'table' then -- an error: the key holds another type
      answer = {'u', i, ''}
    elseif have then
      if string.sub(have, 1, 3) ~= string.sub(value, 1, 3) then
        answer = {'u', i, have}
      elseif string.sub(have, 4, 19) ~= string.sub(value, 4, 19) then
        answer = {'d', i, have}
      else
        -- Ours: is the entry still there? An adopted one has moved, and its id may
        -- name another event here, so the event must be the same one.
        answer = {'o', i, have, ''}
        local id = string.match(have, '@(%d+%-%d+)$')
        if id then
          local found = redis.pcall('XRANGE', KEYS[1], id, id)
          if not found.err and #found > 0 and found[1][2][2] == event then
            answer[4] = id
          end
        end
      end
      known = KEYS[k + i]
    end
    if answer then
      break
    end
  end
  if not answer then
    local taken = had_bytes + bytes
    if had_events + events + 1 > max_events or #event > max_alone or taken > 0 and taken + #event > max_bytes then
      answer = {'f'}
    else
      local id = redis.call('XADD', KEYS[1], '*', 'd', event)
      for i = 0, n - 1 do
        if ARGV[a + 3 + i] ~= '' then
          redis.call('SET', KEYS[k + i], ARGV[a + 3 + i] .. id, 'PX', ttl)
        end
      end
      events, bytes = events + 1, bytes + #event
      answer = {'n', id}
    end
  end
  out[#out + 1] = answer
  a, k = a + 3 + n, k + n
end

if events > 0 then
  redis.call('HINCRBY', KEYS[3], 'events', events)
  redis.call('HINCRBY', KEYS[3], 'bytes', bytes)
  redis.call('HINCRBY', KEYS[3], 'b:' .. ARGV[1], bytes)
elseif known and ARGV[6] == '1' then
  -- WAIT waits for the last write of its connection: make one behind the claim.
  local ttl = redis.call('PTTL', known)
  if ttl > 0 then
    redis.call('PEXPIRE', known, ttl)
  end
end
return out
