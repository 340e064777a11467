//! Dependencies between plugins.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::Reason;

/// Returns the plugins that would run but have an unmet dependency: `(index, reason)`. `known` has the ids of all
/// candidates. The dependents of such a plugin do not run either; the reason for members of a cycle names the cycle.
#[must_use]
pub fn unmet(running: &[(usize, &str, &[String])], known: &BTreeSet<&str>) -> Vec<(usize, Reason)> {
    let mut lost: BTreeMap<usize, Reason> = BTreeMap::new();
    loop {
        let here: BTreeSet<&str> = running
            .iter()
            .filter(|(at, ..)| !lost.contains_key(at))
            .map(|(_, id, _)| *id)
            .collect();
        let next: Vec<(usize, Reason)> = running
            .iter()
            .filter(|(at, ..)| !lost.contains_key(at))
            .filter_map(|(at, _, needs)| {
                let lack = needs.iter().find(|need| !here.contains(need.as_str()))?;
                let id = lack.clone();
                Some(if known.contains(lack.as_str()) {
                    (*at, Reason::DependencyDisabled { id })
                } else {
                    (*at, Reason::MissingDependency { id })
                })
            })
            .collect();
        let settled = next.is_empty();
        lost.extend(next);
        if settled {
            let circles = circles(running, &lost);
            if circles.is_empty() {
                break;
            }
            lost.extend(circles);
        }
    }
    lost.into_iter().collect()
}

/// Returns those of the rest that depend on themselves.
fn circles(
    running: &[(usize, &str, &[String])],
    lost: &BTreeMap<usize, Reason>,
) -> Vec<(usize, Reason)> {
    // A plugin that names itself is satisfied.
    let mut needs: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, id, list) in running.iter().filter(|(at, ..)| !lost.contains_key(at)) {
        needs
            .entry(id)
            .or_default()
            .extend(list.iter().map(String::as_str).filter(|need| need != id));
    }
    let mut found = Vec::new();
    for (at, id, _) in running.iter().filter(|(at, ..)| !lost.contains_key(at)) {
        if let Some(ids) = way_round(id, &needs) {
            found.push((*at, Reason::DependencyCycle { ids }));
        }
    }
    found
}

/// Returns the shortest cycle through an id, starting from its smallest id, with that id at both ends.
fn way_round(id: &str, needs: &BTreeMap<&str, BTreeSet<&str>>) -> Option<Vec<String>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut edge: Vec<&str> = [id].into();
    while !edge.is_empty() {
        let mut next = Vec::new();
        for here in edge {
            for there in needs.get(here).into_iter().flatten() {
                if *there == id {
                    let mut way: Vec<&str> = [here].into();
                    while let Some(before) = way.last().and_then(|last| from.get(last)) {
                        way.push(before);
                    }
                    way.reverse();
                    let least = way
                        .iter()
                        .enumerate()
                        .min_by_key(|(_, id)| **id)
                        .map_or(0, |(at, _)| at);
                    way.rotate_left(least);
                    way.extend(way.first().copied());
                    return Some(way.into_iter().map(str::to_owned).collect());
                }
                if !from.contains_key(there) {
                    from.insert(there, here);
                    next.push(*there);
                }
            }
        }
        edge = next;
    }
    None
}
