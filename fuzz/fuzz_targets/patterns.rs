//! Permission patterns, held against a matcher that is obviously right, and the rules made of them.
//!
//! The input is text: the first line is what is asked about, each other one a rule (`allow|ask|deny PATTERN`).
#![no_main]

use libfuzzer_sys::fuzz_target;
use outrigger_kernel::permission::{denies_path, evaluate, matches};
use outrigger_protocol::permission::{Action, Rule};

/// Whether a pattern of `*` and `?` fits a text: the table of all prefixes.
fn fits(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let mut row: Vec<bool> = (0..=text.len()).map(|at| at == 0).collect();
    for sign in pattern.chars() {
        let mut next = vec![false; row.len()];
        for at in 0..row.len() {
            next[at] = match sign {
                '*' => row[at] || (at > 0 && next[at - 1]),
                '?' => at > 0 && row[at - 1],
                sign => at > 0 && row[at - 1] && text[at - 1] == sign,
            };
        }
        row = next;
    }
    row[text.len()]
}

fn right(pattern: &str, text: &str) -> bool {
    fits(pattern, text) || pattern.strip_suffix(" *").is_some_and(|head| fits(head, text))
}

fuzz_target!(|data: &str| {
    if data.len() > 400 {
        return;
    }
    let mut lines = data.split('\n');
    let asked = lines.next().unwrap_or_default();
    let rules: Vec<Rule> = lines
        .map(|line| {
            let (word, pattern) = line.split_once(' ').unwrap_or(("deny", line));
            Rule {
                permission: "read".into(),
                pattern: pattern.into(),
                action: match word {
                    "allow" => Action::Allow,
                    "ask" => Action::Ask,
                    _ => Action::Deny,
                },
            }
        })
        .collect();
    for rule in &rules {
        assert_eq!(
            matches(&rule.pattern, asked),
            right(&rule.pattern, asked),
            "{:?} {asked:?}",
            rule.pattern
        );
    }
    let last = rules.iter().rfind(|rule| right(&rule.pattern, asked));
    assert_eq!(
        evaluate("read", asked, &[&rules]),
        last.map_or(Action::Ask, |rule| rule.action)
    );
    assert_eq!(
        denies_path("read", asked, &[&rules]),
        last.is_some_and(|rule| rule.action == Action::Deny && rule.pattern != "*")
    );
});
