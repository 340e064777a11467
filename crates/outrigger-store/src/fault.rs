//! Named fault points at which a test can kill the real process (requirement: crash safety is tested in the real
//! binary).
//!
//! `OUTRIGGER_FAULT=store.before_commit` kills the process with SIGKILL the first time that point is reached,
//! `OUTRIGGER_FAULT=store.before_commit:3` the third time. SIGKILL and not `abort`, because no handler and no
//! destructor of the process may run afterwards. The points are always compiled in: the tested binary is the shipped
//! one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The environment variable that names a point.
pub const VARIABLE: &str = "OUTRIGGER_FAULT";

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);
static PLAN: OnceLock<Option<Plan>> = OnceLock::new();

#[derive(Debug)]
struct Plan {
    name: String,
    nth: u64,
    seen: AtomicU64,
}

impl Plan {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let (name, nth) = match text.rsplit_once(':') {
            Some((name, n)) => match n.parse() {
                Ok(n) => (name, n),
                Err(_) => (text, 1),
            },
            None => (text, 1),
        };
        Some(Self {
            name: name.to_owned(),
            nth,
            seen: AtomicU64::new(0),
        })
    }

    /// Returns whether this pass is the planned one.
    fn hit(&self, name: &str) -> bool {
        self.name == name && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.nth
    }
}

/// Dies here if `OUTRIGGER_FAULT` names this point. Costs one relaxed atomic load if the variable is not set.
#[inline]
pub fn point(name: &str) {
    if STATE.load(Ordering::Relaxed) != OFF {
        look(name);
    }
}

#[cold]
fn look(name: &str) {
    let plan = PLAN.get_or_init(|| std::env::var(VARIABLE).ok().and_then(|v| Plan::parse(&v)));
    STATE.store(if plan.is_some() { ON } else { OFF }, Ordering::Relaxed);
    if plan.as_ref().is_some_and(|plan| plan.hit(name)) {
        die();
    }
}

fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The signal is delivered before the call returns; this line only satisfies the type.
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_names_a_point_and_a_pass() {
        for (text, name, nth) in [
            ("store.before_commit", "store.before_commit", 1),
            ("store.before_commit:3", "store.before_commit", 3),
            ("a:b", "a:b", 1),
        ] {
            let plan = Plan::parse(text).unwrap();
            assert_eq!((plan.name.as_str(), plan.nth), (name, nth), "{text}");
        }
        assert!(Plan::parse("").is_none());
    }

    #[test]
    fn only_the_named_pass_hits() {
        let plan = Plan::parse("x:2").unwrap();
        assert_eq!(
            [plan.hit("x"), plan.hit("y"), plan.hit("x"), plan.hit("x")],
            [false, false, true, false]
        );
    }
}
