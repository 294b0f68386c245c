-- How much of the host the calls of a project may have, as an owner has set it. NULL, and no row: no limit of its own.
CREATE TABLE quota (
    project_id       INTEGER PRIMARY KEY REFERENCES project (id),
    -- Calls that may begin in a minute, of all hosts together.
    calls_per_minute INTEGER CHECK (calls_per_minute > 0),
    -- Calls that one host may have open at once.
    calls_open       INTEGER CHECK (calls_open > 0)
);
