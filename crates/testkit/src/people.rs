//! People who are asked.

use std::sync::Arc;

use toolhost_contract::{Answer, BoxFuture};
use toolhost_host::{Decision, Person, Presented, Presenter, Queue, Shown};
use toolhost_store::Ask;

/// What a person says to what they are shown.
pub trait Voice: Send + Sync + 'static {
    fn say(&self, shown: &Shown) -> Presented;
}

impl<F: Fn(&Shown) -> Presented + Send + Sync + 'static> Voice for F {
    fn say(&self, shown: &Shown) -> Presented {
        self(shown)
    }
}

/// Allows everything.
pub struct SaysYes;

impl Voice for SaysYes {
    fn say(&self, _: &Shown) -> Presented {
        said(Answer::Allow)
    }
}

/// Allows nothing, with a comment.
pub struct SaysNo(pub &'static str);

impl Voice for SaysNo {
    fn say(&self, _: &Shown) -> Presented {
        said(Answer::Deny { comment: Some(self.0.to_owned()) })
    }
}

/// An answer for this once.
pub fn said(answer: Answer) -> Presented {
    Presented::Decided(Decision { answer, rule: None })
}

/// A voice and whose it is.
pub(crate) struct Speaking {
    pub(crate) voice: Arc<dyn Voice>,
    pub(crate) person: Person,
    pub(crate) queue: Queue,
}

impl Presenter for Speaking {
    fn place(&self) -> &'static str {
        "test"
    }

    fn person(&self) -> Person {
        self.person.clone()
    }

    fn present<'a>(&'a self, ask: &'a Ask, shown: &'a Shown) -> BoxFuture<'a, Presented> {
        Box::pin(async move {
            // They look at all of it, however long.
            self.queue.saw(&self.person, ask, shown, self.place()).await.unwrap();
            self.voice.say(shown)
        })
    }

    fn ended(&self, _: &Ask) {}
}
