-- One row an event and group. No index on state, done_at or updated_at: the
-- update from running to done then touches no index.
CREATE TABLE {p}inbox (
    digest      BLOB    NOT NULL,            -- first 16 bytes of SHA-256 of the full key
    grp         TEXT    NOT NULL,
    source      TEXT    NOT NULL,
    key         BLOB    NOT NULL,            -- the full key: any bytes
    type        TEXT    NOT NULL,            -- escaped, as patterns match it
    type_raw    BLOB    NOT NULL,            -- as the provider wrote it, where that differs
    state       TEXT    NOT NULL,
    token       BLOB    NOT NULL,            -- of the latest lease
    lease_until INTEGER NOT NULL DEFAULT 0,
    due         INTEGER NOT NULL DEFAULT 0,  -- of a retrying event
    attempt     INTEGER NOT NULL DEFAULT 0,  -- within the generation
    attempts    INTEGER NOT NULL DEFAULT 0,  -- in all
    crashes     INTEGER NOT NULL DEFAULT 0,  -- within the generation
    generation  INTEGER NOT NULL DEFAULT 0,
    run         INTEGER NOT NULL DEFAULT 0,
    received_at INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    done_at     INTEGER NOT NULL DEFAULT 0,  -- done, discarded or purged; the TTL counts from here
    last_error  TEXT    NOT NULL DEFAULT '',
    notes       TEXT    NOT NULL DEFAULT '', -- the timeline, one JSON object a line
    PRIMARY KEY (digest, grp)
) STRICT, WITHOUT ROWID;

CREATE INDEX {p}inbox_received ON {p}inbox (received_at);

CREATE TABLE {p}steps (
    digest   BLOB    NOT NULL,
    grp      TEXT    NOT NULL,
    run      INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    state    TEXT    NOT NULL,
    attempts INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    token    BLOB    NOT NULL, -- of the lease that wrote it last
    detail   TEXT    NOT NULL DEFAULT '',
    PRIMARY KEY (digest, grp, run, name)
) STRICT, WITHOUT ROWID;

-- The dead letters, each with all that a replay needs: a row stands here
-- exactly as long as its event is dead in the inbox.
CREATE TABLE {p}dead (
    digest       BLOB    NOT NULL,
    grp          TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    key          BLOB    NOT NULL,
    type         TEXT    NOT NULL,
    type_raw     BLOB    NOT NULL,
    content_type BLOB    NOT NULL,
    body         BLOB    NOT NULL,
    headers      TEXT    NOT NULL, -- JSON object
    context      BLOB    NOT NULL,
    traceparent  BLOB    NOT NULL,
    unmatched    TEXT    NOT NULL,
    parked       TEXT    NOT NULL,
    received_at  INTEGER NOT NULL,
    reason       TEXT    NOT NULL,
    step         TEXT    NOT NULL,
    error        TEXT    NOT NULL,
    error_print  TEXT    NOT NULL, -- the error without its numbers, ids and quoted values
    attempts     INTEGER NOT NULL,
    generation   INTEGER NOT NULL,
    run          INTEGER NOT NULL,
    dead_at      INTEGER NOT NULL,
    PRIMARY KEY (digest, grp)
) STRICT;

CREATE INDEX {p}dead_oldest ON {p}dead (dead_at, digest, grp);
CREATE INDEX {p}dead_group ON {p}dead (grp, dead_at, digest);
