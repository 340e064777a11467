//! Handlers that timed out in a turn and are skipped for the rest of it (A13).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use outrigger_protocol::id::TurnId;

/// Number of distinct places in a turn at which a handler may time out before it is skipped.
const PLACES: usize = 2;
/// Number of turns that are remembered; the oldest is forgotten first.
const TURNS: usize = 256;

/// Places of timeouts, by turn and handler.
pub struct Strikes<Who, Place>(VecDeque<(TurnId, BTreeMap<Who, Vec<Place>>)>);

impl<Who, Place> Default for Strikes<Who, Place> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<Who: Clone + Ord, Place: PartialEq> Strikes<Who, Place> {
    /// Returns where a handler timed out that is skipped for the rest of the turn.
    #[must_use]
    pub fn out(&self, turn: &TurnId, who: &Who) -> Option<&[Place]> {
        let (_, strikes) = self.0.iter().find(|(id, _)| id == turn)?;
        let places = strikes.get(who)?;
        (places.len() >= PLACES).then_some(places)
    }

    /// Records a timeout; the same place counts once.
    pub fn add(&mut self, turn: &TurnId, who: &Who, place: Place) {
        if !self.0.iter().any(|(id, _)| id == turn) {
            if self.0.len() >= TURNS {
                self.0.pop_front();
            }
            self.0.push_back((turn.clone(), BTreeMap::new()));
        }
        let Some((_, strikes)) = self.0.iter_mut().find(|(id, _)| id == turn) else {
            return;
        };
        let places = strikes.entry(who.clone()).or_default();
        if !places.contains(&place) {
            places.push(place);
        }
    }
}
