//! Calls that answered before they ended, kept for the session that made them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolhost_contract::{
    Background, Begun, BoxFuture, Call, ErrorKind, Heard, Listening, Outcome, Redactor, Success, ToolError,
    is_of_secret, no_session,
};

use crate::gate_state::RunSlot;
use crate::hooks::Hooks;
use crate::limits::Limits;

/// Most calls, of all sessions together, that have ended and whose end nobody has read yet. Of more the host forgets the oldest of
/// the session that has most of them, so that no session loses one to another that has more.
const ENDED_MAX: usize = 64;
/// Most bytes that those have printed and nobody has read. Of more the host forgets in the same way.
const ENDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes that all commands together which answer at their end may have kept, while they run and afterwards, beyond what each may
/// keep at least.
const CUT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What each of them may keep at least.
const CUT_BYTES_MIN: usize = 64 * 1024;

/// Calls in the background, of all sessions of a host.
#[derive(Default)]
pub(crate) struct Jobs {
    /// Bytes that are kept of commands that answer at their end.
    cut: Arc<AtomicUsize>,
    all: Mutex<Vec<Arc<Job>>>,
    /// How many there have been.
    count: AtomicU64,
}

/// Whose a call in the background is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owner {
    user: i64,
    project: i64,
    session: Option<String>,
    profile: String,
    persona: String,
}

impl Owner {
    /// `reader` is the session that reads it, where that is not the one of the call.
    fn of(call: &Call, reader: Option<&String>) -> Self {
        let (scope, caller) = (&call.scope, &call.caller);
        Self {
            user: scope.user_id,
            project: scope.project_id,
            session: reader.or(scope.session_id.as_ref()).cloned(),
            profile: caller.profile.clone(),
            persona: caller.persona.clone(),
        }
    }
}

/// One call in the background, or one whose output has no room in its answer.
pub(crate) struct Job {
    /// Whether it has answered before its end.
    pub(crate) goes_on: bool,
    owner: Owner,
    handle: String,
    printed: Mutex<Printed>,
    /// Something was printed, or it has ended.
    changed: Notify,
    outcome: OnceLock<Outcome>,
    /// Ends its command.
    cancel: CancellationToken,
}

/// What was printed and not read yet.
#[derive(Default)]
struct Printed {
    bytes: VecDeque<u8>,
    /// Bytes before those that had no room.
    left_out: u64,
    /// What was taken of it and is not read yet, without secrets.
    ready: String,
    /// Where the bytes are counted, if they share a limit with others.
    shared: Option<Arc<AtomicUsize>>,
}

impl Drop for Printed {
    fn drop(&mut self) {
        self.counted(|printed| printed.bytes.clear());
    }
}

/// The fields of a command's answer that hold what it printed.
const PRINTED: [&str; 2] = ["stdout", "stderr"];
/// Longest line that is waited for until it is whole, and longest beginning that is left out because it may be the second half of one.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// What of a line that goes on is not shown before more of it has come: longer than a token.
const HELD_BYTES: usize = 4096;
/// What the first line of a private key in text has, and its last one (RFC 7468).
const KEY_BEGINS: &[u8] = b"-----BEGIN ";
const KEY_IS_PRIVATE: &[u8] = b"PRIVATE KEY";
const KEY_ENDS: &[u8] = b"-----END ";

impl Printed {
    /// Bytes that are kept.
    fn len(&self) -> usize {
        self.bytes.len() + self.ready.len()
    }

    fn sharing(total: &Arc<AtomicUsize>) -> Self {
        Self { bytes: VecDeque::new(), left_out: 0, ready: String::new(), shared: Some(Arc::clone(total)) }
    }

    fn hear(&mut self, chunk: &[u8], bytes_max: usize) {
        let others = self.shared.as_ref().map(|total| total.load(Ordering::Relaxed).saturating_sub(self.bytes.len()));
        let bytes_max = match others {
            Some(others) => bytes_max.min(CUT_BYTES_MAX.saturating_sub(others).max(CUT_BYTES_MIN)),
            None => bytes_max,
        };
        self.counted(|printed| {
            // The oldest go first, so that the room for new ones never grows beyond the limit.
            let excess = (printed.bytes.len() + chunk.len()).saturating_sub(bytes_max);
            let oldest = excess.min(printed.bytes.len());
            printed.bytes.drain(..oldest);
            let needed = printed.bytes.len() + chunk.len() - (excess - oldest);
            if needed > printed.bytes.capacity() {
                let room = needed.next_power_of_two().min(bytes_max).max(needed);
                printed.bytes.reserve_exact(room - printed.bytes.len());
            }
            printed.bytes.extend(&chunk[excess - oldest..]);
            printed.left_out += excess as u64;
        });
    }

    /// Where what came before was not kept, the first line may have begun there. Of a line that goes on and on at least no word is
    /// shown by half.
    fn drop_half_a_line(&mut self) {
        if self.left_out == 0 || self.bytes.is_empty() {
            return;
        }
        let most = LINE_BYTES_MAX.min(self.bytes.len());
        let end_of_word = || {
            let end = (most + LINE_BYTES_MAX).min(self.bytes.len());
            self.bytes.range(most..end).position(|byte| !is_of_secret(*byte)).map_or(end, |at| most + at + 1)
        };
        let end_of_line = self.bytes.range(..most).position(|byte| *byte == b'\n').map(|at| at + 1);
        let line = end_of_line.unwrap_or_else(end_of_word);
        self.counted(|printed| drop(printed.bytes.drain(..line)));
        self.left_out += line as u64;
    }

    /// Takes whole lines, or all that there is at the end, and the secrets out of them. A line that goes on and on is not waited for;
    /// the rest of a private key is.
    fn make_ready(&mut self, is_last: bool, redactor: &Redactor) {
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        // Of a line that goes on the end is held back: a secret may have come by half.
        let held = self.bytes.len().saturating_sub(HELD_BYTES);
        let between = || self.bytes.range(..held).rposition(|byte| !is_of_secret(*byte)).map(|at| at + 1);
        let part = match self.bytes.len() - end > LINE_BYTES_MAX {
            _ if is_last => self.bytes.len(),
            true => between().filter(|between| *between > end).unwrap_or(held),
            false => unended_key(&self.bytes.make_contiguous()[..end]).unwrap_or(end),
        };
        let bytes: Vec<u8> = self.counted(|printed| printed.bytes.drain(..part).collect());
        self.ready = String::from_utf8_lossy(&bytes).into_owned();
        redactor.redact(&mut self.ready);
    }

    /// Changes the bytes, and the count of them.
    fn counted<T>(&mut self, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.bytes.len();
        let result = change(self);
        if let Some(total) = &self.shared {
            total.fetch_add(self.bytes.len(), Ordering::Relaxed);
            total.fetch_sub(before, Ordering::Relaxed);
        }
        result
    }
}

/// Where the first line of a private key begins whose last line has not come yet. `None` also where it is too long ago to be waited for.
fn unended_key(bytes: &[u8]) -> Option<usize> {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|window| window == mark);
    let begin = last(KEY_BEGINS).filter(|begin| last(KEY_ENDS).is_none_or(|end| end < *begin))?;
    let line = bytes[..begin].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let is_private = bytes[begin..]
        .split(|byte| *byte == b'\n')
        .next()
        .is_some_and(|line| line.windows(KEY_IS_PRIVATE.len()).any(|window| window == KEY_IS_PRIVATE));
    (is_private && bytes.len() - line <= LINE_BYTES_MAX).then_some(line)
}

impl Job {
    fn new(owner: Owner, handle: String, cancel: CancellationToken, printed: Printed) -> Self {
        Self {
            goes_on: printed.shared.is_none(),
            owner,
            handle,
            printed: Mutex::new(printed),
            changed: Notify::new(),
            outcome: OnceLock::new(),
            cancel,
        }
    }

    fn hear(&self, chunk: &[u8], bytes_max: usize) {
        lock(&self.printed).hear(chunk, bytes_max);
        self.changed.notify_waiters();
    }

    /// The call has come to its end.
    pub(crate) fn ended(&self, outcome: &Outcome) {
        // It ends once.
        let _ = self.outcome.set(without_output(outcome));
        self.changed.notify_waiters();
    }

    /// What can be read now. Secrets are taken out before it is cut into parts: half of a secret, or one without the name before it,
    /// is not known to be one.
    fn take(&self, bytes_max: usize, redactor: &Redactor) -> Heard {
        // First: what is printed before the end is read with it.
        let outcome = self.outcome.get().cloned();
        let mut printed = lock(&self.printed);
        printed.drop_half_a_line();
        if printed.ready.is_empty() {
            printed.make_ready(outcome.is_some(), redactor);
        }
        let part = printed.ready.floor_char_boundary(bytes_max);
        let rest = printed.ready.split_off(part);
        let text = std::mem::replace(&mut printed.ready, rest);
        let left_out = std::mem::take(&mut printed.left_out);
        let more = !printed.ready.is_empty() || (outcome.is_some() && !printed.bytes.is_empty());
        Heard { text, left_out, more, outcome }
    }

    async fn read(&self, patience: Duration, bytes_max: usize, redactor: &Redactor) -> Heard {
        let until = Instant::now() + patience;
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before it is looked: what comes after that look wakes this.
            changed.as_mut().enable();
            let heard = self.take(bytes_max, redactor);
            if !heard.text.is_empty()
                || heard.outcome.is_some()
                || tokio::time::timeout_at(until, changed).await.is_err()
            {
                return heard;
            }
        }
    }
}

impl Jobs {
    fn begin(&self, owner: Owner, cancel: CancellationToken, limits: &Limits) -> Result<Arc<Job>, ToolError> {
        let mut all = lock(&self.all);
        let running = all.iter().filter(|job| job.outcome.get().is_none());
        let (own, others): (Vec<_>, Vec<_>) = running.partition(|job| job.owner == owner);
        if own.len() >= limits.background_commands {
            let message = format!("{} commands of this session are in the background, which is the most", own.len());
            return Err(ToolError::new(ErrorKind::Limit, message).hint("end one of them first"));
        }
        if own.len() + others.len() >= limits.background_commands_of_all {
            let message = "as many commands are in the background as this host allows for all its sessions together";
            return Err(ToolError::new(ErrorKind::Limit, message).hint("try again later"));
        }
        Ok(self.push(&mut all, owner, cancel, Printed::default()))
    }

    /// Adds one; ended ones make room for it.
    fn push(&self, all: &mut Vec<Arc<Job>>, owner: Owner, cancel: CancellationToken, printed: Printed) -> Arc<Job> {
        make_room(all);
        let handle = format!("command-{}", self.count.fetch_add(1, Ordering::Relaxed) + 1);
        let job = Arc::new(Job::new(owner, handle, cancel, printed));
        all.push(Arc::clone(&job));
        job
    }

    fn get(&self, owner: &Owner, handle: &str) -> Result<Arc<Job>, ToolError> {
        let all = lock(&self.all);
        let own: Vec<&Arc<Job>> = all.iter().filter(|job| job.owner == *owner).collect();
        own.iter().find(|job| job.handle == handle).map(|job| Arc::clone(job)).ok_or_else(|| {
            let names: Vec<&str> = own.iter().map(|job| job.handle.as_str()).collect();
            let hint = match names.as_slice() {
                [] => "it has ended and was read to its end, or its session has ended".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            ToolError::new(ErrorKind::NotFound, format!("this session has no command `{handle}` in the background"))
                .hint(hint)
        })
    }

    /// Ends the commands of all sessions.
    pub(crate) fn end_all(&self) {
        lock(&self.all).iter().for_each(|job| job.cancel.cancel());
    }

    /// All that was printed and how it ended were read.
    fn forget(&self, job: &Arc<Job>) {
        lock(&self.all).retain(|other| !Arc::ptr_eq(other, job));
    }
}

/// How a command ended, without what it printed.
pub(crate) fn without_output(outcome: &Outcome) -> Outcome {
    let Outcome { ok, data, error, meta, text, attachments: _ } = outcome;
    let fields = data.as_object().into_iter().flatten().filter(|(name, _)| !PRINTED.contains(&name.as_str()));
    let data = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let text = if *ok { String::new() } else { text.clone() };
    let (error, meta) = (error.clone(), meta.clone());
    Outcome { ok: *ok, data: Value::Object(data), error, meta, attachments: Vec::new(), text }
}

/// Forgets ended ones until there is room for one more.
fn make_room(all: &mut Vec<Arc<Job>>) {
    loop {
        let mut ended: BTreeMap<&Owner, Vec<(usize, usize)>> = BTreeMap::new();
        for (at, job) in all.iter().enumerate().filter(|(_, job)| job.outcome.get().is_some()) {
            ended.entry(&job.owner).or_default().push((at, lock(&job.printed).len()));
        }
        let bytes = |own: &[(usize, usize)]| own.iter().map(|(_, bytes)| bytes).sum::<usize>();
        let (count, total) =
            (ended.values().map(Vec::len).sum::<usize>(), ended.values().map(|own| bytes(own)).sum::<usize>());
        let most = if total > ENDED_BYTES_MAX {
            ended.values().max_by_key(|own| bytes(own))
        } else if count >= ENDED_MAX {
            ended.values().max_by_key(|own| own.len())
        } else {
            return;
        };
        match most.and_then(|own| own.first()).map(|(at, _)| *at) {
            Some(at) => drop(all.remove(at)),
            None => return,
        }
    }
}

/// The background as one call sees it.
pub(crate) struct CallBackground<'a> {
    pub(crate) jobs: &'a Jobs,
    pub(crate) call: &'a Call,
    pub(crate) hooks: &'a Hooks,
    pub(crate) limits: &'a Limits,
    /// Takes secrets out of what is read.
    pub(crate) redactor: &'a Redactor,
    /// Ends the call's command.
    pub(crate) cancel: CancellationToken,
    /// Takes the answer that is given before the end; `None`: the caller waits for the end.
    pub(crate) first: Mutex<Option<oneshot::Sender<Outcome>>>,
    /// The call's place among those that run at once, which it gives back when it goes on in the background.
    pub(crate) slot: Mutex<Option<RunSlot>>,
    /// That answer, from what the tool says.
    pub(crate) answer: &'a (dyn Fn(Success) -> Outcome + Sync),
    /// This call, once it has begun to be one in the background, or its output is kept.
    pub(crate) begun: OnceLock<Arc<Job>>,
}

impl CallBackground<'_> {
    fn owner(&self) -> Owner {
        Owner::of(self.call, self.hooks.reader.as_ref())
    }

    /// Reads on, and forgets what was read to its end.
    async fn take(&self, job: &Arc<Job>, patience: Duration) -> Heard {
        let heard = job.read(patience, self.limits.background_read_bytes, self.redactor).await;
        if heard.outcome.is_some() && !heard.more {
            self.jobs.forget(job);
        }
        heard
    }
}

impl Background for CallBackground<'_> {
    fn begin(&self) -> Result<Begun<'_>, ToolError> {
        let first = lock(&self.first).take();
        let (Some(first), Some(_)) = (first, &self.hooks.session) else {
            return Err(no_session());
        };
        let job = self.jobs.begin(self.owner(), self.cancel.clone(), self.limits)?;
        // Nobody else begins this call.
        let _ = self.begun.set(Arc::clone(&job));
        drop(lock(&self.slot).take());
        if let Some(pace) = &self.hooks.pace {
            pace.goes_on();
        }
        let (handle, bytes_max) = (job.handle.clone(), self.limits.background_bytes);
        Ok(Begun {
            handle,
            listener: Arc::new(move |chunk| job.hear(chunk, bytes_max)),
            // A caller that has gone reads nothing.
            answer: Box::new(move |success| drop(first.send((self.answer)(success)))),
        })
    }

    fn listen(&self) -> Option<Listening<'_>> {
        self.hooks.session.as_ref()?;
        let printed = Arc::new(Mutex::new(Printed::sharing(&self.jobs.cut)));
        let (heard, bytes_max) = (Arc::clone(&printed), self.limits.background_bytes);
        let keep = move || {
            let printed = std::mem::take(&mut *lock(&printed));
            let job = self.jobs.push(&mut lock(&self.jobs.all), self.owner(), self.cancel.clone(), printed);
            // A call listens to one command.
            let _ = self.begun.set(Arc::clone(&job));
            job.handle.clone()
        };
        Some(Listening { listener: Arc::new(move |chunk| lock(&heard).hear(chunk, bytes_max)), keep: Box::new(keep) })
    }

    fn read<'a>(&'a self, handle: &'a str, wait_ms: u64) -> BoxFuture<'a, Result<Heard, ToolError>> {
        Box::pin(async move {
            let job = self.jobs.get(&self.owner(), handle)?;
            Ok(self.take(&job, Duration::from_millis(wait_ms)).await)
        })
    }

    fn end<'a>(&'a self, handle: &'a str) -> BoxFuture<'a, Result<Heard, ToolError>> {
        Box::pin(async move {
            let job = self.jobs.get(&self.owner(), handle)?;
            job.cancel.cancel();
            loop {
                let changed = job.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if job.outcome.get().is_some() {
                    // Who waited for its output may have read it to its end by now.
                    return Ok(self.take(&job, Duration::ZERO).await);
                }
                changed.await;
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use serde_json::json;
    use toolhost_contract::{CallId, Caller, CallerKind, Scope};

    use super::*;

    fn call(change: impl FnOnce(&mut Call)) -> Call {
        let caller = Caller {
            kind: CallerKind::Model,
            door: "mcp".into(),
            profile: "developer".to_owned(),
            persona: "agent".to_owned(),
        };
        let scope = Scope { user_id: 1, project_id: 1, session_id: Some("s".to_owned()), ..Scope::default() };
        let mut call =
            Call { id: CallId::new("c"), tool: "t".to_owned(), arguments: Default::default(), scope, caller };
        change(&mut call);
        call
    }

    fn own() -> Owner {
        Owner::of(&call(|_| {}), None)
    }

    fn outcome() -> Outcome {
        let meta = json!({
            "tool": "t", "callId": "c", "sessionId": null, "userId": 1, "projectId": 1, "workflowId": null,
            "revision": null, "allowWrite": true, "durationMs": 1, "fence": "full",
        });
        serde_json::from_value(json!({ "ok": true, "data": null, "error": null, "meta": meta, "text": "" })).unwrap()
    }

    #[test]
    fn no_half_of_a_line_is_read_where_what_came_before_it_was_not_kept() {
        let jobs = Jobs::default();
        let job = jobs.begin(own(), CancellationToken::new(), &Limits::default()).unwrap();
        let redactor = Redactor::default();
        job.hear(b"first secret line\nlast\n", 16);
        let heard = job.take(100, &redactor);
        assert_eq!((heard.text.as_str(), heard.left_out), ("last\n", 18));
        job.hear(b"on\n", 16);
        assert_eq!(job.take(100, &redactor).text, "on\n", "nothing was left out since");
    }

    #[test]
    fn of_a_line_that_goes_on_and_on_no_half_of_a_word_is_read() {
        let jobs = Jobs::default();
        let job = jobs.begin(own(), CancellationToken::new(), &Limits::default()).unwrap();
        let token = " ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
        // The word that the limit cuts is cut in its middle.
        job.hear(token.repeat(20_000).as_bytes(), 10_000 * token.len() - 10);
        let text = job.take(usize::MAX, &Redactor::default()).text;
        assert!(text.contains("[redacted]") && !text.contains("Q7r8"), "{}", &text[..100]);
    }

    #[test]
    fn of_a_line_that_goes_on_no_secret_is_read_in_halves() {
        let jobs = Jobs::default();
        for filler in ["abcdefghi,", "{\"k\":\"Qx7\"},", "a/b&c=d;"] {
            let job = jobs.begin(own(), CancellationToken::new(), &Limits::default()).unwrap();
            let redactor = Redactor::default();
            let mut read = String::new();
            for piece in
                [filler.repeat(9000).as_str(), "ghp_zY9xW8vU7tS6rQ", "5pO4nM3lK2jI1hG0fE9dC8,", &filler.repeat(9000)]
            {
                job.hear(piece.as_bytes(), 1 << 20);
                read.push_str(&job.take(1 << 20, &redactor).text);
                read.push('|');
            }
            job.ended(&outcome());
            read.push_str(&job.take(1 << 20, &redactor).text);
            assert!(read.contains("[redacted]") && !read.contains("ghp_") && !read.contains("E9dC8"), "{filler}");
            assert!(read.len() > 18_000 * filler.len(), "nothing else is lost: {}", read.len());
        }
    }

    #[test]
    fn the_rest_of_a_private_key_is_waited_for() {
        let jobs = Jobs::default();
        let job = jobs.begin(own(), CancellationToken::new(), &Limits::default()).unwrap();
        let line = "MIIEpAIBAAKCAQEAx7Qm2Zx9Kq2Lm8Vb4Nc7Ws1Er5Ty6Ui3Op0AsMIIEpAIBaaaZ\n";
        let redactor = Redactor::default();
        let read = |printed: &str| {
            job.hear(printed.as_bytes(), 1 << 20);
            job.take(1 << 20, &redactor).text
        };
        assert_eq!(read(&format!("before\n-----BEGIN RSA PRIVATE KEY-----\n{line}{line}")), "before\n");
        let rest = read(&format!("{line}{line}-----END RSA PRIVATE KEY-----\nafter\n"));
        assert!(rest.starts_with("-----BEGIN") && rest.ends_with("-----\nafter\n") && !rest.contains("MIIE"), "{rest}");
        // Another text with such marks is not waited for.
        assert_eq!(read("-----BEGIN CERTIFICATE-----\n"), "-----BEGIN CERTIFICATE-----\n");
        // Nor is a key without an end.
        let endless = format!("-----BEGIN PRIVATE KEY-----\n{}", "no key\n".repeat(LINE_BYTES_MAX / 7));
        assert_eq!(read(&endless), endless);
    }

    #[test]
    fn what_ended_commands_have_printed_is_kept_within_a_limit() {
        let jobs = Jobs::default();
        let megabyte = vec![b'x'; 1 << 20];
        let kept: Vec<_> = (0..ENDED_MAX)
            .map(|_| {
                let printed =
                    Printed { bytes: megabyte.clone().into(), left_out: 0, ready: String::new(), shared: None };
                let job = jobs.push(&mut lock(&jobs.all), own(), CancellationToken::new(), printed);
                job.ended(&outcome());
                job
            })
            .collect();
        let bytes: usize = lock(&jobs.all).iter().map(|job| lock(&job.printed).bytes.len()).sum();
        // The last one came after the others had made room for it.
        assert!(bytes <= ENDED_BYTES_MAX + megabyte.len() && bytes > ENDED_BYTES_MAX / 2, "{bytes}");
        assert!(jobs.get(&own(), &kept[ENDED_MAX - 1].handle).is_ok());
    }

    #[test]
    fn commands_that_answer_at_their_end_share_what_is_kept_of_them() {
        let jobs = Jobs::default();
        let chunk = vec![b'x'; 1 << 20];
        let mut all: Vec<Printed> = (0..64).map(|_| Printed::sharing(&jobs.cut)).collect();
        for _ in 0..3 {
            all.iter_mut().for_each(|printed| printed.hear(&chunk, chunk.len()));
        }
        let kept: usize = all.iter().map(|printed| printed.bytes.len()).sum();
        assert_eq!(kept, jobs.cut.load(Ordering::Relaxed));
        assert!(kept <= CUT_BYTES_MAX + 64 * CUT_BYTES_MIN, "{kept}");
        assert!(all.iter().all(|printed| printed.bytes.len() >= CUT_BYTES_MIN));
        drop(all);
        assert_eq!(jobs.cut.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_session_with_many_ended_commands_loses_its_own_and_not_those_of_another() {
        let jobs = Jobs::default();
        let other = call(|call| call.scope.session_id = Some("other".to_owned()));
        let begin = |call: &Call| {
            let job = jobs.begin(Owner::of(call, None), CancellationToken::new(), &Limits::default()).unwrap();
            job.ended(&outcome());
            job
        };
        let kept = begin(&other);
        let ended: Vec<_> = (0..2 * ENDED_MAX).map(|_| begin(&call(|_| {}))).collect();
        assert!(jobs.get(&Owner::of(&other, None), &kept.handle).is_ok());
        assert!(jobs.get(&own(), &ended[0].handle).is_err());
        assert!(jobs.get(&own(), &ended[2 * ENDED_MAX - 1].handle).is_ok());
        assert_eq!(lock(&jobs.all).len(), ENDED_MAX);
    }

    #[test]
    fn who_is_not_the_session_that_began_it_finds_no_command() {
        let jobs = Jobs::default();
        let own = call(|_| {});
        let job = jobs.begin(Owner::of(&own, None), CancellationToken::new(), &Limits::default()).unwrap();
        assert!(jobs.get(&Owner::of(&call(|call| call.tool = "other".to_owned()), None), &job.handle).is_ok());
        let others: [fn(&mut Call); 5] = [
            |call| call.scope.user_id = 2,
            |call| call.scope.project_id = 2,
            |call| call.scope.session_id = Some("other".to_owned()),
            |call| call.caller.profile = "researcher".to_owned(),
            |call| call.caller.persona = "other".to_owned(),
        ];
        for (n, other) in others.into_iter().enumerate() {
            let found = jobs.get(&Owner::of(&call(other), None), &job.handle);
            assert!(found.is_err_and(|error| error.kind == ErrorKind::NotFound), "{n}");
        }
    }
}
