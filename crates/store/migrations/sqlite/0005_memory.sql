-- Where a word stands: word stems, and pairs of letters of scripts that have no spaces.
CREATE TABLE memory_term (
    project_id INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    term       TEXT    COLLATE BINARY NOT NULL,
    at_ms      INTEGER NOT NULL,
    iteration  INTEGER NOT NULL,
    PRIMARY KEY (project_id, kind, number, term),
    FOREIGN KEY (project_id, kind, number) REFERENCES record (project_id, kind, number)
) WITHOUT ROWID;
-- The newest places of a term are one walk along it.
CREATE INDEX memory_place ON memory_term (project_id, term, at_ms, kind, number, iteration);

-- Every term once, and what each becomes when one letter is left out: a misspelt word meets the right one there.
CREATE TABLE memory_near (
    project_id INTEGER NOT NULL,
    near       TEXT    COLLATE BINARY NOT NULL,
    term       TEXT    COLLATE BINARY NOT NULL,
    PRIMARY KEY (project_id, near, term)
) WITHOUT ROWID;
