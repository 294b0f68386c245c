//! A host that has no calls to serve gives memory back to the system.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use toolhost_contract::BoxFuture;
use toolhost_sandbox::{give_memory_back, give_thread_memory_back};
use toolhost_server::mcp::Tidy;
use toolhost_store::Caches;

/// How long a worker of the runtime waits for the others, so that each of them takes one task.
const MEET_MAX: Duration = Duration::from_millis(5);

/// Gives back the database's caches, where it is one database, then each worker's own heap, then what is the process's.
pub(crate) struct GiveMemoryBack(pub(crate) Option<Caches>);

impl Tidy for GiveMemoryBack {
    fn tidy(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Some(caches) = &self.0 {
                caches.give_back().await;
            }
            on_each_worker(give_thread_memory_back).await;
            // It fails only where the runtime ends.
            let _ = tokio::task::spawn_blocking(give_memory_back).await;
        })
    }
}

/// Runs something on each worker thread of the runtime, or on as many as are free: a heap is its thread's own, and the
/// runtime gives no way to name one of its workers.
async fn on_each_worker(work: impl Fn() + Clone + Send + 'static) {
    let count = Handle::current().metrics().num_workers();
    let arrived = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..count)
        .map(|_| {
            let (arrived, work) = (Arc::clone(&arrived), work.clone());
            tokio::spawn(async move {
                work();
                arrived.fetch_add(1, Ordering::AcqRel);
                let latest = Instant::now() + MEET_MAX;
                while arrived.load(Ordering::Acquire) < count && Instant::now() < latest {
                    std::thread::yield_now();
                }
            })
        })
        .collect();
    for task in tasks {
        // It fails only where the runtime ends.
        let _ = task.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn each_worker_of_a_quiet_runtime_is_reached() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).build().expect("threads start");
        // From one of them, as the server does. A worker that the machine keeps waiting is reached the next time.
        runtime.block_on(async {
            for _ in 0..100 {
                let seen = Arc::clone(&seen);
                let note = move || seen.lock().expect("nothing panics here").push(std::thread::current().id());
                tokio::spawn(on_each_worker(note)).await.expect("it ends");
            }
        });
        let mut seen = seen.lock().expect("nothing panics here").clone();
        seen.sort_by_key(|id| format!("{id:?}"));
        seen.dedup();
        assert_eq!(seen.len(), 3);
    }
}
