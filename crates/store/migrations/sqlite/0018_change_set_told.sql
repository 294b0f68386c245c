-- The moment of the package whose texts the last validation told, where it found the set in conflict with them.
ALTER TABLE change_set ADD COLUMN told_moment INTEGER;
