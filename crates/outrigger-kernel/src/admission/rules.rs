//! The admission decision.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use super::depends::unmet;
use super::{Candidate, Entry, Machine, Reason, Rules, Source};
use crate::permission::matches;

/// Decides about all candidates: which one of each id is used, then policy, admission and dependencies in this order (D2, D3).
/// The result is sorted by id and precedence, whatever the order of the candidates.
///
/// Only a running plugin shadows another one: a plugin that is off, refused or lacks a requirement shadows nothing. A project's
/// candidate does not take the id of one that the user has rules for.
#[must_use]
pub fn decide(mut candidates: Vec<Candidate>, rules: &Rules, machine: &Machine) -> Vec<Entry> {
    candidates.sort_by(|a, b| precedence_key(a).cmp(&precedence_key(b)));
    let mut own: Vec<Option<Reason>> = candidates
        .iter()
        .map(|it| {
            kept(it, &candidates, rules)
                .or_else(|| policy(it, rules))
                .or_else(|| admission(it, rules))
                .or_else(|| requirements(it, machine))
        })
        .collect();
    let known: BTreeSet<&str> = candidates.iter().map(|it| it.id.as_str()).collect();
    // Each round excludes at least one more candidate for good, or is the last.
    let disabled = loop {
        let (mut disabled, before) = places(&candidates, &own);
        let running: Vec<(usize, &str, &[String])> = candidates
            .iter()
            .enumerate()
            .filter(|(at, _)| matches!(disabled.get(*at), Some(None)))
            .map(|(at, it)| (at, it.id.as_str(), it.depends_on.as_slice()))
            .collect();
        let lost = unmet(&running, &known);
        let back: Vec<(usize, Reason)> = lost
            .iter()
            .filter(|(at, _)| before.contains(at))
            .cloned()
            .collect();
        let settled = back.is_empty();
        let (into, these) = if settled {
            (&mut disabled, lost)
        } else {
            (&mut own, back)
        };
        for (at, reason) in these {
            if let Some(slot) = into.get_mut(at) {
                *slot = Some(reason);
            }
        }
        if settled {
            break disabled;
        }
    };
    candidates
        .into_iter()
        .zip(disabled)
        .map(|(candidate, disabled)| Entry {
            candidate,
            disabled,
        })
        .collect()
}

/// Returns why each candidate does not run, with one candidate for each id, and which candidates shadow another. `own` has the
/// reason of each candidate considered alone.
fn places(
    candidates: &[Candidate],
    own: &[Option<Reason>],
) -> (Vec<Option<Reason>>, BTreeSet<usize>) {
    let reserved: BTreeSet<&str> = candidates
        .iter()
        .filter(|it| it.source == Source::Bundled && it.required)
        .map(|it| it.id.as_str())
        .collect();
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut before = BTreeSet::new();
    let mut disabled = Vec::with_capacity(candidates.len());
    for ((at, it), own) in candidates.iter().enumerate().zip(own) {
        let counts = first.get(it.id.as_str()).copied();
        let other = counts.and_then(|at| Some((at, candidates.get(at)?)));
        let shadowed = identity(it, other.map(|(_, other)| other), &reserved);
        if let (Some((at, _)), Some(Reason::ShadowedByHigherPrecedence { .. })) = (other, &shadowed)
        {
            before.insert(at);
        }
        let reason = shadowed.or_else(|| own.clone());
        if it.has_own_id && reason.is_none() {
            first.entry(&it.id).or_insert(at);
        }
        disabled.push(reason);
    }
    (disabled, before)
}

/// Excludes a project's candidate if the user has rules for its id, whether the user's own plugin runs or not.
fn kept(it: &Candidate, all: &[Candidate], rules: &Rules) -> Option<Reason> {
    if !(it.of_project && it.has_own_id && rules.kept.contains(&it.id)) {
        return None;
    }
    let whose = all.iter().find(|other| {
        other.id == it.id && other.has_own_id && !other.of_project && !(other.listed && it.listed)
    })?;
    Some(Reason::ReservedUserPluginId {
        by: whose.source,
        place: whose.place.clone(),
    })
}

/// Candidates with the same id are sorted by this: the first one runs.
fn precedence_key(it: &Candidate) -> (&str, u8, usize, &str) {
    (&it.id, it.source.precedence(), it.order, &it.place)
}

/// Checks that a candidate is the one for its id; `counts` is the one that precedes it.
fn identity(
    it: &Candidate,
    counts: Option<&Candidate>,
    reserved: &BTreeSet<&str>,
) -> Option<Reason> {
    if reserved.contains(it.id.as_str()) {
        return (it.source != Source::Bundled).then_some(Reason::ReservedBundledPluginId);
    }
    // If OpenCode's rules list both, both run, as in OpenCode.
    let other = counts.filter(|other| it.has_own_id && !(other.listed && it.listed))?;
    Some(Reason::ShadowedByHigherPrecedence {
        by: other.source,
        place: other.place.clone(),
    })
}

fn policy(it: &Candidate, rules: &Rules) -> Option<Reason> {
    if let Some(reason) = &it.excluded {
        return Some(reason.clone());
    }
    // A required plugin runs regardless of any rule.
    if it.required && it.source == Source::Bundled {
        return None;
    }
    if let Some(pattern) = rules.deny.iter().find(|pattern| matches(pattern, &it.id)) {
        return Some(Reason::Denied {
            pattern: pattern.clone(),
        });
    }
    // A user rule by id does not switch on anything of a project; a rule by path does. Off applies by any name.
    let by_place = rules.switches.get(&it.place);
    let by_id = rules
        .switches
        .get(&it.id)
        .filter(|switch| !(switch.on && it.of_project));
    match by_place.or(by_id) {
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
    if let Some(why) = &it.untrusted {
        return Some(Reason::Untrusted { why: why.clone() });
    }
    if let Some(why) = &it.unsupported {
        return Some(Reason::UnsupportedExternalPlugin { why: why.clone() });
    }
    // Plugins named in the user's own OpenCode configuration, or in a folder that OpenCode loads completely, are allowed by
    // that.
    let found = it.files.is_some() && it.source != Source::Bundled && !it.listed;
    let allowed = rules.allow.contains(&it.place) || !it.of_project && rules.allow.contains(&it.id);
    (found && it.side_effects && !allowed).then_some(Reason::SideEffectsNotAllowed)
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
