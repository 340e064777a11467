//! The decision.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::depends::unmet;
use super::{Candidate, Entry, Machine, Reason, Rules, Source};
use crate::permission::matches;

/// Decides about all candidates: which of each id counts, then policy, admission and dependencies in this order (D2, D3). The
/// answer is sorted by id and precedence, whatever the order of the candidates was.
#[must_use]
pub fn decide(mut candidates: Vec<Candidate>, rules: &Rules, machine: &Machine) -> Vec<Entry> {
    candidates.sort_by(|a, b| place(a).cmp(&place(b)));
    let mut entries: Vec<Entry> = Vec::with_capacity(candidates.len());
    let mut first: BTreeMap<String, usize> = BTreeMap::new();
    let reserved: BTreeSet<String> = candidates
        .iter()
        .filter(|it| it.source == Source::Bundled && it.required)
        .map(|it| it.id.clone())
        .collect();
    for candidate in candidates {
        let counts = first.get(&candidate.id).and_then(|at| entries.get(*at));
        let disabled = identity(&candidate, counts.map(|entry| &entry.candidate), &reserved)
            .or_else(|| policy(&candidate, rules))
            .or_else(|| admission(&candidate, rules))
            .or_else(|| requirements(&candidate, machine));
        // What may not be called so stands in nobody's way. What is switched off does: what is below it is not what was meant.
        let refused = disabled == Some(Reason::ReservedBundledPluginId);
        if candidate.has_own_id && !refused && !first.contains_key(&candidate.id) {
            first.insert(candidate.id.clone(), entries.len());
        }
        entries.push(Entry {
            candidate,
            disabled,
        });
    }
    let running: Vec<(usize, &str, &[String])> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.is_enabled())
        .map(|(at, entry)| {
            let it = &entry.candidate;
            (at, it.id.as_str(), it.depends_on.as_slice())
        })
        .collect();
    let known: BTreeSet<&str> = entries.iter().map(|it| it.candidate.id.as_str()).collect();
    for (at, reason) in unmet(&running, &known) {
        if let Some(entry) = entries.get_mut(at) {
            entry.disabled = Some(reason);
        }
    }
    entries
}

fn place(it: &Candidate) -> (&str, u8, usize, &str) {
    (&it.id, it.source.precedence(), it.order, &it.place)
}

/// One candidate for each id; `counts` is the one that goes before this one.
fn identity(
    it: &Candidate,
    counts: Option<&Candidate>,
    reserved: &BTreeSet<String>,
) -> Option<Reason> {
    if reserved.contains(&it.id) {
        return (it.source != Source::Bundled).then_some(Reason::ReservedBundledPluginId);
    }
    // Of two that OpenCode's rules list both run, as in the reference.
    let other = counts.filter(|other| it.has_own_id && !(other.listed && it.listed))?;
    Some(Reason::ShadowedByHigherPrecedence {
        by: other.source,
        place: other.place.clone(),
    })
}

fn policy(it: &Candidate, rules: &Rules) -> Option<Reason> {
    if let Some(said) = &it.said {
        return Some(said.clone());
    }
    // What is required runs whatever is said about it.
    if it.required && it.source == Source::Bundled {
        return None;
    }
    if let Some(pattern) = rules.deny.iter().find(|pattern| matches(pattern, &it.id)) {
        return Some(Reason::Denied {
            pattern: pattern.clone(),
        });
    }
    match rules.switches.get(&it.id) {
        Some(switch) if switch.on => return None,
        Some(switch) => {
            return Some(Reason::SwitchedOff {
                by: switch.by.clone(),
            });
        }
        None => {}
    }
    match it.profile {
        Some(needs) if needs > rules.profile => Some(Reason::NotInProfile {
            profile: rules.profile,
            needs,
        }),
        _ if !it.enabled_by_default => Some(Reason::OffByDefault),
        _ => None,
    }
}

fn admission(it: &Candidate, rules: &Rules) -> Option<Reason> {
    if let Some(files) = &it.files {
        if let Some(path) = &files.outside {
            return Some(Reason::ManifestOutsideRoot { path: path.clone() });
        }
        if let Some(path) = &files.world_writable {
            return Some(Reason::WorldWritablePath { path: path.clone() });
        }
        if let Some(problem) = &files.signature {
            return Some(Reason::Signature {
                problem: problem.clone(),
            });
        }
    }
    if it.missing {
        return Some(Reason::NotInThisVersion);
    }
    if let Some(why) = &it.unsupported {
        return Some(Reason::UnsupportedExternalPlugin { why: why.clone() });
    }
    // What the user's own OpenCode configuration names, or a folder holds that OpenCode loads all of, is allowed by that.
    let found = it.files.is_some() && it.source != Source::Bundled && !it.listed;
    (found && it.side_effects && !rules.allow.contains(&it.id))
        .then_some(Reason::SideEffectsNotAllowed)
}

fn requirements(it: &Candidate, machine: &Machine) -> Option<Reason> {
    let is_set = |name: &String| machine.env.contains(name);
    if let Some(name) = it.env.iter().find(|name| !is_set(name)) {
        return Some(Reason::MissingEnv { name: name.clone() });
    }
    if let Some(names) = it.env_any.iter().find(|group| !group.iter().any(is_set)) {
        return Some(Reason::MissingEnvAny {
            names: names.clone(),
        });
    }
    let missing = it
        .external_bins
        .iter()
        .find(|name| !machine.bins.contains(name))?;
    Some(Reason::MissingExternalBin {
        name: missing.clone(),
    })
}
