-- When a step with an effect outside the database was started first: how long
-- the target has had the key.
ALTER TABLE {p}steps ADD COLUMN first_at INTEGER NOT NULL DEFAULT 0;

-- The values of once_per. "held" while an effect outside is under way.
CREATE TABLE {p}once (
    grp    TEXT    NOT NULL,
    step   TEXT    NOT NULL,
    value  BLOB    NOT NULL, -- first 16 bytes of its SHA-256
    shown  TEXT    NOT NULL, -- its beginning, for people
    state  TEXT    NOT NULL, -- held, done
    digest BLOB    NOT NULL, -- the event that has it
    key    BLOB    NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (grp, step, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX {p}once_at ON {p}once (at);

-- The newest version of each entity that a step with only_latest has applied.
CREATE TABLE {p}latest (
    grp     TEXT    NOT NULL,
    step    TEXT    NOT NULL,
    entity  BLOB    NOT NULL, -- first 16 bytes of its SHA-256
    shown   TEXT    NOT NULL,
    version TEXT    NOT NULL, -- empty: none yet
    key     BLOB    NOT NULL, -- the event that brought it
    holder  BLOB    NOT NULL, -- digest of the event whose effect outside was started last
    at      INTEGER NOT NULL,
    PRIMARY KEY (grp, step, entity)
) STRICT, WITHOUT ROWID;

CREATE INDEX {p}latest_at ON {p}latest (at);

-- The groups that an operator has paused.
CREATE TABLE {p}paused (
    grp    TEXT    NOT NULL PRIMARY KEY,
    reason TEXT    NOT NULL,
    at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What one process at a time may do.
CREATE TABLE {p}duties (
    name  TEXT    NOT NULL PRIMARY KEY,
    token BLOB    NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
