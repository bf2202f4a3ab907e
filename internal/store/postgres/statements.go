package postgres

import "strings"

// statements are the SQL texts for one schema.
type statements struct {
	version                           string
	insert, take, find                string
	pending, settle, recount, stats   string
	register, touch, ended, adopt     string
	expire, forget, orphans, warnings string
	recipe, setRecipe                 string
}

func makeStatements(schema string) statements {
	p := func(text string) string { return strings.ReplaceAll(text, "{p}", prefix(schema)) }
	return statements{
		version:   p(`SELECT coalesce(max(version), 0) FROM {p}store_version`),
		insert:    p(strings.ReplaceAll(sqlClaim, "{conflict}", "NOTHING")),
		take:      p(strings.ReplaceAll(sqlClaim, "{conflict}", sqlTakeOver)),
		find:      p(sqlFind),
		pending:   p(sqlPending),
		settle:    p(sqlSettle),
		recount:   p(sqlRecount),
		stats:     p(sqlStats),
		register:  p(sqlRegister),
		touch:     p(sqlTouch),
		ended:     p(sqlEnded),
		adopt:     p(sqlAdopt),
		expire:    p(sqlExpire),
		forget:    p(sqlForget),
		orphans:   p(sqlOrphans),
		warnings:  sqlWarnings,
		recipe:    p(`SELECT recipe FROM {p}recipes WHERE source = $1`),
		setRecipe: p(`INSERT INTO {p}recipes (source, recipe) VALUES ($1, $2) ON CONFLICT (source) DO UPDATE SET recipe = excluded.recipe`),
	}
}

// sqlClaim claims keys and puts the events of the new ones into the outbox. The
// digests are sorted and all different: batches that lock the same keys do it
// in one order. It returns the entry id of each key that was claimed.
//
// The arrays are unnested in the select list, where rows are made one at a
// time; in FROM they would first be stored, events and all.
const sqlClaim = `
WITH ins AS (
  INSERT INTO {p}claims AS c (digest, lookup, event_key, token, fingerprint, first_seen, expires, status, answer, owner, entry)
  SELECT unnest($1::bytea[]), unnest($2::bytea[]), unnest($3::bytea[]), unnest($4::bytea[]), unnest($5::bytea[]), $6::bigint,
         unnest($7::bigint[]), unnest($8::smallint[]), unnest($9::bytea[]), $10::bigint, unnest($11::bigint[])
  ON CONFLICT (digest) DO {conflict}
  RETURNING entry
), put AS (
  INSERT INTO {p}outbox (owner, id, at, size, event)
  SELECT $10::bigint, e.id, $6::bigint, octet_length(e.event), e.event
  FROM (SELECT unnest($12::bigint[]) AS id, unnest($13::bytea[]) AS event) e
  WHERE e.id IN (SELECT entry FROM ins)
)
SELECT entry FROM ins`

// sqlTakeOver takes an expired claim over. Of two that try at once the second
// waits, and then finds the claim in force. A claim in force is locked, though
// not changed, so this is for keys that were seen to be expired only.
const sqlTakeOver = `UPDATE SET lookup = excluded.lookup, event_key = excluded.event_key, token = excluded.token,
    fingerprint = excluded.fingerprint, first_seen = excluded.first_seen, expires = excluded.expires, status = excluded.status,
    answer = excluded.answer, owner = excluded.owner, entry = excluded.entry
  WHERE c.expires <= $6`

// sqlFind reads claims by digest; the last column says that the token is the
// claim's own and its entry is still in the outbox.
const sqlFind = `
SELECT i.n, c.lookup, c.event_key, c.token, c.fingerprint, c.first_seen, c.expires, c.status, c.answer, c.owner, c.entry,
       c.token = i.token AND EXISTS (SELECT 1 FROM {p}outbox o WHERE o.owner = c.owner AND o.id = c.entry)
FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS i (digest, token, n)
JOIN {p}claims c ON c.digest = i.digest`

// sqlPending reads a page that is bounded in bytes too: entries until the ones
// before them fill it, so that there is always at least one.
const sqlPending = `
SELECT id, event FROM (
  SELECT id, event, sum(size) OVER (ORDER BY id) - size AS before
  FROM (SELECT id, event, size FROM {p}outbox WHERE owner = $1 AND id > $2 ORDER BY id LIMIT $3) page
) sized
WHERE before < $4 ORDER BY id`

const sqlSettle = `
WITH gone AS (DELETE FROM {p}outbox WHERE owner = $1 AND id = ANY ($2::bigint[]) RETURNING size)
SELECT count(*), coalesce(sum(size), 0)::bigint FROM gone`

// sqlRegister makes or revives an instance. Each start has an epoch of its own
// that its entry ids begin with: no id is ever used twice.
const sqlRegister = `
INSERT INTO {p}instances AS i (name, lease_until, epoch)
VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', 1)
ON CONFLICT (name) DO UPDATE SET epoch = i.epoch + 1, lease_until = excluded.lease_until
RETURNING id, epoch`

// sqlTouch renews the lease, writes changes of the counts down, and reads what
// the others have.
const sqlTouch = `
UPDATE {p}instances SET lease_until = clock_timestamp() + $2 * interval '1 millisecond',
  events = greatest(events + $3, 0), bytes = greatest(bytes + $4, 0)
WHERE id = $1
RETURNING events, bytes,
  (SELECT coalesce(sum(o.events), 0)::bigint FROM {p}instances o WHERE o.id <> $1),
  (SELECT coalesce(sum(o.bytes), 0)::bigint FROM {p}instances o WHERE o.id <> $1)`

// sqlRecount sets the counts of an instance to what there is.
const sqlRecount = `
UPDATE {p}instances SET (events, bytes) =
  (SELECT count(*), coalesce(sum(size), 0) FROM {p}outbox WHERE owner = $1)
WHERE id = $1
RETURNING events, bytes`

// sqlStats looks at the first entry of each instance.
const sqlStats = `
SELECT min(f.at) FROM {p}instances i
CROSS JOIN LATERAL (SELECT at FROM {p}outbox WHERE owner = i.id ORDER BY id LIMIT 1) f`

const sqlEnded = `
SELECT i.id FROM {p}instances i
WHERE i.lease_until < clock_timestamp() AND i.id <> $1
  AND EXISTS (SELECT 1 FROM {p}outbox o WHERE o.owner = i.id)
ORDER BY i.lease_until LIMIT 16`

// sqlAdopt moves entries of an instance ($2) whose lease has ended to this one
// ($1). Its row stays locked meanwhile, so that it cannot come back, nor anyone
// else take the same entries.
const sqlAdopt = `
WITH ended AS (
  SELECT id FROM {p}instances WHERE id = $2 AND lease_until < clock_timestamp() FOR UPDATE SKIP LOCKED
), taken AS (
  SELECT o.id FROM {p}outbox o WHERE o.owner = (SELECT id FROM ended) ORDER BY o.id LIMIT $3 FOR UPDATE SKIP LOCKED
), numbered AS (
  SELECT id, row_number() OVER (ORDER BY id) AS n FROM taken
), moved AS (
  UPDATE {p}outbox o SET owner = $1, id = $4 + t.n FROM numbered t WHERE o.owner = $2 AND o.id = t.id RETURNING o.size
), sums AS (
  SELECT count(*) AS events, coalesce(sum(size), 0)::bigint AS bytes FROM moved
), less AS (
  UPDATE {p}instances i SET
    events = CASE WHEN s.events < $3 THEN 0 ELSE greatest(i.events - s.events, 0) END,
    bytes = CASE WHEN s.events < $3 THEN 0 ELSE greatest(i.bytes - s.bytes, 0) END
  FROM sums s WHERE i.id = (SELECT id FROM ended)
)
SELECT events, bytes FROM sums`

// sqlExpire removes claims by their place in the table, whatever the planner
// believes; $2 is where the last batch ended, so that dead index entries
// before it are not visited again.
const sqlExpire = `
WITH gone AS (
  DELETE FROM {p}claims WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {p}claims WHERE expires >= $2 AND expires <= $1 ORDER BY expires LIMIT $3 FOR UPDATE SKIP LOCKED))
  RETURNING expires
)
SELECT count(*), coalesce(max(expires), 0) FROM gone`

// sqlForget removes instances that ended long ago and left nothing.
const sqlForget = `
DELETE FROM {p}instances i
WHERE i.lease_until < now() - interval '1 day' AND NOT EXISTS (SELECT 1 FROM {p}outbox o WHERE o.owner = i.id)`

// sqlOrphans registers owners of entries that sqlForget has removed, should one
// have woken after all and claimed; the entries are then adopted. It hops from
// owner to owner in the index.
const sqlOrphans = `
WITH RECURSIVE owners (id) AS (
  (SELECT owner FROM {p}outbox ORDER BY owner LIMIT 1)
  UNION ALL
  SELECT (SELECT o.owner FROM {p}outbox o WHERE o.owner > owners.id ORDER BY o.owner LIMIT 1) FROM owners WHERE owners.id IS NOT NULL
)
INSERT INTO {p}instances (id, name, lease_until, epoch)
SELECT id, 'orphan ' || id, '-infinity', 1 FROM owners
WHERE id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {p}instances i WHERE i.id = owners.id)
ON CONFLICT DO NOTHING`

const sqlWarnings = `
SELECT name, setting FROM pg_catalog.pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'default_transaction_isolation', 'synchronous_standby_names')`
