//! A future that is polled where it is awaited, and goes on in a task of its own when it is dropped there.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use toolhost_contract::BoxFuture;

/// The future, until it has ended.
pub(crate) struct Unstopped<T: Send + 'static> {
    future: Option<BoxFuture<'static, T>>,
    runtime: Handle,
    /// Who waits for all calls waits for this one, too.
    token: Option<TaskTrackerToken>,
}

impl<T: Send + 'static> Unstopped<T> {
    pub(crate) fn new(tracker: &TaskTracker, future: impl Future<Output = T> + Send + 'static) -> Self {
        Self { future: Some(Box::pin(future)), runtime: Handle::current(), token: Some(tracker.token()) }
    }
}

impl<T: Send + 'static> Future for Unstopped<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let Some(future) = &mut self.future else { return Poll::Pending };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
            self.token = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Unstopped<T> {
    fn drop(&mut self) {
        if let (Some(future), token) = (self.future.take(), self.token.take()) {
            drop(self.runtime.spawn(async move {
                let _until_then = token;
                drop(future.await);
            }));
        }
    }
}
