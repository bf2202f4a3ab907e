-- When a step with an effect outside the database was started first: how long
-- the target has had the key.
ALTER TABLE {p}steps ADD COLUMN first_at bigint NOT NULL DEFAULT 0;

-- The values of once_per. "held" while an effect outside is under way.
CREATE TABLE {p}once (
    grp    text   NOT NULL,
    step   text   NOT NULL,
    value  bytea  NOT NULL, -- first 16 bytes of its SHA-256
    shown  text   NOT NULL, -- its beginning, for people
    state  text   NOT NULL, -- held, done
    digest bytea  NOT NULL, -- the event that has it
    key    bytea  NOT NULL,
    at     bigint NOT NULL,
    PRIMARY KEY (grp, step, value)
);

CREATE INDEX once_at ON {p}once (at);

-- The newest version of each entity that a step with only_latest has applied.
CREATE TABLE {p}latest (
    grp     text   NOT NULL,
    step    text   NOT NULL,
    entity  bytea  NOT NULL, -- first 16 bytes of its SHA-256
    shown   text   NOT NULL,
    version text   NOT NULL, -- empty: none yet
    key     bytea  NOT NULL, -- the event that brought it
    holder  bytea  NOT NULL, -- digest of the event whose effect outside was started last
    at      bigint NOT NULL,
    PRIMARY KEY (grp, step, entity)
);

CREATE INDEX latest_at ON {p}latest (at);

-- The groups that an operator has paused.
CREATE TABLE {p}paused (
    grp    text   NOT NULL PRIMARY KEY,
    reason text   NOT NULL,
    at     bigint NOT NULL
);

-- What one process at a time may do.
CREATE TABLE {p}duties (
    name  text   NOT NULL PRIMARY KEY,
    token bytea  NOT NULL,
    until bigint NOT NULL
);
