-- Where an owner of a project wants its asks to be told. What signs the messages is made of a key of the operator's and the id.
CREATE TABLE webhook (
    project_id    BIGINT NOT NULL REFERENCES project (id),
    id            TEXT NOT NULL,
    url           TEXT NOT NULL,
    created_by    TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (project_id, id)
);
