-- Workflow packages. The bytes of their files are the truth; the other tables of a package say what is in them, so that
-- a question reads the few files it is about.
CREATE TABLE package (
    project_id      BIGINT NOT NULL PRIMARY KEY REFERENCES project (id),
    -- Grows with every change of a file; what was at an earlier moment can be told from `package_change`.
    moment          BIGINT NOT NULL,
    -- The manifest without its list of workflows, as JSON.
    head            TEXT    NOT NULL,
    agents_path     TEXT,
    agents_revision TEXT    NOT NULL,
    assets_revision TEXT    NOT NULL,
    -- The last number given to a workflow: none is used twice.
    last_number     BIGINT NOT NULL
);

CREATE TABLE package_file (
    project_id BIGINT NOT NULL REFERENCES project (id),
    path       TEXT    NOT NULL COLLATE "C",
    sha256     TEXT    NOT NULL,
    content    BYTEA   NOT NULL,
    PRIMARY KEY (project_id, path)
);

CREATE TABLE package_workflow (
    project_id BIGINT NOT NULL REFERENCES project (id),
    id         TEXT    NOT NULL COLLATE "C",
    number     BIGINT NOT NULL,
    -- Its place in the manifest: the order of the list, and a JSON pointer.
    position   BIGINT NOT NULL,
    pointer    TEXT    NOT NULL,
    path       TEXT    NOT NULL COLLATE "C",
    graph_path TEXT    NOT NULL COLLATE "C",
    -- What else the manifest says of it, as JSON.
    about      TEXT,
    steps      BIGINT NOT NULL,
    revision   TEXT    NOT NULL,
    PRIMARY KEY (project_id, id)
);
CREATE UNIQUE INDEX package_workflow_number ON package_workflow (project_id, number);
CREATE INDEX package_workflow_position ON package_workflow (project_id, position);

-- Names of steps and variables, and paths of step files: which workflows have one.
CREATE TABLE package_name (
    project_id BIGINT NOT NULL REFERENCES project (id),
    name       TEXT    NOT NULL COLLATE "C",
    workflow   TEXT    NOT NULL COLLATE "C",
    PRIMARY KEY (project_id, name, workflow)
);
CREATE INDEX package_name_workflow ON package_name (project_id, workflow);

-- What one unit (a workflow, the agents, an asset) refers to outside itself.
CREATE TABLE package_ref (
    project_id BIGINT NOT NULL REFERENCES project (id),
    -- Such as `agent:ada`.
    target     TEXT    NOT NULL COLLATE "C",
    -- Such as `workflow:main`, `agents`, `asset:assets/a.md`.
    unit       TEXT    NOT NULL COLLATE "C",
    -- How many, and which: a list as JSON.
    number     BIGINT NOT NULL,
    refs       TEXT    NOT NULL,
    PRIMARY KEY (project_id, target, unit)
);
CREATE INDEX package_ref_unit ON package_ref (project_id, unit);

-- What a revision was, and when: so that a change made against an older one can be merged.
CREATE TABLE package_revision (
    project_id BIGINT NOT NULL REFERENCES project (id),
    -- `agents`, `assets` or such as `workflow:main`.
    scope      TEXT    NOT NULL COLLATE "C",
    revision   TEXT    NOT NULL,
    moment     BIGINT NOT NULL,
    PRIMARY KEY (project_id, scope, revision, moment)
);

-- What each change of the files was: who made it and what was before, to undo it and to merge with it.
CREATE TABLE package_change (
    project_id    BIGINT NOT NULL REFERENCES project (id),
    moment        BIGINT NOT NULL,
    -- `import`, `apply`, `undo`.
    kind          TEXT    NOT NULL,
    account_id    BIGINT NOT NULL,
    by_name       TEXT    NOT NULL,
    call_id       TEXT    NOT NULL,
    -- The change set that was applied, and its operations (JSON, from 0); for an undo, the moment that it takes back.
    set_number    BIGINT,
    operations    TEXT,
    undoes        BIGINT,
    undone_by     BIGINT,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (project_id, moment)
);
CREATE TABLE package_former (
    project_id BIGINT NOT NULL REFERENCES project (id),
    moment     BIGINT NOT NULL,
    path       TEXT    NOT NULL COLLATE "C",
    -- NULL: there was no such file.
    former     BYTEA,
    PRIMARY KEY (project_id, moment, path)
);
CREATE INDEX package_former_path ON package_former (project_id, path, moment);

-- Change sets: what a session wants changed.
CREATE TABLE change_set (
    project_id    BIGINT NOT NULL REFERENCES project (id),
    number        BIGINT NOT NULL,
    session_id    TEXT    NOT NULL,
    -- The session and whose it is: two people may call theirs the same.
    overlay       TEXT    NOT NULL,
    account_id    BIGINT NOT NULL,
    by_name       TEXT    NOT NULL,
    -- `staged`, `validated`, `applied`, `rejected`.
    state         TEXT    NOT NULL,
    -- As it came (after the adapter of older shapes), and what the last validation said.
    body          TEXT    NOT NULL,
    report        TEXT,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    PRIMARY KEY (project_id, number)
);
CREATE INDEX change_set_overlay ON change_set (project_id, overlay, state, number);

CREATE TABLE change_operation (
    project_id BIGINT NOT NULL REFERENCES project (id),
    set_number BIGINT NOT NULL,
    position   BIGINT NOT NULL,
    -- Such as `step:main/step-01`.
    object     TEXT    NOT NULL COLLATE "C",
    -- `staged`, `applied`, `rejected`, `replaced` by a later one of the session that was applied.
    state      TEXT    NOT NULL,
    -- The object as it was when the change was begun and as it is to be, as JSON; NULL: it is not there.
    base       TEXT,
    wanted     TEXT,
    PRIMARY KEY (project_id, set_number, position)
);
CREATE INDEX change_operation_object ON change_operation (project_id, object, state);
