//! Calls that may take long: so many are made at once, on threads of their own, and the others are queued.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use outrigger_files::sync::lock;

use super::small_thread;

/// Calls of one pool that are made at a time.
const MAX_RUNNING: usize = 32;
/// Calls that wait. A thread of the tree waits with each, so it takes many to get here.
const MAX_WAITING: usize = 512;

/// One call, with its answer.
pub(super) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct WorkerPool(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    running: usize,
    waiting: VecDeque<Job>,
}

impl WorkerPool {
    /// Runs a job, now or when others are done. False when there is no room, or no thread can be started.
    pub(super) fn submit(self: &Arc<Self>, job: Job) -> bool {
        {
            let mut jobs = self.jobs();
            if jobs.running == MAX_RUNNING {
                let room = jobs.waiting.len() < MAX_WAITING;
                if room {
                    jobs.waiting.push_back(job);
                }
                return room;
            }
            jobs.running += 1;
        }
        let pool = Arc::clone(self);
        let started = small_thread("connect", move || {
            let mut next = Some(job);
            while let Some(job) = next {
                job();
                next = pool.next();
            }
        });
        if started.is_err() {
            self.jobs().running -= 1;
        }
        started.is_ok()
    }

    /// The next job for a thread that is free; without one it ends.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        let next = jobs.waiting.pop_front();
        if next.is_none() {
            jobs.running -= 1;
        }
        next
    }

    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn more_than_are_made_at_once_wait_and_are_made() {
        let pool = Arc::new(WorkerPool::default());
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let job = |number: usize| -> Job {
            let (begun, released) = (begun.clone(), Arc::clone(&released));
            Box::new(move || {
                begun.send(number).unwrap();
                let _ = released.lock().unwrap().recv();
            })
        };
        for number in 0..MAX_RUNNING + MAX_WAITING {
            assert!(pool.submit(job(number)), "{number}");
        }
        assert!(!pool.submit(job(0)), "there is no end of them");
        let first: Vec<usize> = begins.iter().take(MAX_RUNNING).collect();
        assert!(
            first.iter().all(|number| *number < MAX_RUNNING),
            "{first:?}"
        );
        assert!(begins.try_recv().is_err());
        drop(release);
        let rest: Vec<usize> = begins.iter().take(MAX_WAITING).collect();
        assert_eq!(rest.len(), MAX_WAITING);
    }
}
