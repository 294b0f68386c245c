-- What a person is asked: to allow a call, to look at a text, to answer a question. A row outlives every process, and
-- says who answered what, and which call used the answer: each answer is used once.
CREATE TABLE ask (
    project_id    INTEGER NOT NULL REFERENCES project (id),
    number        INTEGER NOT NULL,
    kind          TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    -- Of the call that waits, and of what it would do when it was shown.
    digest        TEXT    NOT NULL,
    effect_digest TEXT    NOT NULL,
    -- What reviews of one thing have in common; rounds are counted over it.
    subject       TEXT,
    round         INTEGER NOT NULL,
    account_id    INTEGER NOT NULL,
    session_id    TEXT,
    tool          TEXT    NOT NULL,
    -- The call whole, as JSON, so that it can be run by another process; and what the person is shown.
    call          TEXT    NOT NULL,
    shown         TEXT    NOT NULL,
    answer        TEXT,
    answered_by   TEXT,
    answered_at_ms INTEGER,
    -- The call that used the answer, and what became of it.
    used_by       TEXT,
    used_at_ms    INTEGER,
    outcome       TEXT,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    PRIMARY KEY (project_id, number)
);
CREATE INDEX ask_state ON ask (project_id, state, number);
CREATE INDEX ask_digest ON ask (project_id, digest, number);
CREATE INDEX ask_subject ON ask (project_id, subject, number) WHERE subject IS NOT NULL;

-- What a person has allowed for a while: calls of one tool whose arguments are like these.
CREATE TABLE permit (
    project_id    INTEGER NOT NULL REFERENCES project (id),
    number        INTEGER NOT NULL,
    tool          TEXT    NOT NULL,
    profile       TEXT    NOT NULL,
    -- Argument name to glob, as JSON.
    conditions    TEXT    NOT NULL,
    granted_by    TEXT    NOT NULL,
    ask_number    INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER,
    revoked_by    TEXT,
    PRIMARY KEY (project_id, number)
);
CREATE INDEX permit_tool ON permit (project_id, tool, expires_at_ms);
