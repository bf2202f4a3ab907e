-- The patterns that each group binds, or bound before and has not unbound.
CREATE TABLE {p}bindings (
    grp     TEXT NOT NULL,
    pattern TEXT NOT NULL,
    PRIMARY KEY (grp, pattern)
) STRICT;
