-- The patterns that each group binds, or bound before and has not unbound.
CREATE TABLE {p}bindings (
    grp     text NOT NULL,
    pattern text NOT NULL,
    PRIMARY KEY (grp, pattern)
);
