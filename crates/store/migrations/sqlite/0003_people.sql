-- People who use the host. Who may do what in a project is its membership.
CREATE TABLE account (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    name          TEXT    NOT NULL UNIQUE,
    created_at_ms INTEGER NOT NULL
);

-- owner: manages; editor: reads and writes; viewer: reads.
CREATE TABLE member (
    project_id INTEGER NOT NULL REFERENCES project (id),
    account_id INTEGER NOT NULL REFERENCES account (id),
    role       TEXT    NOT NULL CHECK (role IN ('owner', 'editor', 'viewer')),
    PRIMARY KEY (project_id, account_id)
);

-- Projects from before there were users belong to the machine's user.
INSERT INTO account (name, created_at_ms) SELECT 'local', min(created_at_ms) FROM project HAVING count(*) > 0;
INSERT INTO member (project_id, account_id, role) SELECT project.id, account.id, 'owner' FROM project, account;
