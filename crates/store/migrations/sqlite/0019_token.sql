-- What programs prove with who they are, where a host is reached over a network. The secret itself is kept nowhere: `hash` is its
-- SHA-256, which is enough for 256 random bits.
CREATE TABLE token (
    project_id      INTEGER NOT NULL REFERENCES project (id),
    id              TEXT    NOT NULL,
    account_id      INTEGER NOT NULL REFERENCES account (id),
    -- What its owner calls it: the author of what it makes.
    name            TEXT    NOT NULL,
    hash            TEXT    NOT NULL UNIQUE,
    -- Words with a space between them; the first profile is the one that a client gets who names none.
    profiles        TEXT    NOT NULL,
    scopes          TEXT    NOT NULL,
    created_at_ms   INTEGER NOT NULL,
    expires_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER,
    revoked_at_ms   INTEGER,
    PRIMARY KEY (project_id, id)
);

-- Calls whose number the caller chose, so that asking again is no second call. What was answered is kept for whoever asks again; without
-- it, the call is under way, or the audit knows what became of it.
CREATE TABLE keyed_call (
    project_id INTEGER NOT NULL REFERENCES project (id),
    call_id    TEXT    NOT NULL,
    -- SHA-256 of who asked for what.
    digest     TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    -- The HTTP status and the text.
    status     INTEGER,
    answer     TEXT,
    PRIMARY KEY (project_id, call_id)
);
CREATE INDEX keyed_call_age ON keyed_call (at_ms);
