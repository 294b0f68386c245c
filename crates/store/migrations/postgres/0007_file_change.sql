-- What file tools changed in the workspace, written down before each change: whether it happened is told by the file.
CREATE TABLE file_change (
    project_id    BIGINT NOT NULL REFERENCES project (id),
    number        BIGINT NOT NULL,
    call_id       TEXT    NOT NULL,
    session_id    TEXT,
    at_ms         BIGINT NOT NULL,
    path          TEXT    NOT NULL,
    -- Where it was moved to.
    moved_to      TEXT,
    -- Hash and permissions of what was there; NULL: nothing. A hash without a content: it was too large to be kept.
    former_sha256 TEXT,
    former_mode   BIGINT,
    -- Hash of what is there after; NULL: nothing.
    after_sha256  TEXT,
    PRIMARY KEY (project_id, number)
);
CREATE INDEX file_change_call ON file_change (project_id, call_id, number);
CREATE INDEX file_change_session ON file_change (project_id, session_id, number) WHERE session_id IS NOT NULL;
-- A content goes with the last change that knows it.
CREATE INDEX file_change_former ON file_change (project_id, former_sha256) WHERE former_sha256 IS NOT NULL;

-- Former contents, each once.
CREATE TABLE file_content (
    project_id BIGINT NOT NULL REFERENCES project (id),
    sha256     TEXT    NOT NULL,
    bytes      BIGINT NOT NULL,
    content    BYTEA   NOT NULL,
    PRIMARY KEY (project_id, sha256)
);
-- Their sum without a look at the contents.
CREATE INDEX file_content_bytes ON file_content (project_id, bytes);
