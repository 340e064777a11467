//! Evaluation of permission rules. Rules are read as in OpenCode: all layers one after the other (defaults, configuration, agent,
//! session), the last rule that matches both permission and pattern wins, and without a match the user is asked.

use alloc::vec::Vec;

use outrigger_protocol::permission::{Action, Rule};

pub mod paths;

/// Decides a request. `layers` are in rising precedence.
///
/// ```
/// use outrigger_kernel::permission::evaluate;
/// use outrigger_protocol::permission::{Action, Rule};
///
/// let rule = |pattern: &str, action| Rule {
///     permission: "bash".into(),
///     pattern: pattern.into(),
///     action,
/// };
/// let user = [rule("*", Action::Ask), rule("git *", Action::Allow)];
/// let agent = [rule("git push *", Action::Deny)];
/// let decide = |command| evaluate("bash", command, &[&user, &agent]);
/// assert_eq!(decide("git status"), Action::Allow);
/// assert_eq!(decide("git push origin"), Action::Deny);
/// assert_eq!(decide("make"), Action::Ask);
/// ```
#[must_use]
pub fn evaluate(permission: &str, pattern: &str, layers: &[&[Rule]]) -> Action {
    layers
        .iter()
        .rev()
        .flat_map(|layer| layer.iter().rev())
        .find(|rule| matches(&rule.permission, permission) && matches(&rule.pattern, pattern))
        .map_or(Action::Ask, |rule| rule.action)
}

/// Stands in a text for an unknown part: any run of characters.
pub const UNKNOWN: char = '\0';

/// Evaluates the rules for an alternative spelling of a command: only rules that deny or ask, and none that matches everything. A
/// rule that may match, depending on [`UNKNOWN`] parts, asks.
#[must_use]
pub fn restricts(permission: &str, text: &str, layers: &[&[Rule]]) -> Action {
    let mut least = Action::Allow;
    for rule in about(permission, layers) {
        if is_everything(&rule.pattern) {
            break;
        }
        let certain = matches(&rule.pattern, text);
        match rule.action {
            Action::Deny if certain => return Action::Deny,
            Action::Deny | Action::Ask if certain || may_match(&rule.pattern, text) => {
                least = Action::Ask;
            }
            _ => {}
        }
        if certain {
            break;
        }
    }
    least
}

/// Evaluates the rules for a command that cannot be analysed: it is allowed if everything is and no further rule denies or asks,
/// or if a rule names it verbatim.
#[must_use]
pub fn evaluate_unclear(permission: &str, text: &str, layers: &[&[Rule]]) -> Action {
    let mut least = Action::Allow;
    for rule in about(permission, layers) {
        if is_everything(&rule.pattern) || rule.pattern == text {
            return match (rule.action, least) {
                (Action::Allow, least) => least,
                (action, _) => action,
            };
        }
        match rule.action {
            Action::Deny if matches(&rule.pattern, text) => return Action::Deny,
            Action::Deny | Action::Ask => least = Action::Ask,
            Action::Allow => {}
        }
    }
    Action::Ask
}

/// Returns the rules for a permission, highest precedence first.
fn about<'a>(permission: &str, layers: &[&'a [Rule]]) -> impl Iterator<Item = &'a Rule> {
    layers
        .iter()
        .rev()
        .flat_map(|layer| layer.iter().rev())
        .filter(move |rule| matches(&rule.permission, permission))
}

fn is_everything(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.bytes().all(|b| b == b'*')
}

/// Returns true if no action of the tool could ever be allowed, so that it is not offered to the model: the last rule for the
/// tool denies every pattern.
#[must_use]
pub fn is_disabled(tool: &str, layers: &[&[Rule]]) -> bool {
    // Several tools ask under a common name (OpenCode's rule).
    let permission = match tool {
        "edit" | "write" | "patch" | "multiedit" | "apply_patch" => "edit",
        "list_mcp_resources" | "list_mcp_resource_templates" | "read_mcp_resource" => "read",
        other => other,
    };
    layers
        .iter()
        .rev()
        .flat_map(|layer| layer.iter().rev())
        .find(|rule| matches(&rule.permission, permission))
        .is_some_and(|rule| rule.pattern == "*" && rule.action == Action::Deny)
}

/// Returns whether the last rule that names the tool, other than by `*` for all tools, allows some of it: it was enabled
/// explicitly.
#[must_use]
pub fn is_wanted(tool: &str, layers: &[&[Rule]]) -> bool {
    layers
        .iter()
        .rev()
        .flat_map(|layer| layer.iter().rev())
        .find(|rule| rule.permission != "*" && matches(&rule.permission, tool))
        .is_some_and(|rule| rule.pattern != "*" || rule.action != Action::Deny)
}

/// `*` stands for any run of characters (also an empty one, also `/`), `?` for exactly one. A pattern that ends in ` *`
/// also matches without what the space introduces, so `git *` covers a bare `git`.
///
/// ```
/// use outrigger_kernel::permission::matches;
///
/// assert!(matches("git *", "git"));
/// assert!(matches("src/*.rs", "src/deep/lib.rs"));
/// assert!(!matches("git *", "gitk"));
/// ```
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_by(pattern, text, |a, b| a == b)
}

/// Like [`matches()`], ignoring the case of ASCII letters.
#[must_use]
pub fn matches_any_case(pattern: &str, text: &str) -> bool {
    matches_by(pattern, text, |a, b| a.eq_ignore_ascii_case(b))
}

fn matches_by(pattern: &str, text: &str, same: impl Fn(&u8, &u8) -> bool + Copy) -> bool {
    if let Some(head) = pattern.strip_suffix(" *")
        && glob(head.as_bytes(), text.as_bytes(), same)
    {
        return true;
    }
    glob(pattern.as_bytes(), text.as_bytes(), same)
}

// Iterative matching with one backtracking point: linear space, no recursion on hostile input. Works on bytes; `?` matches one
// character, so continuation bytes are skipped with it.
fn glob(pattern: &[u8], text: &[u8], same: impl Fn(&u8, &u8) -> bool) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p, t));
                p += 1;
                continue;
            }
            // The unknown part may be empty or long.
            Some(b'?') if text.get(t) != Some(&0) => {
                p += 1;
                t += 1;
                while text.get(t).is_some_and(|b| b & 0xC0 == 0x80) {
                    t += 1;
                }
                continue;
            }
            Some(c) if text.get(t).is_some_and(|it| same(c, it)) => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        let Some((star, from)) = back else {
            return false;
        };
        p = star + 1;
        t = from + 1;
        back = Some((star, t));
    }
    pattern
        .get(p..)
        .is_some_and(|rest| rest.iter().all(|c| *c == b'*'))
}

/// Returns whether a pattern matches a text, or could for some value of the [`UNKNOWN`] parts.
#[must_use]
pub fn may_match(pattern: &str, text: &str) -> bool {
    if matches(pattern, text) {
        return true;
    }
    let head = pattern.strip_suffix(" *");
    text.contains(UNKNOWN)
        && (meet(pattern.as_bytes(), text.as_bytes())
            || head.is_some_and(|head| meet(head.as_bytes(), text.as_bytes())))
}

// Row by row: `row[t]` states whether the consumed part of the pattern can match the first `t` bytes of the text. Uses bytes
// instead of characters for `?`: if wrong, it answers that they may match.
fn meet(pattern: &[u8], text: &[u8]) -> bool {
    let unknown = |t: usize| text.get(t) == Some(&0);
    let mut row: Vec<bool> = Vec::with_capacity(text.len() + 1);
    row.push(true);
    for t in 0..text.len() {
        let empty = row.get(t) == Some(&true) && unknown(t);
        row.push(empty);
    }
    for p in pattern {
        let mut next: Vec<bool> = Vec::with_capacity(row.len());
        let was = |t: usize| row.get(t) == Some(&true);
        next.push(*p == b'*' && was(0));
        for t in 0..text.len() {
            let here = next.last() == Some(&true);
            let can = if *p == b'*' {
                was(t + 1) || here
            } else {
                // An unknown part matches this byte or is empty; `?` matches a byte, or a further byte of its character.
                let takes = *p == b'?' || text.get(t) == Some(p);
                let more = *p == b'?' && text.get(t).is_some_and(|b| b & 0xC0 == 0x80);
                (takes && was(t))
                    || (more && here)
                    || (unknown(t) && (was(t) || was(t + 1) || here))
            };
            next.push(can);
        }
        row = next;
    }
    row.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
        Rule {
            permission: permission.to_string(),
            pattern: pattern.to_string(),
            action,
        }
    }

    #[test]
    fn wildcards() {
        for (pattern, text, want) in [
            ("*", "", true),
            ("*", "a/b", true),
            ("git *", "git status", true),
            ("git *", "git", true),
            ("git *", "gitk", false),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("*.env", "x/.env", true),
            ("*.env.*", ".env.local", true),
            ("**", "x", true),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} on {text}");
        }
    }

    #[test]
    fn what_is_not_known_may_be_anything() {
        for (pattern, text, certain, possible) in [
            ("git push *", "git \0", false, true),
            ("git *", "git \0", true, true),
            ("git push", "git \0", false, true),
            ("git push", "git \0 -f", false, false),
            ("git *force*", "git push \0", false, true),
            ("rm *", "git \0", false, false),
            ("rm *", "\0", false, true),
            ("a?c", "a\0c", false, true),
            ("a?c", "a\0", false, true),
            ("abc", "\0a\0b\0c\0", false, true),
            ("abc", "\0b\0a\0", false, false),
            ("touch é*", "touch \0", false, true),
            ("touch ?", "touch é", true, true),
            ("a", "\0", false, true),
            ("", "\0", false, true),
            ("*x", "\0y", false, false),
        ] {
            assert_eq!(matches(pattern, text), certain, "{pattern} on {text:?}");
            assert_eq!(may_match(pattern, text), possible, "{pattern} on {text:?}");
        }
    }

    #[test]
    fn other_spellings_and_unclear_lines() {
        let rules = |list: &[(&str, Action)]| -> Vec<Rule> {
            list.iter()
                .map(|(pattern, action)| rule("bash", pattern, *action))
                .collect()
        };
        let (allow, ask, deny) = (Action::Allow, Action::Ask, Action::Deny);
        let some = rules(&[("*", allow), ("rm *", deny), ("git push *", ask)]);
        let lifted = rules(&[("rm *", deny), ("*", allow)]);
        let status = rules(&[("*", ask), ("git *", deny), ("git status *", allow)]);
        for (text, rules, want) in [
            ("rm x", &some, deny),
            ("ls", &some, allow),
            ("git \0", &some, ask),
            ("\0", &some, ask),
            ("git push", &some, ask),
            ("rm x", &lifted, allow),
            ("git status \0", &status, allow),
            ("git \0", &status, deny),
            ("git log \0", &status, deny),
            ("ls", &status, allow),
        ] {
            assert_eq!(restricts("bash", text, &[rules]), want, "{text:?}");
        }
        let all = rules(&[("*", allow)]);
        let exact = rules(&[("*", ask), ("a$(b)", allow), ("a*", allow)]);
        for (text, rules, want) in [
            ("a$(b)", &all, allow),
            ("a$(b)", &some, ask),
            ("a$(b)", &lifted, allow),
            ("a$(b)", &exact, allow),
            ("a$(c)", &exact, ask),
            ("rm $(c)", &some, deny),
            ("a$(b)", &Vec::new(), ask),
        ] {
            assert_eq!(evaluate_unclear("bash", text, &[rules]), want, "{text:?}");
        }
    }

    #[test]
    fn the_last_matching_rule_of_the_highest_layer_wins() {
        let defaults = [
            rule("*", "*", Action::Allow),
            rule("read", "*.env", Action::Deny),
        ];
        let config = [
            rule("bash", "*", Action::Ask),
            rule("bash", "git *", Action::Allow),
        ];
        let layers: [&[Rule]; 2] = [&defaults, &config];
        for (permission, pattern, want) in [
            ("read", "a.txt", Action::Allow),
            ("read", "a/.env", Action::Deny),
            ("bash", "git status", Action::Allow),
            ("bash", "rm -rf /", Action::Ask),
        ] {
            assert_eq!(
                evaluate(permission, pattern, &layers),
                want,
                "{permission} {pattern}"
            );
        }
        assert_eq!(evaluate("anything", "x", &[]), Action::Ask);
    }

    #[test]
    fn a_tool_is_hidden_only_when_all_of_it_is_denied() {
        let deny_all = [rule("bash", "*", Action::Deny)];
        let deny_some = [
            rule("bash", "*", Action::Deny),
            rule("bash", "git *", Action::Allow),
        ];
        let deny_edit = [rule("edit", "*", Action::Deny)];
        assert!(is_disabled("bash", &[&deny_all]));
        assert!(!is_disabled("bash", &[&deny_some]));
        assert!(is_disabled("write", &[&deny_edit]));
        assert!(!is_disabled("read", &[&deny_edit]));
    }
}
