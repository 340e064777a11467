//! A pool for slow calls: a limited number runs at once on separate threads, and the others are queued.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use outrigger_stdx::sync::lock;

use super::small_thread;

/// Maximum number of calls of one pool that run at once.
const MAX_RUNNING: usize = 32;
/// Maximum number of queued calls. Each blocks a thread of the process tree, so it takes many to get here.
const MAX_WAITING: usize = 512;

/// One call, including its reply.
pub(super) type Job = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct WorkerPool(Mutex<Jobs>);

#[derive(Default)]
struct Jobs {
    running: usize,
    waiting: VecDeque<Job>,
}

impl WorkerPool {
    /// Runs a job now or when others are done. Returns `false` if there is no room, or no thread can be
    /// started.
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

    /// Returns the next job for an idle thread, which ends without one.
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
