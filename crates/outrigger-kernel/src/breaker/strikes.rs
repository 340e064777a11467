//! Who timed out where in a turn, and so sits out the rest of it (A13).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use outrigger_protocol::id::TurnId;

/// Places of one turn at which one may time out before it sits out the rest.
const PLACES: usize = 2;
/// Turns that are kept in mind; the oldest is forgotten first.
const TURNS: usize = 256;

/// By turn and by the one that timed out: the places where it did.
pub struct Strikes<Who, Place>(VecDeque<(TurnId, BTreeMap<Who, Vec<Place>>)>);

impl<Who, Place> Default for Strikes<Who, Place> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<Who: Clone + Ord, Place: PartialEq> Strikes<Who, Place> {
    /// Where one timed out that sits out the rest of a turn.
    #[must_use]
    pub fn out(&self, turn: &TurnId, who: &Who) -> Option<&[Place]> {
        let (_, strikes) = self.0.iter().find(|(id, _)| id == turn)?;
        let places = strikes.get(who)?;
        (places.len() >= PLACES).then_some(places)
    }

    /// It has timed out; the same place counts once.
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
