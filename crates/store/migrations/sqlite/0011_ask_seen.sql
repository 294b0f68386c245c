-- Who has been shown all of an ask that is longer than one page, and where. The digest is of the text that was shown: a
-- yes counts only for what its person has seen.
CREATE TABLE ask_seen (
    project_id    INTEGER NOT NULL,
    number        INTEGER NOT NULL,
    account_id    INTEGER NOT NULL,
    digest        TEXT    NOT NULL,
    place         TEXT    NOT NULL,
    seen_at_ms    INTEGER NOT NULL,
    PRIMARY KEY (project_id, number, account_id, digest),
    FOREIGN KEY (project_id, number) REFERENCES ask (project_id, number) ON DELETE CASCADE
);
