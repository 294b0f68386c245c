-- The iteration that planning tools work in unless they are told another one.
ALTER TABLE project ADD COLUMN current_iteration INTEGER;

-- The last number given to each kind of record: an id is never used twice, not even after a delete.
CREATE TABLE counter (
    project_id INTEGER NOT NULL REFERENCES project (id),
    kind       TEXT    NOT NULL,
    value      INTEGER NOT NULL,
    PRIMARY KEY (project_id, kind)
);

-- What agents and people keep. `body` is the record's own content as JSON; `title` and `state` repeat what it says,
-- for queries.
CREATE TABLE record (
    project_id     INTEGER NOT NULL REFERENCES project (id),
    kind           TEXT    NOT NULL,
    number         INTEGER NOT NULL,
    version        INTEGER NOT NULL,
    -- 0: of the project as a whole.
    iteration      INTEGER NOT NULL,
    title          TEXT    NOT NULL,
    state          TEXT    NOT NULL,
    body           TEXT    NOT NULL,
    -- How many of the tasks it depends on are not completed.
    waits_on       INTEGER NOT NULL DEFAULT 0,
    effort_minutes INTEGER NOT NULL DEFAULT 0,
    -- How many names it carries that name nothing: an import may bring such.
    dangling       INTEGER NOT NULL DEFAULT 0,
    -- Who works on it, until when.
    holder         TEXT,
    holder_name    TEXT,
    lease_until_ms INTEGER,
    -- Of texts that count as the same, for what must not be kept twice.
    digest         TEXT,
    created_at_ms  INTEGER NOT NULL,
    updated_at_ms  INTEGER NOT NULL,
    PRIMARY KEY (project_id, kind, number)
);
-- Each list is one walk along an index: what is asked for comes first, then the number, which is the order of lists.
CREATE INDEX record_ready ON record (project_id, kind, iteration, state, waits_on, number);
CREATE INDEX record_state ON record (project_id, kind, iteration, state, number);
CREATE INDEX record_title ON record (project_id, kind, iteration, title, number);
CREATE INDEX record_lease ON record (project_id, kind, state, number) WHERE lease_until_ms IS NOT NULL;
CREATE INDEX record_digest ON record (project_id, kind, digest, number) WHERE digest IS NOT NULL;
CREATE INDEX record_dangling ON record (project_id, kind, number) WHERE dangling > 0;

-- Which record refers to which, by which field. Made from the bodies; both ends exist.
CREATE TABLE link (
    project_id  INTEGER NOT NULL,
    from_kind   TEXT    NOT NULL,
    from_number INTEGER NOT NULL,
    field       TEXT    NOT NULL,
    to_kind     TEXT    NOT NULL,
    to_number   INTEGER NOT NULL,
    PRIMARY KEY (project_id, from_kind, from_number, field, to_kind, to_number),
    FOREIGN KEY (project_id, from_kind, from_number) REFERENCES record (project_id, kind, number),
    FOREIGN KEY (project_id, to_kind, to_number) REFERENCES record (project_id, kind, number)
) WITHOUT ROWID;
CREATE INDEX link_to ON link (project_id, to_kind, to_number, from_kind, field, from_number);

-- Every version of every record, deleted ones too.
CREATE TABLE history (
    project_id INTEGER NOT NULL REFERENCES project (id),
    kind       TEXT    NOT NULL,
    number     INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    iteration  INTEGER NOT NULL,
    at_ms      INTEGER NOT NULL,
    account_id INTEGER NOT NULL,
    actor      TEXT    NOT NULL,
    call_id    TEXT    NOT NULL,
    change     TEXT    NOT NULL,
    why        TEXT,
    body       TEXT    NOT NULL,
    PRIMARY KEY (project_id, kind, number, version)
);
