-- What happened, append-only and chained per project: `hash` is SHA-256 over `prev_hash` and `body`, the row's canonical
-- JSON (RFC 8785). The other columns repeat what `body` says, for queries.
CREATE TABLE audit (
    project_id INTEGER NOT NULL REFERENCES project (id),
    seq        INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    call_id    TEXT    NOT NULL,
    session_id TEXT,
    event      TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    ok         INTEGER,
    body       TEXT    NOT NULL,
    prev_hash  TEXT    NOT NULL,
    hash       TEXT    NOT NULL,
    PRIMARY KEY (project_id, seq)
);
CREATE INDEX audit_call ON audit (project_id, call_id);

-- The chain's end, so that rows missing from its tail are noticed too.
CREATE TABLE audit_head (
    project_id INTEGER PRIMARY KEY REFERENCES project (id),
    seq        INTEGER NOT NULL,
    hash       TEXT    NOT NULL
);

-- Calls that have started and not finished, and the host that runs them.
CREATE TABLE open_call (
    project_id INTEGER NOT NULL REFERENCES project (id),
    call_id    TEXT    NOT NULL,
    host       TEXT    NOT NULL,
    tool       TEXT    NOT NULL,
    PRIMARY KEY (project_id, call_id)
);

CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
CREATE TRIGGER audit_is_never_removed BEFORE DELETE ON audit
BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END;
