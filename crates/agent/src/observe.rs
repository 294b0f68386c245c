//! A port that is told of each run of a session and each reply of a model. Traces are made of it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolhost_contract::{BoxFuture, Clock};
use toolhost_host::Origin;

use crate::model::{Follow, Model, ModelError, ModelFacts, Reply, Request};
use crate::session::LoopResult;

/// Is told of each run of a session as it begins.
pub trait SessionObserver: Send + Sync {
    fn begins(&self, run: &BegunRun<'_>) -> Arc<dyn RunObserver>;
}

/// A run of a session that begins.
#[derive(Debug, Clone, Copy)]
pub struct BegunRun<'a> {
    pub session: &'a str,
    /// As [`ModelFacts::name`].
    pub model: &'a str,
    /// Who works.
    pub persona: &'a str,
    /// Where the request for it came from.
    pub origin: Option<&'a Origin>,
}

/// Is told what happens in one run. Nothing that it does may take time.
pub trait RunObserver: Send + Sync {
    /// Where the calls of this run come from.
    fn origin(&self) -> Arc<Origin>;

    fn replied(&self, reply: &ObservedReply<'_>);

    /// `None`: the journal could not be written.
    fn ended(&self, result: Option<&LoopResult>);
}

/// A reply of a model, or why there is none.
#[derive(Debug, Clone, Copy)]
pub struct ObservedReply<'a> {
    pub model: &'a ModelFacts,
    pub output_tokens_max: Option<u32>,
    pub took: Duration,
    pub result: Result<&'a Reply, &'a ModelError>,
}

/// A model whose replies are told to an observer.
pub struct ObservedModel<'a> {
    pub model: &'a dyn Model,
    pub run: &'a dyn RunObserver,
    pub clock: &'a dyn Clock,
}

impl Model for ObservedModel<'_> {
    fn facts(&self) -> &ModelFacts {
        self.model.facts()
    }

    fn reply<'a>(
        &'a self,
        request: Request<'a>,
        follow: &'a dyn Follow,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Reply, ModelError>> {
        Box::pin(async move {
            let (began, output_tokens_max) = (self.clock.monotonic(), request.output_tokens_max);
            let result = self.model.reply(request, follow, cancel).await;
            let took = self.clock.monotonic().saturating_sub(began);
            self.run.replied(&ObservedReply {
                model: self.model.facts(),
                output_tokens_max,
                took,
                result: result.as_ref(),
            });
            result
        })
    }
}
