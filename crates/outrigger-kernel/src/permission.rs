//! Which rule counts. Rules are read as the reference reads them: all layers one after the other (defaults, configuration,
//! agent, session), the last rule that matches both permission and pattern wins, and with none the user is asked.

use outrigger_protocol::permission::{Action, Rule};

pub mod paths;

/// Decides a request. `layers` are in rising precedence.
#[must_use]
pub fn evaluate(permission: &str, pattern: &str, layers: &[&[Rule]]) -> Action {
    layers
        .iter()
        .rev()
        .flat_map(|layer| layer.iter().rev())
        .find(|rule| matches(&rule.permission, permission) && matches(&rule.pattern, pattern))
        .map_or(Action::Ask, |rule| rule.action)
}

/// True when nothing that the tool does could ever be allowed, so the model is not offered it at all: the last rule for
/// the tool denies every pattern.
#[must_use]
pub fn is_disabled(tool: &str, layers: &[&[Rule]]) -> bool {
    // Several tools ask under a common name (the reference's rule).
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

/// Whether the last rule that names the tool, other than by `*` for all tools, leaves something of it: somebody wants it.
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
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    matches_by(pattern, text, |a, b| a == b)
}

/// The same, with upper and lower case of ASCII letters taken for the same.
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

// Iterative matching with one point to go back to: linear space, no recursion on hostile input. Works on bytes; `?` takes
// one character, so continuation bytes are skipped with it.
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
            Some(b'?') => {
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
