//! Where the streams of projects end, for whoever listens: one task for each project that is listened to.
//!
//! The task waits for a wake-up and reads what is new, once for all listeners; whoever listens and has heard everything else takes it
//! from here. It also asks, for all at once, which callers still may come in. So listeners make no queries of their own while nothing
//! happens.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use toolhost_contract::ToolError;
use toolhost_store::{AsksMark, Position, Wakes, Woken};

use super::projects::OpenProject;
use super::told::Told;

/// Events that are read at once.
pub(crate) const PAGE_EVENTS: i64 = 100;
/// How often it is asked which callers still may come in.
pub(crate) const CALLERS_EVERY: Duration = Duration::from_secs(5);

/// What a listener has to know of a project.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) end: Position,
    /// The last events, in their order; the first one follows `latest_after`.
    pub(crate) latest: Arc<[Told]>,
    pub(crate) latest_after: Position,
    /// Not all that happens to asks has a row in the audit: a call that still waits has none.
    pub(crate) asks: AsksMark,
    pub(crate) callers: Arc<Callers>,
}

/// Who may come in.
pub(crate) struct Callers {
    /// When that was asked. It says nothing of who came later.
    pub(crate) at: Instant,
    pub(crate) tokens: BTreeSet<String>,
    pub(crate) members: BTreeSet<i64>,
}

/// The projects that are listened to.
#[derive(Default)]
pub(crate) struct Ends {
    followed: Arc<Mutex<Followed>>,
}

type Followed = HashMap<String, watch::Sender<Known>>;

impl Ends {
    /// Follows the end of a project's stream.
    pub(crate) async fn follow(&self, project: &Arc<OpenProject>) -> Result<watch::Receiver<Known>, ToolError> {
        if let Some(sender) = lock(&self.followed).get(&project.key) {
            return Ok(sender.subscribe());
        }
        let end = project.reader.stream_end(project.id).await?;
        let callers = Arc::new(callers(project).await?);
        let asks = project.gate.queue().asks().mark(project.id).await?;
        let mut followed = lock(&self.followed);
        if let Some(sender) = followed.get(&project.key) {
            return Ok(sender.subscribe());
        }
        let known = Known { end, latest: Arc::new([]), latest_after: end, asks, callers };
        let (sender, receiver) = watch::channel(known);
        followed.insert(project.key.clone(), sender.clone());
        let look = Look { project: Arc::clone(project), sender, followed: Arc::clone(&self.followed) };
        tokio::spawn(look.run());
        Ok(receiver)
    }
}

/// The task of one project.
struct Look {
    project: Arc<OpenProject>,
    sender: watch::Sender<Known>,
    followed: Arc<Mutex<Followed>>,
}

impl Look {
    /// Runs until nobody listens any more.
    async fn run(self) {
        let mut wakes = self.project.reader.wakes(self.project.id);
        let mut ask = tokio::time::interval(CALLERS_EVERY);
        ask.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is at once, and was asked already.
        ask.tick().await;
        loop {
            tokio::select! {
                () = self.sender.closed() => {
                    let mut followed = lock(&self.followed);
                    // Whoever has come meanwhile has this lock.
                    if self.sender.receiver_count() == 0 {
                        followed.remove(&self.project.key);
                        return;
                    }
                }
                woken = wakes.next() => {
                    if let Err(error) = self.read(&wakes, woken).await {
                        tracing::warn!(%error, "new events could not be read");
                    }
                }
                _ = ask.tick() => match callers(&self.project).await {
                    Ok(callers) => self.sender.send_modify(|known| known.callers = Arc::new(callers)),
                    // A database that does not answer takes nobody's streams away.
                    Err(error) => tracing::warn!(%error, "who may listen could not be read"),
                },
            }
        }
    }

    async fn read(&self, wakes: &Wakes, woken: Woken) -> Result<(), ToolError> {
        let (reader, project) = (&self.project.reader, self.project.id);
        let (mut after, before) = {
            let known = self.sender.borrow();
            (known.end, known.asks)
        };
        let asks = self.project.gate.queue().asks().mark(project).await?;
        if asks != before {
            self.sender.send_modify(|known| known.asks = asks);
        }
        if reader.stream_end(project).await? == after {
            return Ok(());
        }
        if woken == Woken::Unsure {
            wakes.missed();
        }
        loop {
            let page = reader.stream(project, after, PAGE_EVENTS).await?;
            let Some(end) = page.last().map(|event| event.position) else { return Ok(()) };
            let latest = page.into_iter().map(Told::of).collect::<Result<Arc<[_]>, _>>()?;
            self.sender.send_modify(|known| {
                (known.end, known.latest, known.latest_after) = (end, latest, after);
            });
            after = end;
        }
    }
}

async fn callers(project: &OpenProject) -> Result<Callers, ToolError> {
    let at = Instant::now();
    let tokens = project.tokens.valid_ids(project.id).await?;
    let members = project.people.members(project.id).await?.into_iter().map(|member| member.id).collect();
    Ok(Callers { at, tokens, members })
}

fn lock(followed: &Mutex<Followed>) -> MutexGuard<'_, Followed> {
    followed.lock().unwrap_or_else(PoisonError::into_inner)
}
