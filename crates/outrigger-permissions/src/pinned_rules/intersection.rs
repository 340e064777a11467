//! Intersection of rules. The last matching rule of a list decides, so what two lists both permit is a third one: the second
//! list, with the narrower parts of the first appended.

use outrigger_kernel::permission::matches;
use outrigger_kernel::permission::paths::plain;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;

/// Returns whether the first permits more than the second.
pub(super) fn is_wider(one: Action, other: Action) -> bool {
    let rank = |action| match action {
        Action::Deny => 0,
        Action::Ask => 1,
        Action::Allow => 2,
    };
    rank(one) > rank(other)
}

/// Returns the rules to append to `rules` so that only what `held` also permits remains. Empty if that is the case already. If a
/// pattern cannot express the exact intersection of two rules, the stricter one covers more.
pub fn narrowing(held: &[Rule], rules: &[Rule]) -> Vec<Rule> {
    let mut added: Vec<Rule> = Vec::new();
    for kept in restrictions(held) {
        let (fallback, inside) = inside(&kept, rules);
        let is_lifted = is_wider(fallback, kept.action)
            || inside.iter().any(|rule| lifts_this(held, &kept, rule));
        if !is_lifted && !added.iter().any(|it| overlap(it, &kept)) {
            continue;
        }
        let first = if is_wider(fallback, kept.action) {
            kept.action
        } else {
            fallback
        };
        added.push(with(&kept, first));
        added.extend(inside.into_iter().filter_map(|rule| within(&kept, rule)));
    }
    added
}

/// Returns the first of `rules` that permits something that `held` does not, with the rule that it would lift. A rule that a
/// later one fully overrides has no effect.
pub(super) fn lifted<'a>(held: &'a [Rule], rules: &'a [Rule]) -> Option<(&'a Rule, &'a Rule)> {
    rules.iter().enumerate().find_map(|(at, rule)| {
        let later = rules.get(at + 1..).unwrap_or_default();
        let is_replaced = later.iter().any(|later| covers(later, rule));
        let kept = (!is_replaced).then(|| lifts(held, rule))?;
        Some((kept?, rule))
    })
}

/// Returns the rule of a list that another one would lift.
fn lifts<'a>(held: &'a [Rule], rule: &Rule) -> Option<&'a Rule> {
    for kept in held.iter().rev() {
        if is_wider(rule.action, kept.action) {
            if overlap(kept, rule) {
                return Some(kept);
            }
        } else if covers(kept, rule) {
            return None;
        }
    }
    None
}

/// Returns whether a rule would lift this restriction of a list. What a later rule of the list permits anyway is not lifted.
fn lifts_this(held: &[Rule], kept: &Rule, rule: &Rule) -> bool {
    let mut later = held.iter().rev().take_while(|it| *it != kept);
    is_wider(rule.action, kept.action)
        && overlap(kept, rule)
        && later.all(|later| is_wider(rule.action, later.action) || !covers(later, rule))
}

/// Returns the denies and asks of a list, with their exceptions, in order.
pub(super) fn restrictions(rules: &[Rule]) -> Vec<Rule> {
    let mut kept: Vec<Rule> = Vec::new();
    for rule in rules {
        if rule.action != Action::Allow || kept.iter().any(|it| overlap(it, rule)) {
            kept.retain(|it| !covers(rule, it));
            kept.push(rule.clone());
        }
    }
    // An exception whose restriction is gone.
    let mut out: Vec<Rule> = Vec::new();
    for rule in kept {
        if rule.action != Action::Allow || out.iter().any(|it| overlap(it, &rule)) {
            out.push(rule);
        }
    }
    out
}

/// Returns a list's action for everything that a rule matches, and then for parts of it.
fn inside<'r>(kept: &Rule, rules: &'r [Rule]) -> (Action, Vec<&'r Rule>) {
    let whole = rules.iter().rposition(|rule| covers(rule, kept));
    let fallback = whole.and_then(|at| rules.get(at));
    let behind = rules
        .get(whole.map_or(0, |at| at + 1)..)
        .unwrap_or_default()
        .iter()
        .filter(|rule| overlap(kept, rule))
        .collect();
    // Without a matching rule the user is asked.
    (fallback.map_or(Action::Ask, |rule| rule.action), behind)
}

/// Returns a rule for what both match, which permits no more than either.
fn within(kept: &Rule, rule: &Rule) -> Option<Rule> {
    let least = if is_wider(rule.action, kept.action) {
        kept.action
    } else {
        rule.action
    };
    let permission = match (
        about(&kept.permission, &rule.permission),
        about(&rule.permission, &kept.permission),
    ) {
        (true, _) => Some(&rule.permission),
        (_, true) => Some(&kept.permission),
        _ => None,
    };
    let pattern = match (
        about(&kept.pattern, &rule.pattern),
        about(&rule.pattern, &kept.pattern),
    ) {
        (true, _) => Some(&rule.pattern),
        (_, true) => Some(&kept.pattern),
        _ => None,
    };
    match (permission, pattern) {
        (Some(permission), Some(pattern)) => Some(Rule {
            permission: permission.clone(),
            pattern: pattern.clone(),
            action: least,
        }),
        // It matches more than both: only a deny cannot bypass something else.
        _ => is_wider(kept.action, rule.action).then(|| with(rule, Action::Deny)),
    }
}

fn with(rule: &Rule, action: Action) -> Rule {
    Rule {
        action,
        ..rule.clone()
    }
}

/// Returns whether the first matches everything that the second matches.
fn covers(one: &Rule, other: &Rule) -> bool {
    about(&one.permission, &other.permission) && about(&one.pattern, &other.pattern)
}

/// Like [`covers`], for patterns. A `?` matches a character, not a wildcard of the other.
fn about(one: &str, other: &str) -> bool {
    one == other || (!one.contains('?') && matches(one, other))
}

/// Returns whether both may match the same thing.
pub(super) fn overlap(one: &Rule, other: &Rule) -> bool {
    if !meet(&one.permission, &other.permission) {
        return false;
    }
    if is_about_paths(&one.permission) && is_about_paths(&other.permission) {
        meet_as_paths(&one.pattern, &other.pattern)
    } else {
        meet(&one.pattern, &other.pattern)
    }
}

/// Returns whether a path could match a pinned rule and another one, however each is written: by the whole path, a folder above,
/// or in another case.
fn meet_as_paths(kept: &str, other: &str) -> bool {
    let (kept, other) = (kept.to_lowercase(), other.to_lowercase());
    let (kept, other) = (plain(&kept), plain(&other));
    // One of them is relative to a folder that is unknown here.
    let anywhere = |pattern: &str, beside: &str| {
        if beside.starts_with('/') && !pattern.starts_with('/') {
            format!("*/{pattern}")
        } else {
            pattern.to_owned()
        }
    };
    let forms = |pattern: &str, beside: &str| {
        let at_root = pattern.strip_prefix("**/").unwrap_or(pattern);
        [anywhere(pattern, beside), anywhere(at_root, beside)]
    };
    let kept_forms = forms(&kept, &other);
    let below = kept_forms.iter().map(|it| format!("{it}/*"));
    let mut mine = below.chain(kept_forms.iter().cloned());
    let others = forms(&other, &kept);
    mine.any(|one| others.iter().any(|other| meet(&one, other)))
}

/// Returns whether a permission is about paths, for which one file has many names.
fn is_about_paths(permission: &str) -> bool {
    let mut about = ["read", "edit", EXTERNAL_DIRECTORY].into_iter();
    about.any(|it| matches(permission, it))
}

/// Returns whether some text matches both patterns.
fn meet(one: &str, other: &str) -> bool {
    // A pattern of a command also matches the command without arguments.
    let bare = |pattern: &str, with: &str| {
        let head = pattern.strip_suffix(" *");
        head.is_some_and(|head| both(head.as_bytes(), with.as_bytes()))
    };
    matches(one, other)
        || matches(other, one)
        || both(one.as_bytes(), other.as_bytes())
        || bare(one, other)
        || bare(other, one)
}

/// Row by row: whether prefixes of two patterns can match the same text.
fn both(one: &[u8], other: &[u8]) -> bool {
    let mut row = vec![false; other.len() + 1];
    for i in 0..=one.len() {
        let mut next = vec![false; other.len() + 1];
        for j in 0..=other.len() {
            let a = i.checked_sub(1).and_then(|i| one.get(i));
            let b = j.checked_sub(1).and_then(|j| other.get(j));
            let at = |row: &[bool], j: Option<usize>| {
                j.and_then(|j| row.get(j)).copied().unwrap_or_default()
            };
            let (above, left) = (at(&row, Some(j)), at(&next, j.checked_sub(1)));
            let corner = at(&row, j.checked_sub(1));
            let fits = match (a, b) {
                (None, None) => true,
                // A star ends here, or matches the next of the other pattern.
                (Some(b'*'), _) if above || left => true,
                (_, Some(b'*')) if above || left => true,
                (Some(a), Some(b)) => corner && (a == b || *a == b'?' || *b == b'?'),
                _ => false,
            };
            if let Some(cell) = next.get_mut(j) {
                *cell = fits;
            }
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use outrigger_kernel::permission::evaluate;

    use super::super::tests::{draws, rules};
    use super::*;

    /// An exception of a restriction, with restrictions of its own.
    const EXCEPTION: &str = "deny * *\n allow read *\n ask read *.env\n allow read *.env.example";

    #[test]
    fn what_two_lists_permit_both() {
        let defaults =
            "allow * *\n ask out *\n allow out /tmp/*\n deny question *\n ask read *.env";
        for (held, given, want) in [
            (defaults, defaults, ""),
            (
                defaults,
                "allow * *\n deny out *\n deny question *\n deny read *",
                "",
            ),
            (
                "allow * *\n deny question *\n allow question *",
                "allow * *",
                "",
            ),
            (defaults, "deny * *\n allow grep *", ""),
            (EXCEPTION, EXCEPTION, ""),
            (
                EXCEPTION,
                "deny * *\n allow read *",
                "ask read *.env\n allow read *.env.example",
            ),
            ("allow * *\n deny bash *", "allow * *", "deny bash *"),
            (
                "allow * *\n ask bash *",
                "allow * *\n deny bash rm*",
                "ask bash *\n deny bash rm*",
            ),
            (
                "allow * *\n ask out *\n allow out /tmp/*",
                "allow * *\n deny out /tmp/x",
                "ask out *\n deny out /tmp/x\n allow out /tmp/*\n deny out /tmp/x",
            ),
            (
                "deny * *\n allow task *",
                "allow * *\n deny task *",
                "deny * *\n deny task *\n deny task *",
            ),
            // The user is asked if a list has no matching rule.
            ("deny bash *", "allow read *", "deny bash *"),
        ] {
            assert_eq!(
                narrowing(&rules(held), &rules(given)),
                rules(want),
                "{held:?} {given:?}"
            );
        }
    }

    #[test]
    fn a_narrowed_list_permits_no_more_than_either() {
        let mut made = draws();
        for _ in 0..20_000 {
            let (held, given) = (made(), made());
            let mut both = given.clone();
            both.extend(narrowing(&held, &given));
            for text in ["", "a", "b", "ab", "bb", "aab"] {
                let [held_to, before, after] =
                    [&held, &given, &both].map(|list| evaluate("a", text, &[list]));
                let says_nothing = !held
                    .iter()
                    .any(|rule| matches(&rule.permission, "a") && matches(&rule.pattern, text));
                assert!(
                    !is_wider(after, before),
                    "{text}: {held:?} {given:?} {both:?}"
                );
                assert!(
                    says_nothing || !is_wider(after, held_to),
                    "{text}: {held:?} {given:?} {both:?}"
                );
                let lifts = lifted(&held, &given).is_some();
                assert!(
                    lifts
                        || says_nothing
                        || !is_wider(before, held_to)
                        || !given
                            .iter()
                            .any(|rule| matches(&rule.permission, "a")
                                && matches(&rule.pattern, text)),
                    "{text}: {held:?} {given:?}"
                );
            }
        }
    }
}
