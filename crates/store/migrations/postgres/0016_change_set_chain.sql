-- The set whose apply took this one along; its own number where it was applied itself.
ALTER TABLE change_set ADD COLUMN applied_with BIGINT;
-- The rejected set whose text a `blocked` one contains.
ALTER TABLE change_set ADD COLUMN blocked_by BIGINT;
