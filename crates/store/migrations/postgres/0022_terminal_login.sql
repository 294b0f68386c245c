-- Command lines of people who have proven who they are. As with logins of browsers, the secret is stored nowhere: `hash` is its SHA-256.
-- A table of its own: the secret of a terminal must not open pages, nor that of a browser a command line.
CREATE TABLE terminal_login (
    hash          TEXT    NOT NULL PRIMARY KEY,
    user_name     TEXT    NOT NULL,
    -- What the terminal calls itself: `ada@laptop`.
    terminal      TEXT    NOT NULL,
    created_at_ms BIGINT  NOT NULL,
    used_at_ms    BIGINT  NOT NULL,
    expires_at_ms BIGINT  NOT NULL
);
CREATE INDEX terminal_login_user ON terminal_login (user_name);

-- Terminals that wait until a person confirms them in a browser.
CREATE TABLE terminal_ask (
    -- What the person compares.
    code          TEXT    NOT NULL PRIMARY KEY,
    hash          TEXT    NOT NULL,
    terminal      TEXT    NOT NULL,
    expires_at_ms BIGINT  NOT NULL
);

-- Everybody who has ever proven who they are. While it is empty, the next command line is the first user's: `is_first` is unique, so that
-- there is one.
CREATE TABLE proven_user (
    user_name     TEXT    NOT NULL PRIMARY KEY,
    since_ms      BIGINT  NOT NULL,
    is_first      INTEGER UNIQUE
);
