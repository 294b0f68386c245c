-- Where a word stands: word stems, and pairs of letters of scripts that have no spaces.
CREATE TABLE memory_term (
    project_id BIGINT NOT NULL,
    kind       TEXT    NOT NULL,
    number     BIGINT NOT NULL,
    term       TEXT    COLLATE "C" NOT NULL,
    at_ms      BIGINT NOT NULL,
    iteration  BIGINT NOT NULL,
    PRIMARY KEY (project_id, kind, number, term),
    FOREIGN KEY (project_id, kind, number) REFERENCES record (project_id, kind, number)
);
-- The newest places of a term are one walk along it.
CREATE INDEX memory_place ON memory_term (project_id, term, at_ms, kind, number, iteration);

-- Every term once, and what each becomes when one letter is left out: a misspelt word meets the right one there.
CREATE TABLE memory_near (
    project_id BIGINT NOT NULL,
    near       TEXT    COLLATE "C" NOT NULL,
    term       TEXT    COLLATE "C" NOT NULL,
    PRIMARY KEY (project_id, near, term)
);
