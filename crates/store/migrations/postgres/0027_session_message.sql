-- What people say to sessions that are at work. A row waits until the process that runs the session writes it down as a step, and goes
-- in the same commit: it is heard once.
CREATE TABLE session_message (
    project_id BIGINT NOT NULL,
    session_id TEXT    NOT NULL,
    number     BIGINT NOT NULL,
    at_ms      BIGINT NOT NULL,
    text       TEXT    NOT NULL,
    PRIMARY KEY (project_id, session_id, number),
    FOREIGN KEY (project_id, session_id) REFERENCES agent_session (project_id, id)
);
