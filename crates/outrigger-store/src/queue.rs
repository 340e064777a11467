//! What waits for the writer.
//!
//! A record that nobody waits for wakes the writer only when it sleeps without a deadline: the others of the next 50 ms find
//! it on its way. Waking a thread costs more than writing a row.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::audit::{Entry, Retention};
use crate::chain::Row;
use crate::error::StoreError;

/// Most writes in one transaction.
const MOST_WRITES: usize = 512;
/// Most text in one transaction, in bytes, not counting the write that goes over it.
const MOST_BYTES: usize = 8 << 20;
/// Longest time that a record without an answer waits for company.
const LAZY_DELAY: Duration = Duration::from_millis(50);

pub(crate) type Answer<T> = oneshot::Sender<Result<T, StoreError>>;
/// Makes a new value of a `meta` key from the old one; `None` is no value.
pub(crate) type Update = Box<dyn FnOnce(Option<String>) -> Option<String> + Send>;
/// Work on the writer's connection, outside of a transaction.
pub(crate) type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// Something for the writer to do.
pub(crate) enum Job {
    Write(Write),
    /// Answered when everything before it is committed; with `sync` also on disk.
    Flush {
        sync: bool,
        answer: Answer<()>,
    },
    /// Done when everything before it is committed.
    Run(Work),
    /// How much of the audit is kept.
    Keep(Retention),
}

/// Something to write in a transaction.
pub(crate) enum Write {
    Append {
        rows: Vec<Row>,
        /// Records of the audit.
        audit: Vec<Entry>,
        /// None for records that no one waits for.
        answer: Option<Answer<Vec<i64>>>,
    },
    Meta {
        key: String,
        update: Option<Update>,
        answer: Answer<Option<String>>,
    },
}

/// What a write gave.
pub(crate) enum Done {
    Seqs(Vec<i64>),
    Value(Option<String>),
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Append { rows, audit, .. } => {
                let rows = rows.iter().map(|row| row.body.len());
                rows.chain(audit.iter().map(|entry| entry.body.len())).sum()
            }
            Self::Meta { .. } => 0,
        }
    }
    pub(crate) fn audited(&self) -> usize {
        match self {
            Self::Append { audit, .. } => audit.len(),
            Self::Meta { .. } => 0,
        }
    }
    fn is_lazy(&self) -> bool {
        matches!(self, Self::Append { answer: None, .. })
    }
    pub(crate) fn answer(self, done: Result<Done, StoreError>) {
        // An answer that no one waits for any more is no error: what was written stays.
        match self {
            Self::Append { answer, .. } => {
                if let Some(answer) = answer {
                    let _ = answer.send(done.map(|done| match done {
                        Done::Seqs(seqs) => seqs,
                        Done::Value(_) => Vec::new(),
                    }));
                }
            }
            Self::Meta { answer, .. } => {
                let _ = answer.send(done.map(|done| match done {
                    Done::Value(value) => value,
                    Done::Seqs(_) => None,
                }));
            }
        }
    }
}

/// Jobs that are done together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) flushes: Vec<(bool, Answer<()>)>,
    pub(crate) work: Option<Work>,
    bytes: usize,
    /// Since when a record waits for company.
    lazy_since: Option<Instant>,
    /// Someone waits for the answer.
    awaited: bool,
    pub(crate) keep: Option<Retention>,
}

impl Batch {
    fn push(&mut self, job: Job) {
        match job {
            Job::Write(write) => {
                self.bytes += write.bytes();
                if write.is_lazy() {
                    self.lazy_since.get_or_insert_with(Instant::now);
                } else {
                    self.awaited = true;
                }
                self.writes.push(write);
            }
            Job::Flush { sync, answer } => {
                self.flushes.push((sync, answer));
                self.awaited = true;
            }
            Job::Run(work) => {
                self.work = Some(work);
                self.awaited = true;
            }
            Job::Keep(retention) => self.keep = Some(retention),
        }
    }
    fn is_empty(&self) -> bool {
        let nothing = self.writes.is_empty() && self.flushes.is_empty();
        nothing && self.work.is_none() && self.keep.is_none()
    }
    fn is_full(&self) -> bool {
        self.work.is_some() || self.writes.len() >= MOST_WRITES || self.bytes >= MOST_BYTES
    }
}

impl Job {
    fn is_awaited(&self) -> bool {
        match self {
            Self::Write(write) => !write.is_lazy(),
            Self::Flush { .. } | Self::Run(_) => true,
            Self::Keep(_) => false,
        }
    }
}

/// Jobs in order, from any thread to the writer's.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Nothing comes any more, or nobody takes it.
    closed: bool,
    /// The writer sleeps until somebody wakes it.
    idle: bool,
}

impl Queue {
    /// Adds a job; false when the queue is closed.
    pub(crate) fn send(&self, job: Job) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let wake = state.idle || job.is_awaited() || state.jobs.len() + 1 >= MOST_WRITES;
        state.jobs.push_back(job);
        drop(state);
        if wake {
            self.wake.notify_one();
        }
        true
    }

    /// Nothing is taken any more. What is in it is worked off.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Nobody takes anything any more: what is in it is dropped, and who waits for an answer learns that none comes.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        drop(left);
    }

    /// Waits for the next batch; `None` when the queue is closed and empty.
    pub(crate) fn next(&self) -> Option<Batch> {
        let mut batch = Batch::default();
        let mut state = self.lock();
        loop {
            while !batch.is_full()
                && let Some(job) = state.jobs.pop_front()
            {
                batch.push(job);
            }
            let left = batch
                .lazy_since
                .map(|since| LAZY_DELAY.saturating_sub(since.elapsed()));
            let done = batch.is_full() || batch.awaited || left.is_some_and(|left| left.is_zero());
            if done || state.closed {
                return (!batch.is_empty()).then_some(batch);
            }
            state = match left {
                Some(left) => {
                    let woken = self.wake.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    state.idle = true;
                    let mut woken = self
                        .wake
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                    woken.idle = false;
                    woken
                }
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn lazy() -> Job {
        Job::Write(Write::Append {
            rows: Vec::new(),
            audit: Vec::new(),
            answer: None,
        })
    }

    #[test]
    fn jobs_come_in_order_and_lazy_ones_wait_for_company() {
        let queue = Arc::new(Queue::default());
        let other = Arc::clone(&queue);
        let began = Instant::now();
        let taken = std::thread::spawn(move || {
            let first = other.next().unwrap();
            let waited = began.elapsed();
            let second = other.next().unwrap();
            (
                first.writes.len(),
                waited,
                second.flushes.len(),
                other.next().is_none(),
            )
        });
        for _ in 0..3 {
            assert!(queue.send(lazy()));
        }
        std::thread::sleep(LAZY_DELAY * 2);
        let (answer, _asked) = oneshot::channel();
        queue.send(Job::Flush {
            sync: false,
            answer,
        });
        queue.close();
        let (lazies, waited, flushes, ended) = taken.join().unwrap();
        assert_eq!((lazies, flushes, ended), (3, 1, true));
        assert!(waited >= LAZY_DELAY, "{waited:?}");
        assert!(!queue.send(lazy()), "closed");
    }

    #[test]
    fn what_is_left_in_a_closed_queue_is_worked_off() {
        let queue = Queue::default();
        for _ in 0..MOST_WRITES + 1 {
            queue.send(lazy());
        }
        queue.close();
        let batches: Vec<usize> = std::iter::from_fn(|| queue.next())
            .map(|batch| batch.writes.len())
            .collect();
        assert_eq!(batches, [MOST_WRITES, 1]);
    }
}
