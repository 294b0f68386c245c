-- Sessions of agents, and what they have come to step by step. A row is added for each step and none is ever changed, so
-- that any process can go on where another ended.
CREATE TABLE agent_session (
    project_id    INTEGER NOT NULL REFERENCES project (id),
    id            TEXT    NOT NULL,
    account_id    INTEGER NOT NULL,
    parent        TEXT,
    profile       TEXT    NOT NULL,
    model         TEXT    NOT NULL,
    -- The beginning of what was asked for.
    title         TEXT    NOT NULL,
    state         TEXT    NOT NULL,
    -- The stable code of what ended it.
    code          TEXT,
    -- What a person wants of the host that runs it.
    wanted        TEXT,
    -- The host that runs it. Each time it is taken the epoch rises, so that whoever had it before can write no more.
    host          TEXT,
    epoch         INTEGER NOT NULL,
    steps         INTEGER NOT NULL,
    -- Turns, tokens and cost so far, as JSON.
    tally         TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    updated_at_ms INTEGER NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE INDEX agent_session_recent ON agent_session (project_id, updated_at_ms);
CREATE INDEX agent_session_host ON agent_session (host) WHERE host IS NOT NULL;

CREATE TABLE agent_step (
    project_id INTEGER NOT NULL,
    session_id TEXT    NOT NULL,
    seq        INTEGER NOT NULL,
    step       TEXT    NOT NULL,
    at_ms      INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    PRIMARY KEY (project_id, session_id, seq),
    FOREIGN KEY (project_id, session_id) REFERENCES agent_session (project_id, id)
);
CREATE UNIQUE INDEX agent_step_name ON agent_step (project_id, session_id, step);
