//! What tells open pages that something has changed: server-sent events with the project, what kind of thing it was, and a number.
//!
//! An event says no more than that. The page fetches itself again, and so everything that a person is shown has passed the same checks
//! and the same templates.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolhost_contract::{ErrorKind, ToolError};
use toolhost_store::{AsksMark, Login, Logins};

use super::heard::{BETWEEN, Heard};
use super::visitor::{Membership, Visitor};
use crate::http::OpenProject;
use crate::http::ends::{Ends, Known, PAGE_EVENTS};
use crate::http::events::{ALIVE, ALIVE_EVERY, LAST_EVENT, Source, streamed};
use crate::http::told::{ASKS, Told};

/// Where pages listen.
pub(crate) const LIVE: &str = "/live";
/// How long changes are gathered after an event: an agent that makes a thousand calls is not a thousand pages.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it is asked whether the login still holds.
const LOGIN_EVERY: Duration = Duration::from_secs(5);
/// How long a stream goes on. The page comes again, and hears of the projects that its person has joined meanwhile.
const LIVES: Duration = Duration::from_secs(600);
/// How soon a page comes again, milliseconds.
const AGAIN_MS: u32 = 1000;
/// The kind of an event where it is not known what has changed.
const ALL: &str = "all";

/// The streams that are open.
pub(crate) struct Streams {
    open: Mutex<HashMap<String, usize>>,
    of_person_max: usize,
    max: usize,
    /// This value changes when somebody signs out here: each stream then checks its own login.
    sign_outs: watch::Sender<()>,
}

/// One of them, counted until it is dropped.
struct Counted {
    streams: Arc<Streams>,
    user: String,
}

impl Streams {
    pub(crate) fn new(of_person_max: usize, max: usize) -> Arc<Self> {
        Arc::new(Self { open: Mutex::default(), of_person_max, max, sign_outs: watch::Sender::new(()) })
    }

    /// Ends the streams of logins that have ended.
    pub(crate) fn somebody_signed_out(&self) {
        self.sign_outs.send_replace(());
    }

    fn count(self: &Arc<Self>, user: &str) -> Result<Counted, ToolError> {
        let mut open = self.lock();
        let all: usize = open.values().sum();
        if all >= self.max || open.get(user).is_some_and(|count| *count >= self.of_person_max) {
            return Err(ToolError::new(ErrorKind::Limit, "Too many pages are open."));
        }
        *open.entry(user.to_owned()).or_default() += 1;
        Ok(Counted { streams: Arc::clone(self), user: user.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut open = self.streams.lock();
        if let Some(count) = open.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// A project that a page hears of.
struct Followed {
    key: String,
    id: i64,
    user_id: i64,
    known: watch::Receiver<Known>,
    /// The number of the last event that was told.
    told: i64,
    asks: AsksMark,
    /// What had changed before the stream began, since the page was made.
    missed: BTreeSet<Cow<'static, str>>,
}

/// What has happened between a page and its stream.
async fn missed(project: &OpenProject, after: i64, end: i64) -> Result<BTreeSet<Cow<'static, str>>, ToolError> {
    if after >= end {
        return Ok(BTreeSet::new());
    }
    let after = project.reader.position(project.id, after).await?;
    let events = project.reader.stream(project.id, after, PAGE_EVENTS).await?;
    if events.last().is_none_or(|last| last.position.number() < end) {
        return Ok(BTreeSet::from([ALL.into()]));
    }
    let mut kinds = BTreeSet::new();
    for event in events {
        kinds.extend(Told::of(event)?.kinds);
    }
    Ok(kinds)
}

impl Followed {
    /// What has changed since this was asked last.
    fn changes(&mut self) -> BTreeSet<Cow<'static, str>> {
        let known = self.known.borrow_and_update().clone();
        let mut kinds = std::mem::take(&mut self.missed);
        if known.asks != self.asks {
            kinds.insert(ASKS.into());
        }
        let end = known.end.number();
        if end > self.told && self.told < known.latest_after.number() {
            kinds.insert(ALL.into());
        }
        let told = self.told;
        let fresh = known.latest.iter().filter(|event: &&Told| event.position.number() > told);
        kinds.extend(fresh.flat_map(|event| event.kinds.iter().cloned()));
        (self.told, self.asks) = (self.told.max(end), known.asks);
        kinds
    }

    /// Whether the person still is a member, as far as that was asked since the stream began.
    fn is_member(&self, since: Instant) -> bool {
        let known = self.known.borrow();
        known.callers.at <= since || known.callers.members.contains(&self.user_id)
    }
}

/// What one page hears.
struct Live {
    logins: Logins,
    login: Login,
    sign_outs: watch::Receiver<()>,
    followed: Vec<Followed>,
    since: Instant,
    checked: Instant,
    /// Until when changes are gathered.
    pause: Instant,
    /// What is said first.
    greeting: Option<Bytes>,
    _counted: Counted,
}

impl Source for Live {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(greeting) = self.greeting.take() {
            return Some(greeting);
        }
        let alive = Instant::now() + ALIVE_EVERY;
        sleep_until(self.pause).await;
        loop {
            if self.checked.elapsed() >= LOGIN_EVERY || self.sign_outs.has_changed().unwrap_or(true) {
                self.sign_outs.mark_unchanged();
                self.checked = Instant::now();
                // A database that does not answer signs nobody out.
                if let Ok(None) = self.logins.valid(&self.login.hash).await {
                    return None;
                }
            }
            if self.since.elapsed() >= LIVES || !self.followed.iter().all(|followed| followed.is_member(self.since)) {
                return None;
            }
            if let Some(text) = self.told() {
                self.pause = Instant::now() + PAUSE;
                return Some(text);
            }
            tokio::select! {
                changed = any_changed(&mut self.followed) => changed?,
                () = sleep_until(self.checked + LOGIN_EVERY) => {}
                signed_out = self.sign_outs.changed() => {
                    signed_out.ok()?;
                    self.sign_outs.mark_changed();
                }
                () = sleep_until(alive) => return Some(ALIVE),
            }
        }
    }
}

impl Live {
    /// The events for what has changed.
    fn told(&mut self) -> Option<Bytes> {
        let changed: Vec<_> = self.followed.iter_mut().map(Followed::changes).collect();
        let told: Vec<_> = self.followed.iter().zip(changed).filter(|(_, kinds)| !kinds.is_empty()).collect();
        if told.is_empty() {
            return None;
        }
        let heard = heard_of(&self.followed);
        let text = told.iter().map(|(of, kinds)| {
            let data = json!({ "project": of.key, "kinds": kinds, "number": of.told });
            format!("id: {heard}\nevent: changed\ndata: {data}\n\n")
        });
        Some(text.collect::<String>().into())
    }
}

/// Waits until something is new in a project; `None` if one is followed no more.
async fn any_changed(followed: &mut [Followed]) -> Option<()> {
    if followed.is_empty() {
        return std::future::pending().await;
    }
    let each = followed.iter_mut().map(|followed| Box::pin(followed.known.changed()));
    futures::future::select_all(each).await.0.ok()
}

/// What a page has heard of all its projects.
fn heard_of(followed: &[Followed]) -> String {
    let heard = |of: &Followed| Heard { number: of.told, asks: of.asks }.written(of.id);
    followed.iter().map(heard).collect::<Vec<_>>().join(BETWEEN)
}

/// What a page has heard: before it lost its connection, or else when it was made; by the number of the project.
fn heard(headers: &HeaderMap, made: &str) -> BTreeMap<i64, Heard> {
    let last = headers.get(LAST_EVENT.name).and_then(|last| last.to_str().ok()).filter(|last| !last.is_empty());
    last.unwrap_or(made).split(BETWEEN).filter_map(Heard::parse).collect()
}

/// A stream of what changes in the projects of a person, after what the page shows that was `made` then.
///
/// # Errors
/// If too many are open, or the database does not answer.
pub(crate) async fn listen(
    visitor: &Visitor<'_>,
    (headers, made): (&HeaderMap, &str),
    (logins, streams, ends): (&Logins, &Arc<Streams>, &Ends),
    life: CancellationToken,
) -> Result<Response<Body>, ToolError> {
    let counted = streams.count(&visitor.login.user)?;
    let (heard, since) = (heard(headers, made), Instant::now());
    let mut followed = Vec::new();
    for Membership { project, user_id, .. } in visitor.memberships().await?.0 {
        let known = ends.follow(&project).await?;
        let (end, asks) = {
            let known = known.borrow();
            (known.end.number(), known.asks)
        };
        // Nobody has heard what is yet to come.
        let heard = heard.get(&project.id).copied().unwrap_or(Heard { number: end, asks });
        let missed = missed(&project, heard.number.min(end), end).await?;
        let (key, id) = (project.key.clone(), project.id);
        followed.push(Followed { key, id, user_id, known, told: end, asks: heard.asks, missed });
    }
    // With an id, so that a page that hears of nothing still says where it stands when it comes again.
    let greeting = Some(format!("id: {}\nretry: {AGAIN_MS}\n\n", heard_of(&followed)).into());
    let (logins, login) = (logins.clone(), visitor.login.clone());
    let sign_outs = streams.sign_outs.subscribe();
    let live =
        Live { logins, login, sign_outs, followed, since, checked: since, pause: since, greeting, _counted: counted };
    Ok(streamed(live, life))
}
