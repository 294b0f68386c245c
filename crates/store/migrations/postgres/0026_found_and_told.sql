-- The rows of a call, in their order. Without the number in the index, SQLite follows the order and reads every row of the project.
DROP INDEX audit_call;
CREATE INDEX audit_call ON audit (project_id, call_id, seq);
DROP INDEX history_call;
CREATE INDEX history_call ON history (project_id, call_id, kind, number, version);
-- The rows of a session, also of one that is long past.
CREATE INDEX audit_session ON audit (project_id, session_id, seq) WHERE session_id IS NOT NULL;
-- An ask has no row in the audit while its call waits: whoever listens hears of it at once, too.
CREATE TRIGGER ask_is_told AFTER INSERT OR UPDATE ON ask FOR EACH ROW EXECUTE FUNCTION tell_of_events();
