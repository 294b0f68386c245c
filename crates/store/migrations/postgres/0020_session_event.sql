-- What happens to sessions of agents, in one numbering with the audit: `number` is how many rows of the audit and how many of these
-- rows there are up to this one. A row of the audit needs no number here, its own one and the rows before it make it, so the audit
-- is written as before. Whoever writes a row holds the project's chain (`audit_head`), so numbers are committed in their order.
CREATE TABLE session_event (
    project_id BIGINT NOT NULL REFERENCES project (id),
    number     BIGINT NOT NULL,
    -- The last row of the audit before it.
    audit_seq  BIGINT NOT NULL,
    at_ms      BIGINT NOT NULL,
    session_id TEXT    NOT NULL,
    -- `state` or `step`.
    event      TEXT    NOT NULL,
    -- The state, or the name of the step.
    name       TEXT    NOT NULL,
    -- The number of the step in its session.
    step       BIGINT,
    -- What else is told of it, as JSON: no texts of people, models or files.
    facts      TEXT    NOT NULL,
    PRIMARY KEY (project_id, number)
);

-- Wakes whoever listens. It is a hint and no message: a listener reads what is new by its number.
CREATE FUNCTION tell_of_events() RETURNS trigger AS $$
         BEGIN PERFORM pg_notify('toolhost_events', CAST(NEW.project_id AS TEXT)); RETURN NULL; END $$ LANGUAGE plpgsql;
CREATE TRIGGER audit_head_is_told AFTER INSERT OR UPDATE ON audit_head FOR EACH ROW EXECUTE FUNCTION tell_of_events();
CREATE TRIGGER session_event_is_told AFTER INSERT ON session_event FOR EACH ROW EXECUTE FUNCTION tell_of_events();
