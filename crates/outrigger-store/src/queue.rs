//! The writer's queue.
//!
//! A record that no caller waits for wakes the writer only if it sleeps without a deadline: those of the next 50 ms
//! are written in the same batch. Waking a thread costs more than writing a row, so a caller that waits for a few
//! small records writes them itself ([`Queue::take_few`]).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_stdx::sync::lock;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::audit::{Entry, Retention};
use crate::chain::Row;
use crate::error::StoreError;

/// Maximum number of writes in one transaction.
const MAX_WRITES: usize = 512;
/// Maximum bytes of text in one transaction, not counting the write that exceeds it.
const MAX_BYTES: usize = 8 << 20;
/// Maximum number and bytes of records that a waiting caller writes itself: these take about as long as waking the
/// writer.
const FEW: (usize, usize) = (16, 64 << 10);
/// Maximum time that a record without a waiting caller is delayed for batching.
const LAZY_DELAY: Duration = Duration::from_millis(50);

pub(crate) type ReplySender<T> = oneshot::Sender<Result<T, StoreError>>;
/// Computes a new value of a `meta` key from the old one; `None` means no value.
pub(crate) type Update = Box<dyn FnOnce(Option<String>) -> Option<String> + Send>;
/// Work on the writer's connection, outside a transaction.
pub(crate) type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// A job for the writer.
pub(crate) enum Job {
    Write(Write),
    /// Answered when all earlier jobs are committed; with `sync` also on disk.
    Flush {
        sync: bool,
        answer: ReplySender<()>,
    },
    /// Runs when all earlier jobs are committed.
    Run(Work),
    /// Sets the retention of the audit.
    Keep(Retention),
}

/// A write in a transaction.
pub(crate) enum Write {
    Append {
        rows: Vec<Row>,
        /// Records of the audit.
        audit: Vec<Entry>,
        /// `None` for records that no caller waits for.
        answer: Option<ReplySender<Vec<i64>>>,
    },
    Meta {
        key: String,
        update: Option<Update>,
        answer: ReplySender<Option<String>>,
    },
}

/// Result of a write.
pub(crate) enum Done {
    Seqs(Vec<i64>),
    Value(Option<String>),
}

impl Write {
    fn bytes(&self) -> usize {
        match self {
            Self::Append { rows, audit, .. } => rows
                .iter()
                .map(|row| row.body.len())
                .chain(audit.iter().map(|entry| entry.body.len()))
                .sum(),
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
        // A dropped receiver is not an error: the write stays.
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

/// Jobs that are executed together.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) writes: Vec<Write>,
    pub(crate) flushes: Vec<(bool, ReplySender<()>)>,
    pub(crate) work: Option<Work>,
    bytes: usize,
    pub(crate) keep: Option<Retention>,
}

impl Batch {
    fn push(&mut self, job: Job) {
        match job {
            Job::Write(write) => {
                self.bytes += write.bytes();
                self.writes.push(write);
            }
            Job::Flush { sync, answer } => self.flushes.push((sync, answer)),
            Job::Run(work) => self.work = Some(work),
            Job::Keep(retention) => self.keep = Some(retention),
        }
    }
    fn is_full(&self) -> bool {
        self.work.is_some() || self.writes.len() >= MAX_WRITES || self.bytes >= MAX_BYTES
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

    fn is_lazy(&self) -> bool {
        matches!(self, Self::Write(write) if write.is_lazy())
    }

    /// Returns the bytes of the text of records; `None` for everything else.
    fn records(&self) -> Option<usize> {
        match self {
            Self::Write(write @ Write::Append { .. }) => Some(write.bytes()),
            _ => None,
        }
    }

    /// Returns whether it is an append that a caller waits for.
    pub(crate) fn is_awaited_append(&self) -> bool {
        self.is_awaited() && self.records().is_some()
    }
}

/// Jobs in order, from any thread to the holder of the connection.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// Since when a record is delayed for batching.
    lazy_since: Option<Instant>,
    /// A caller waits for an answer.
    awaited: bool,
    /// No more jobs are accepted, or there is no consumer.
    closed: bool,
    /// The writer sleeps until it is woken.
    idle: bool,
}

impl State {
    /// Returns how long the current jobs can be delayed; `None` for no limit.
    fn lazy_left(&self) -> Option<Duration> {
        if self.awaited || self.jobs.len() >= MAX_WRITES {
            return Some(Duration::ZERO);
        }
        let since = self.lazy_since?;
        Some(LAZY_DELAY.saturating_sub(since.elapsed()))
    }

    fn take(&mut self) -> Batch {
        let mut batch = Batch::default();
        while !batch.is_full()
            && let Some(job) = self.jobs.pop_front()
        {
            batch.push(job);
        }
        self.lazy_since = None;
        // What did not fit has waited long enough.
        self.awaited = !self.jobs.is_empty();
        batch
    }
}

impl Queue {
    /// Adds a job; returns false if the queue is closed. `quietly`: the caller takes it from the queue itself.
    pub(crate) fn send(&self, job: Job, quietly: bool) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        let wake = state.idle || job.is_awaited() || state.jobs.len() + 1 >= MAX_WRITES;
        if job.is_lazy() {
            state.lazy_since.get_or_insert_with(Instant::now);
        }
        state.awaited |= job.is_awaited();
        state.jobs.push_back(job);
        drop(state);
        if wake && !quietly {
            self.wake.notify_one();
        }
        true
    }

    /// Wakes the writer.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Closes the queue for new jobs. Existing ones are completed.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// Drops all jobs, since there is no consumer any longer; waiting callers get an error.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        drop(left);
    }

    /// Waits until there is something to do; returns false if the queue is closed and empty. The holder of the
    /// connection takes the jobs, so that nothing overtakes earlier ones.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.lock();
        loop {
            let left = state.lazy_left();
            if state.closed || left.is_some_and(|left| left.is_zero()) {
                return !state.jobs.is_empty();
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

    /// Takes the jobs that can be executed together, possibly none.
    pub(crate) fn take(&self) -> Batch {
        self.lock().take()
    }

    /// Takes all jobs, if they are just a few records.
    pub(crate) fn take_few(&self) -> Option<Batch> {
        let mut state = self.lock();
        let (most, room) = FEW;
        let bytes = state
            .jobs
            .iter()
            .take(most + 1)
            .map(Job::records)
            .sum::<Option<usize>>()?;
        (state.jobs.len() <= most && bytes <= room).then(|| state.take())
    }

    /// Puts records back in front of all others, and wakes the writer.
    pub(crate) fn put_back(&self, batch: Batch) {
        let mut state = self.lock();
        for write in batch.writes.into_iter().rev() {
            state.jobs.push_front(Job::Write(write));
        }
        state.awaited = true;
        drop(state);
        self.wake();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
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
        for _ in 0..3 {
            assert!(queue.send(lazy(), false));
        }
        let taken = std::thread::spawn(move || {
            assert!(other.wait());
            let (first, waited) = (other.take(), began.elapsed());
            assert!(other.wait());
            let second = other.take();
            (
                first.writes.len(),
                waited,
                second.flushes.len(),
                !other.wait(),
            )
        });
        std::thread::sleep(LAZY_DELAY * 2);
        let (answer, _asked) = oneshot::channel();
        let flush = Job::Flush {
            sync: false,
            answer,
        };
        queue.send(flush, false);
        queue.close();
        let (lazies, waited, flushes, ended) = taken.join().unwrap();
        assert_eq!((lazies, flushes, ended), (3, 1, true));
        assert!(waited >= LAZY_DELAY, "{waited:?}");
        assert!(!queue.send(lazy(), false), "closed");
    }

    #[test]
    fn what_is_left_in_a_closed_queue_is_worked_off() {
        let queue = Queue::default();
        for _ in 0..MAX_WRITES + 1 {
            queue.send(lazy(), false);
        }
        queue.close();
        let next = || queue.wait().then(|| queue.take().writes.len());
        let batches: Vec<usize> = std::iter::from_fn(next).collect();
        assert_eq!(batches, [MAX_WRITES, 1]);
    }

    #[test]
    fn only_a_few_records_are_taken_by_who_waits_for_them_and_come_back_in_their_place() {
        let named = |key: &str| {
            let (answer, _) = oneshot::channel();
            let key = key.to_owned();
            let update = None;
            Job::Write(Write::Meta {
                key,
                update,
                answer,
            })
        };
        let rows: [(&str, Vec<Job>, Option<usize>); 5] = [
            ("nothing", Vec::new(), Some(0)),
            ("two", vec![lazy(), lazy()], Some(2)),
            ("a value", vec![lazy(), named("a")], None),
            ("as many", (0..FEW.0).map(|_| lazy()).collect(), Some(FEW.0)),
            ("one more", (0..=FEW.0).map(|_| lazy()).collect(), None),
        ];
        for (what, jobs, taken) in rows {
            let queue = Queue::default();
            let all = jobs.len();
            for job in jobs {
                queue.send(job, true);
            }
            let few = queue.take_few();
            assert_eq!(few.as_ref().map(|few| few.writes.len()), taken, "{what}");
            queue.send(named("behind"), true);
            if let Some(few) = few {
                queue.put_back(few);
            }
            assert!(queue.wait(), "{what}");
            let batch = queue.take();
            assert_eq!(batch.writes.len(), all + 1, "{what}");
            assert!(
                matches!(batch.writes.last(), Some(Write::Meta { key, .. }) if key == "behind"),
                "{what}"
            );
        }
    }
}
