-- People who have proven who they are, in a browser or at a terminal. The secret that says so again is kept nowhere: `hash` is its
-- SHA-256. In a database of one machine's user, this table is used in the database of the server alone.
CREATE TABLE login (
    hash          TEXT    NOT NULL PRIMARY KEY,
    -- The name and not the account: a server with one database for each project has one login for all of them.
    user_name     TEXT    NOT NULL,
    -- How it was proven: `link` or `openid`.
    how           TEXT    NOT NULL,
    created_at_ms INTEGER NOT NULL,
    used_at_ms    INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
);
CREATE INDEX login_user ON login (user_name);

-- Links that sign somebody in, once.
CREATE TABLE login_link (
    hash          TEXT    NOT NULL PRIMARY KEY,
    user_name     TEXT    NOT NULL,
    expires_at_ms INTEGER NOT NULL
);
