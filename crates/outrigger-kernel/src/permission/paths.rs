//! Rules about paths: the names of a file that a rule is matched against, so that it means the same file however both are
//! written.
//!
//! A rule that allows is matched against the name that OpenCode uses: what it permits is what was written. A rule that denies or
//! asks is matched against every name of the file, so that an unexpected spelling cannot bypass it.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{borrow::Cow, format};

use outrigger_protocol::permission::{Action, Rule};

use super::{matches, matches_any_case};

/// The names of one file or folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// As requested: relative to the project's root, and absolute.
    asked: Vec<String>,
    /// Other names, for rules that deny or ask: relative to the working directory, in another Unicode form.
    others: Vec<String>,
}

impl Names {
    /// Creates the names from the requested one.
    #[must_use]
    pub fn new(asked: String) -> Self {
        Self {
            asked: [asked].into(),
            others: Vec::new(),
        }
    }

    /// Adds another requested name.
    #[must_use]
    pub fn or(mut self, name: String) -> Self {
        self.asked.push(name);
        self
    }

    /// Adds a name for rules that deny or ask.
    #[must_use]
    pub fn also(mut self, name: String) -> Self {
        self.others.push(name);
        self
    }

    /// Returns all names.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        self.asked.iter().chain(&self.others).map(String::as_str)
    }
}

/// Returns whether a rule's pattern matches a path with these names.
#[must_use]
pub fn is_about(rule: &Rule, names: &Names) -> bool {
    let pattern = plain(&rule.pattern);
    let pattern = pattern.as_ref();
    let at_root = pattern.strip_prefix("**/").filter(|it| !it.is_empty());
    if rule.action == Action::Allow {
        let mut asked = names.asked.iter().map(String::as_str);
        return asked.any(|name| {
            can_be(pattern, name)
                && (matches(pattern, name) || at_root.is_some_and(|it| matches(it, name)))
        });
    }
    // A folder stands for its content; an `ask` pattern of names such as `*.env` may mean only files.
    let last = pattern.rsplit('/').next().unwrap_or_default();
    let is_folder = rule.action == Action::Deny || !last.contains(['*', '?']);
    let below = is_folder.then(|| format!("{pattern}/*"));
    let patterns = [Some(pattern), at_root, below.as_deref()];
    names.all().any(|name| {
        let mut patterns = patterns.iter().flatten();
        can_be(pattern, name) && patterns.any(|it| restricts(it, name))
    }) || at_root.is_some_and(|it| {
        is_folder && {
            let below = format!("{it}/*");
            names
                .all()
                .any(|name| can_be(pattern, name) && restricts(&below, name))
        }
    })
}

fn restricts(pattern: &str, name: &str) -> bool {
    if pattern.is_ascii() && name.is_ascii() {
        return matches_any_case(pattern, name);
    }
    matches(&pattern.to_lowercase(), &name.to_lowercase())
}

/// Returns whether a pattern is of the same kind as a name: an absolute pattern matches absolute names, any other one relative
/// names; `folder/*`, the form in which a folder outside the project is requested, matches both.
fn can_be(pattern: &str, name: &str) -> bool {
    pattern.starts_with('/') == name.starts_with('/') || name.ends_with("/*")
}

/// Normalises a pattern like a path: without `.`, `..` after a name, and redundant slashes.
#[must_use]
pub fn plain(pattern: &str) -> Cow<'_, str> {
    let says_nothing = |it: &str| it.is_empty() || it == "." || it == "..";
    let mut parts = pattern.split('/');
    let first = parts.next().unwrap_or_default();
    let odd = parts.any(says_nothing) || first == ".";
    if !odd || pattern == "/" {
        return Cow::Borrowed(pattern);
    }
    let mut kept: Vec<&str> = Vec::new();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." if kept
                .last()
                .is_some_and(|it| *it != ".." && !it.contains('*')) =>
            {
                kept.pop();
            }
            // The parent of the root is the root.
            ".." if kept.is_empty() && pattern.starts_with('/') => {}
            part => kept.push(part),
        }
    }
    let root = if pattern.starts_with('/') { "/" } else { "" };
    Cow::Owned(format!("{root}{}", kept.join("/")))
}

/// Returns whether a pattern matches everything (`*`, `**`, `**/*`): a deny of it switches tools off. A process without access to
/// any file could not run.
#[must_use]
pub fn is_everything(pattern: &str) -> bool {
    pattern.contains('*') && pattern.chars().all(|it| matches!(it, '*' | '/'))
}

/// Returns the rule that applies to a path (the last match) and its position in the list.
#[must_use]
pub fn deciding<'r>(
    permission: &str,
    names: &Names,
    rules: &'r [Rule],
) -> Option<(usize, &'r Rule)> {
    let mut found = rules.iter().enumerate().rev();
    found.find(|(_, rule)| matches(&rule.permission, permission) && is_about(rule, names))
}

/// Returns whether a rule for specific paths denies this one, so that processes must not access it either.
#[must_use]
pub fn denies_path(permission: &str, names: &Names, rules: &[Rule]) -> bool {
    deciding(permission, names, rules).is_some_and(|(_, rule)| denies_some(rule))
}

fn denies_some(rule: &Rule) -> bool {
    rule.action == Action::Deny && !is_everything(&rule.pattern)
}

/// Returns whether everything below a folder is denied that way, including files that do not exist yet. `below` returns the names
/// of an entry of the folder.
#[must_use]
pub fn denies_folder(
    permission: &str,
    folder: &Names,
    below: impl FnOnce(&str) -> Names,
    rules: &[Rule],
) -> bool {
    // A name that no rule means: what denies it denies all names, unless a later rule makes an exception.
    let probe = below("\u{1}");
    let Some((at, rule)) = deciding(permission, &probe, rules) else {
        return false;
    };
    denies_some(rule)
        && rules.iter().skip(at + 1).all(|rule| {
            rule.action == Action::Deny
                || !matches(&rule.permission, permission)
                || !folder.all().any(|it| may_match_below(&rule.pattern, it))
        })
}

/// Returns whether a pattern could match a path below a folder, judging by its text before the first wildcard.
fn may_match_below(pattern: &str, folder: &str) -> bool {
    let pattern = plain(pattern);
    let start = pattern.split(['*', '?']).next().unwrap_or_default();
    let below = format!("{folder}/");
    start.starts_with(below.as_str()) || (start.len() < pattern.len() && below.starts_with(start))
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

    /// A file of the project `/p`, with `/p/sub` as the working directory.
    fn names(path: &str) -> Names {
        let names = Names::new(path.to_string()).or(format!("/p/{path}"));
        match path.strip_prefix("sub/") {
            Some(rest) => names.also(rest.to_string()),
            None => names,
        }
    }

    #[test]
    fn a_rule_matches_what_is_meant() {
        use Action::{Allow, Ask, Deny};
        for (pattern, path, action, want) in [
            (".env", ".env", Deny, true),
            ("./.env", ".env", Deny, true),
            ("*.env", "a/.env", Deny, true),
            ("**/.env", ".env", Deny, true),
            ("**/.env", "a/b/.env", Deny, true),
            ("**/.env", "a.env", Deny, false),
            ("**/keys/**", "keys/id", Deny, true),
            ("/p/.env", ".env", Deny, true),
            ("/p//a/../.env", ".env", Deny, true),
            ("/p/*.env", "a/.env", Deny, true),
            ("/q/.env", ".env", Deny, false),
            // A relative pattern does not match folders above the project.
            ("*p/*", "a", Deny, false),
            ("*/p/*", "a", Allow, false),
            ("/p/a", "a", Allow, true),
            ("keys", "keys/id", Deny, true),
            ("keys/", "keys/id", Deny, true),
            ("**/keys", "a/keys/id", Deny, true),
            ("**/keys", "keys/id", Deny, true),
            ("keys", "keys/id", Ask, true),
            ("*.env", "a.env/bin/python", Ask, false),
            ("keys", "keys/id", Allow, false),
            (".env", "sub/.env", Deny, true),
            (".env", "sub/.env", Allow, false),
            (".ENV", ".env", Deny, true),
            (".ENV", ".env", Allow, false),
            ("É.txt", "é.txt", Deny, true),
        ] {
            let rule = rule("read", pattern, action);
            assert_eq!(
                is_about(&rule, &names(path)),
                want,
                "{pattern} {path} {action:?}"
            );
        }
    }

    #[test]
    fn paths_that_processes_must_not_get_at() {
        let rules = [
            rule("*", "*", Action::Allow),
            rule("read", "*.env", Action::Deny),
            rule("read", "keys/*", Action::Deny),
            rule("read", "shared/*", Action::Deny),
            rule("read", "shared/public.txt", Action::Allow),
        ];
        let denies_folder = |path: &str, rules: &[Rule]| {
            let below = |name: &str| names(&format!("{path}/{name}"));
            denies_folder("read", &names(path), below, rules)
        };
        let denies = |path: &str, rules: &[Rule]| denies_path("read", &names(path), rules);
        for (path, file, folder) in [
            ("a.txt", false, false),
            (".env", true, true),
            ("deep/.env", true, true),
            ("keys", false, true),
            ("keys/id", true, true),
            ("shared/secret.txt", true, true),
            ("shared/public.txt", false, true),
            ("shared", false, false),
        ] {
            assert_eq!(denies(path, &rules), file, "{path}");
            assert_eq!(denies_folder(path, &rules), folder, "{path}");
        }
        let reopened = [
            rule("read", "keys/*", Action::Deny),
            rule("read", "*.pub", Action::Allow),
        ];
        assert!(!denies_folder("keys", &reopened));
        let reopened = [
            rule("read", "/p/keys/*", Action::Deny),
            rule("read", "keys/a", Action::Allow),
        ];
        assert!(!denies_folder("keys", &reopened));
        for all in ["*", "**", "**/*"] {
            let nothing = [rule("read", all, Action::Deny)];
            assert!(!denies("keys/id", &nothing));
        }
        assert!(!denies_path("edit", &names("keys/id"), &rules));
    }

    #[test]
    fn patterns_without_what_says_nothing() {
        for (pattern, want) in [
            ("a/b", "a/b"),
            ("./a//b/", "a/b"),
            ("/a/../b", "/b"),
            ("/../b", "/b"),
            ("../b", "../b"),
            ("*/../b", "*/../b"),
            ("/", "/"),
            ("*", "*"),
        ] {
            assert_eq!(plain(pattern), want, "{pattern}");
        }
    }
}
