//! What waits for the writer.
//!
//! A record that nobody waits for wakes the writer only when it sleeps without a deadline: those of the next 50 ms are
//! written by the same batch. Waking a thread costs more than writing a row, so a caller that waits for a few small
//! records writes them itself ([`Queue::take_few`]).

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_files::sync::lock;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::audit::{Entry, Retention};
use crate::chain::Row;
use crate::error::StoreError;

/// Writes in one transaction.
const MAX_WRITES: usize = 512;
/// Text in one transaction, in bytes, not counting the write that exceeds it.
const MAX_BYTES: usize = 8 << 20;
/// Records, and bytes of text, that a waiting caller writes itself: these take about as long as waking the writer
/// would.
const FEW: (usize, usize) = (16, 64 << 10);
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

    /// The text of records, in bytes; `None` for everything else.
    fn records(&self) -> Option<usize> {
        match self {
            Self::Write(write @ Write::Append { .. }) => Some(write.bytes()),
            _ => None,
        }
    }

    /// Records that somebody waits for.
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
    /// Since when a record waits for company.
    lazy_since: Option<Instant>,
    /// Someone waits for an answer.
    awaited: bool,
    /// Nothing comes any more, or nobody takes it.
    closed: bool,
    /// The writer sleeps until somebody wakes it.
    idle: bool,
}

impl State {
    /// For how long what is there can wait: for ever, where nothing is said.
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
    /// Adds a job; false when the queue is closed. `quietly`: the caller takes it from the queue itself.
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

    /// Has the writer look.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
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

    /// Waits until there is something to be done now; false when the queue is closed and empty. The holder of the
    /// connection takes what is there, so that nothing overtakes earlier jobs.
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

    /// What can be done together of what is there, perhaps nothing.
    pub(crate) fn take(&self) -> Batch {
        self.lock().take()
    }

    /// All that is there, where that is a few records and nothing else.
    pub(crate) fn take_few(&self) -> Option<Batch> {
        let mut state = self.lock();
        let (most, room) = FEW;
        let bytes = state.jobs.iter().take(most + 1).map(Job::records);
        let bytes = bytes.sum::<Option<usize>>()?;
        (state.jobs.len() <= most && bytes <= room).then(|| state.take())
    }

    /// Puts records back in front of all others, and has the writer see to them.
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
