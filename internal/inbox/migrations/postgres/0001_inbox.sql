-- One row an event and group. No index on state, done_at or updated_at: the
-- update from running to done then touches no index (HOT).
CREATE TABLE {p}inbox (
    digest      bytea   NOT NULL,            -- first 16 bytes of SHA-256 of the full key
    grp         text    NOT NULL,
    source      text    NOT NULL,
    key         bytea   NOT NULL,            -- the full key: any bytes
    type        text    NOT NULL,            -- escaped, as patterns match it
    type_raw    bytea   NOT NULL,            -- as the provider wrote it, where that differs
    state       text    NOT NULL,
    token       bytea   NOT NULL,            -- of the latest lease
    lease_until bigint  NOT NULL DEFAULT 0,
    due         bigint  NOT NULL DEFAULT 0,  -- of a retrying event
    attempt     integer NOT NULL DEFAULT 0,  -- within the generation
    attempts    integer NOT NULL DEFAULT 0,  -- in all
    crashes     integer NOT NULL DEFAULT 0,  -- within the generation
    generation  integer NOT NULL DEFAULT 0,
    run         integer NOT NULL DEFAULT 0,
    received_at bigint  NOT NULL,
    updated_at  bigint  NOT NULL,
    done_at     bigint  NOT NULL DEFAULT 0,  -- done, discarded or purged; the TTL counts from here
    last_error  text    NOT NULL DEFAULT '',
    notes       text    NOT NULL DEFAULT '', -- the timeline, one JSON object a line
    PRIMARY KEY (digest, grp)
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX inbox_received ON {p}inbox (received_at);

CREATE TABLE {p}steps (
    digest   bytea   NOT NULL,
    grp      text    NOT NULL,
    run      integer NOT NULL,
    name     text    NOT NULL,
    state    text    NOT NULL,
    attempts integer NOT NULL,
    at       bigint  NOT NULL,
    token    bytea   NOT NULL, -- of the lease that wrote it last
    detail   text    NOT NULL DEFAULT '',
    PRIMARY KEY (digest, grp, run, name)
);

-- The dead letters, each with all that a replay needs: a row stands here
-- exactly as long as its event is dead in the inbox.
CREATE TABLE {p}dead (
    digest       bytea   NOT NULL,
    grp          text    NOT NULL,
    source       text    NOT NULL,
    key          bytea   NOT NULL,
    type         text    NOT NULL,
    type_raw     bytea   NOT NULL,
    content_type bytea   NOT NULL,
    body         bytea   NOT NULL,
    headers      text    NOT NULL, -- JSON object
    context      bytea   NOT NULL,
    traceparent  bytea   NOT NULL,
    unmatched    text    NOT NULL,
    parked       text    NOT NULL,
    received_at  bigint  NOT NULL,
    reason       text    NOT NULL,
    step         text    NOT NULL,
    error        text    NOT NULL,
    error_print  text    NOT NULL, -- the error without its numbers, ids and quoted values
    attempts     integer NOT NULL,
    generation   integer NOT NULL,
    run          integer NOT NULL,
    dead_at      bigint  NOT NULL,
    PRIMARY KEY (digest, grp)
);

CREATE INDEX dead_oldest ON {p}dead (dead_at, digest, grp);
CREATE INDEX dead_group ON {p}dead (grp, dead_at, digest);
