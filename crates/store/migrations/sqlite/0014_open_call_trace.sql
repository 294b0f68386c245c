-- What a call leaves behind by which its end can be decided when its host dies.
ALTER TABLE open_call ADD COLUMN trace TEXT NOT NULL DEFAULT 'none';
