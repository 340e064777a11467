//! Tasks that are only awaited at shutdown: titles, hooks that only observe, events published from where no caller can wait.

use std::sync::Mutex;
use std::time::Duration;

use outrigger_stdx::sync::lock;
use tokio::task::JoinSet;

/// Background tasks.
#[derive(Debug, Default)]
pub struct Background(Mutex<JoinSet<()>>);

impl Background {
    /// Starts a task.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0);
        // Remove finished tasks: otherwise a long-lived agent would keep the memory of each.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Returns whether no task is running.
    pub fn is_quiet(&self) -> bool {
        let mut tasks = lock(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.is_empty()
    }

    /// Waits for all of them, at most `limit`; tasks that start meanwhile are included.
    pub async fn finish(&self, limit: Duration) {
        let end = tokio::time::Instant::now() + limit;
        loop {
            let mut tasks = std::mem::take(&mut *lock(&self.0));
            if tasks.is_empty() {
                return;
            }
            let all = async { while tasks.join_next().await.is_some() {} };
            if tokio::time::timeout_at(end, all).await.is_err() {
                tasks.abort_all();
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_done_is_not_kept_and_what_runs_is_waited_for() {
        let background = Background::default();
        for _ in 0..100 {
            background.spawn(async {});
            tokio::task::yield_now().await;
        }
        assert!(lock(&background.0).len() <= 2);
        let (done, ended) = tokio::sync::oneshot::channel();
        background.spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let _ = done.send(());
        });
        background.finish(Duration::from_secs(60)).await;
        assert_eq!(ended.await, Ok(()));
        background.spawn(std::future::pending());
        background.finish(Duration::from_millis(20)).await;
        assert!(lock(&background.0).is_empty());
    }
}
