-- A workspace that toolhost knows. The root is a host path: it never leaves the host.
CREATE TABLE project (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    root          TEXT    NOT NULL UNIQUE,
    name          TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL
);
