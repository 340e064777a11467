//! Calls that take their time: so many are made at once, on threads of their own, and the others wait for their turn.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::small_thread;

/// Most calls of one line that are made at a time.
const AT_ONCE: usize = 32;
/// Most that wait. A thread of the tree waits with each, so it takes many to get here.
const WAITING: usize = 512;

/// One call, with its answer.
pub(super) type Turn = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(super) struct Line(Mutex<Turns>);

#[derive(Default)]
struct Turns {
    running: usize,
    waiting: VecDeque<Turn>,
}

impl Line {
    /// Takes a turn, now or when others are done. False when there is no room, or no thread can be started.
    pub(super) fn join(self: &Arc<Self>, turn: Turn) -> bool {
        {
            let mut turns = self.turns();
            if turns.running == AT_ONCE {
                let room = turns.waiting.len() < WAITING;
                if room {
                    turns.waiting.push_back(turn);
                }
                return room;
            }
            turns.running += 1;
        }
        let line = Arc::clone(self);
        let started = small_thread("connect", move || {
            let mut next = Some(turn);
            while let Some(turn) = next {
                turn();
                next = line.next();
            }
        });
        if started.is_err() {
            self.turns().running -= 1;
        }
        started.is_ok()
    }

    /// The next turn for a thread that is free; without one it ends.
    fn next(&self) -> Option<Turn> {
        let mut turns = self.turns();
        let next = turns.waiting.pop_front();
        if next.is_none() {
            turns.running -= 1;
        }
        next
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn more_than_are_made_at_once_wait_and_are_made() {
        let line = Arc::new(Line::default());
        let (begun, begins) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let turn = |number: usize| -> Turn {
            let (begun, released) = (begun.clone(), Arc::clone(&released));
            Box::new(move || {
                begun.send(number).unwrap();
                let _ = released.lock().unwrap().recv();
            })
        };
        for number in 0..AT_ONCE + WAITING {
            assert!(line.join(turn(number)), "{number}");
        }
        assert!(!line.join(turn(0)), "there is no end of them");
        let first: Vec<usize> = begins.iter().take(AT_ONCE).collect();
        assert!(first.iter().all(|number| *number < AT_ONCE), "{first:?}");
        assert!(begins.try_recv().is_err());
        drop(release);
        let rest: Vec<usize> = begins.iter().take(WAITING).collect();
        assert_eq!(rest.len(), WAITING);
    }
}
