-- What happens to sessions of agents, in one numbering with the audit: `number` is how many rows of the audit and how many of these
-- rows there are up to this one. A row of the audit needs no number here, its own one and the rows before it make it, so the audit
-- is written as before. Whoever writes a row holds the project's chain (`audit_head`), so numbers are committed in their order.
CREATE TABLE session_event (
    project_id INTEGER NOT NULL REFERENCES project (id),
    number     INTEGER NOT NULL,
    -- The last row of the audit before it.
    audit_seq  INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    session_id TEXT    NOT NULL,
    -- `state` or `step`.
    event      TEXT    NOT NULL,
    -- The state, or the name of the step.
    name       TEXT    NOT NULL,
    -- The number of the step in its session.
    step       INTEGER,
    -- What else is told of it, as JSON: no texts of people, models or files.
    facts      TEXT    NOT NULL,
    PRIMARY KEY (project_id, number)
);
