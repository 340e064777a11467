//! Who may change a tab (C9, 6). A lease has an owner, a time to live and a fencing token: a number that only grows, so that an owner
//! who has lost a lease without noticing is refused by its old number.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Lifetime of an unused lease, in milliseconds.
pub const LIFE_MS: u64 = 30_000;
/// Lifetime of a place in the queue without another request, in milliseconds.
pub const WAIT_MS: u64 = 15_000;
/// Maximum number of owners waiting for a tab.
const MAX_WAITING: usize = 64;

/// Owner of a lease: an agent of a session, for one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    /// Session.
    pub session: String,
    /// Agent.
    pub agent: String,
    /// Turn of the session, starting at 0.
    pub turn: u64,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the agent {} of session {}", self.agent, self.session)
    }
}

/// A lease, for its owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Tab.
    pub tab: String,
    /// Fencing token.
    pub token: u64,
    /// Owner.
    pub owner: Owner,
}

/// Why a tab may not be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseError {
    /// There is no lease on the tab.
    None {
        /// Tab.
        tab: String,
    },
    /// The token is not that of the lease: it is older, or was never given out.
    Stale {
        /// Tab.
        tab: String,
        /// The given token.
        token: u64,
    },
    /// It was not used for [`LIFE_MS`].
    Expired {
        /// Tab.
        tab: String,
    },
    /// Another owner has it.
    Held {
        /// Tab.
        tab: String,
        /// The owner.
        by: Owner,
        /// Place in the queue, starting at 1.
        place: usize,
    },
    /// The user has clicked or typed in it.
    Person {
        /// Tab.
        tab: String,
    },
}

impl LeaseError {
    /// A stable code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::None { .. } => "lease.none",
            Self::Stale { .. } => "lease.stale",
            Self::Expired { .. } => "lease.expired",
            Self::Held { .. } => "lease.held",
            Self::Person { .. } => "lease.person",
        }
    }
}

impl fmt::Display for LeaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None { tab } => write!(f, "there is no lease on the tab {tab}"),
            Self::Stale { tab, token } => {
                write!(f, "the lease {token} on the tab {tab} is no longer valid")
            }
            Self::Expired { tab } => write!(f, "the lease on the tab {tab} has expired"),
            Self::Held { tab, by, place } => {
                write!(
                    f,
                    "the tab {tab} is used by {by}; place {place} in the queue"
                )
            }
            Self::Person { tab } => {
                write!(
                    f,
                    "a person has clicked or typed in the tab {tab} and has it now"
                )
            }
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Lease {
    token: u64,
    owner: Owner,
    until: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Desk {
    lease: Option<Lease>,
    /// Waiting owners, with the end of their wait.
    waiting: VecDeque<(Owner, u64)>,
    /// The user has it.
    person: bool,
}

/// The leases of a browser. Times are milliseconds of any monotonic clock. They are stored as JSON if their host ends
/// before the browser.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Leases {
    /// The last token given out. Tokens are not reused, also not for another tab.
    last: u64,
    tabs: BTreeMap<String, Desk>,
}

impl Leases {
    /// Creates it without leases.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Acquires the lease on a tab: returns the owner's existing one, a new one if the tab is free, or a place in the queue.
    ///
    /// # Errors
    /// [`LeaseError::Held`] and [`LeaseError::Person`].
    pub fn acquire(&mut self, tab: &str, owner: &Owner, now: u64) -> Result<Grant, LeaseError> {
        let desk = self.tabs.entry(tab.to_string()).or_default();
        if desk.person {
            return Err(LeaseError::Person { tab: tab.into() });
        }
        desk.lease.take_if(|lease| lease.until <= now);
        desk.waiting.retain(|(_, until)| *until > now);
        if let Some(lease) = desk.lease.as_mut().filter(|it| it.owner == *owner) {
            lease.until = now.saturating_add(LIFE_MS);
            let token = lease.token;
            return Ok(Grant {
                tab: tab.into(),
                token,
                owner: owner.clone(),
            });
        }
        let first = desk.waiting.front().map(|(first, _)| first.clone());
        if desk.lease.is_none() && first.as_ref().is_none_or(|first| first == owner) {
            desk.waiting.pop_front();
            self.last += 1;
            let token = self.last;
            let until = now.saturating_add(LIFE_MS);
            desk.lease = Some(Lease {
                token,
                owner: owner.clone(),
                until,
            });
            return Ok(Grant {
                tab: tab.into(),
                token,
                owner: owner.clone(),
            });
        }
        let by = desk
            .lease
            .as_ref()
            .map(|lease| lease.owner.clone())
            .or(first);
        let place = desk.wait(owner, now);
        Err(LeaseError::Held {
            tab: tab.into(),
            by: by.unwrap_or_default(),
            place,
        })
    }

    /// Checks a lease right before a change, and renews it.
    ///
    /// # Errors
    /// All kinds of [`LeaseError`].
    pub fn check(&mut self, grant: &Grant, now: u64) -> Result<(), LeaseError> {
        let tab = || grant.tab.clone();
        let desk = self
            .tabs
            .get_mut(&grant.tab)
            .ok_or_else(|| LeaseError::None { tab: tab() })?;
        if desk.person {
            return Err(LeaseError::Person { tab: tab() });
        }
        let Some(lease) = desk.lease.as_mut() else {
            return Err(LeaseError::None { tab: tab() });
        };
        if lease.token != grant.token || lease.owner != grant.owner {
            return Err(LeaseError::Stale {
                tab: tab(),
                token: grant.token,
            });
        }
        if lease.until <= now {
            desk.lease = None;
            return Err(LeaseError::Expired { tab: tab() });
        }
        lease.until = now.saturating_add(LIFE_MS);
        Ok(())
    }

    /// Releases a lease. Has no effect for an invalid one.
    pub fn release(&mut self, grant: &Grant) {
        if let Some(desk) = self.tabs.get_mut(&grant.tab) {
            desk.lease.take_if(|lease| lease.token == grant.token);
        }
    }

    /// Releases all leases and places in queues of a session whose turn has ended or was cancelled.
    pub fn end_turn(&mut self, session: &str) {
        for desk in self.tabs.values_mut() {
            desk.lease.take_if(|lease| lease.owner.session == session);
            desk.waiting.retain(|(owner, _)| owner.session != session);
        }
    }

    /// Records that the user has clicked or typed in a tab. Its owner notices at the next check.
    pub fn taken_by_person(&mut self, tab: &str) {
        let desk = self.tabs.entry(tab.to_string()).or_default();
        desk.lease = None;
        desk.person = true;
    }

    /// Returns whether the user has a tab.
    #[must_use]
    pub fn has_person(&self, tab: &str) -> bool {
        self.tabs.get(tab).is_some_and(|desk| desk.person)
    }

    /// The user allows agents to continue in a tab.
    pub fn handed_back(&mut self, tab: &str) {
        if let Some(desk) = self.tabs.get_mut(tab) {
            desk.person = false;
        }
    }

    /// Removes a closed tab.
    pub fn forget(&mut self, tab: &str) {
        self.tabs.remove(tab);
    }

    /// Returns the owners of tabs, for display.
    #[must_use]
    pub fn held(&self) -> Vec<Grant> {
        self.tabs
            .iter()
            .filter_map(|(tab, desk)| {
                let lease = desk.lease.as_ref()?;
                Some(Grant {
                    tab: tab.clone(),
                    token: lease.token,
                    owner: lease.owner.clone(),
                })
            })
            .collect()
    }
}

impl Desk {
    /// Returns the owner's place in the queue, starting at 1.
    fn wait(&mut self, owner: &Owner, now: u64) -> usize {
        let until = now.saturating_add(WAIT_MS);
        if let Some(at) = self.waiting.iter().position(|(it, _)| it == owner) {
            if let Some(place) = self.waiting.get_mut(at) {
                place.1 = until;
            }
            return at + 1;
        }
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push_back((owner.clone(), until));
        }
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use proptest::prelude::*;

    use super::*;

    fn owner(session: &str) -> Owner {
        Owner {
            session: session.into(),
            agent: "build".into(),
            turn: 0,
        }
    }

    #[test]
    fn one_owner_at_a_time_in_the_order_of_asking() {
        let mut leases = Leases::new();
        let (a, b, c) = (owner("a"), owner("b"), owner("c"));
        let first = leases.acquire("t1", &a, 0).unwrap();
        assert_eq!(leases.acquire("t1", &a, 1).unwrap(), first);
        let held = leases.acquire("t1", &b, 2).unwrap_err();
        assert_eq!(
            held,
            LeaseError::Held {
                tab: "t1".into(),
                by: a.clone(),
                place: 1
            }
        );
        assert!(matches!(
            leases.acquire("t1", &c, 3),
            Err(LeaseError::Held { place: 2, .. })
        ));
        leases.end_turn("a");
        // Not before its turn.
        assert!(matches!(
            leases.acquire("t1", &c, 4),
            Err(LeaseError::Held { place: 2, .. })
        ));
        let second = leases.acquire("t1", &b, 5).unwrap();
        assert!(second.token > first.token);
        assert_eq!(leases.check(&first, 6).unwrap_err().code(), "lease.stale");
        assert_eq!(leases.check(&second, 6), Ok(()));
        // An owner that does not ask again loses its place.
        leases.release(&second);
        assert!(leases.acquire("t1", &a, 5 + WAIT_MS + 10).is_ok());
        // Another tab is another lease.
        assert!(leases.acquire("t2", &c, 7).is_ok());
    }

    #[test]
    fn it_ends_with_its_time_its_tab_and_a_person() {
        let mut leases = Leases::new();
        let a = owner("a");
        let grant = leases.acquire("t1", &a, 0).unwrap();
        assert_eq!(leases.check(&grant, LIFE_MS - 1), Ok(()));
        // It was used, so it is renewed.
        assert_eq!(leases.check(&grant, LIFE_MS + 1), Ok(()));
        assert_eq!(
            leases.check(&grant, 3 * LIFE_MS).unwrap_err().code(),
            "lease.expired"
        );
        let grant = leases.acquire("t1", &a, 0).unwrap();
        leases.taken_by_person("t1");
        assert_eq!(leases.check(&grant, 1).unwrap_err().code(), "lease.person");
        assert_eq!(
            leases.acquire("t1", &a, 2).unwrap_err().code(),
            "lease.person"
        );
        leases.handed_back("t1");
        assert_eq!(leases.check(&grant, 3).unwrap_err().code(), "lease.none");
        let again = leases.acquire("t1", &a, 3).unwrap();
        assert!(again.token > grant.token);
        leases.forget("t1");
        assert_eq!(leases.check(&again, 4).unwrap_err().code(), "lease.none");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Acquire(u8, u8),
        EndTurn(u8),
        Person(u8),
        HandBack(u8),
        Forget(u8),
        Wait(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..3u8, 0..4u8).prop_map(|(tab, who)| Step::Acquire(tab, who)),
            1 => (0..4u8).prop_map(Step::EndTurn),
            1 => (0..3u8).prop_map(Step::Person),
            1 => (0..3u8).prop_map(Step::HandBack),
            1 => (0..3u8).prop_map(Step::Forget),
            1 => (0..40_000u32).prop_map(Step::Wait),
        ]
    }

    proptest! {
        /// Of all leases ever given out for a tab, at most one is valid, the newest; a forged one never is.
        #[test]
        fn at_most_the_newest_grant_counts(steps in prop::collection::vec(step(), 0..80)) {
            let mut leases = Leases::new();
            let mut given: Vec<Grant> = Vec::new();
            let mut now = 0;
            for step in steps {
                match step {
                    Step::Acquire(tab, who) => {
                        if let Ok(grant) = leases.acquire(&format!("t{tab}"), &owner(&format!("s{who}")), now) {
                            given.push(grant);
                        }
                    }
                    Step::EndTurn(who) => leases.end_turn(&format!("s{who}")),
                    Step::Person(tab) => leases.taken_by_person(&format!("t{tab}")),
                    Step::HandBack(tab) => leases.handed_back(&format!("t{tab}")),
                    Step::Forget(tab) => leases.forget(&format!("t{tab}")),
                    Step::Wait(ms) => now += u64::from(ms),
                }
                for tab in ["t0", "t1", "t2"] {
                    let of_tab = || given.iter().filter(|it| it.tab == tab);
                    let newest = of_tab().map(|it| it.token).max();
                    for grant in of_tab() {
                        let counts = leases.clone().check(grant, now).is_ok();
                        prop_assert!(!counts || Some(grant.token) == newest);
                        let thief = Grant { owner: owner("thief"), ..grant.clone() };
                        prop_assert!(leases.clone().check(&thief, now).is_err());
                        let forged = Grant { token: grant.token + 1000, ..grant.clone() };
                        prop_assert!(leases.clone().check(&forged, now).is_err());
                    }
                }
            }
        }
    }
}
