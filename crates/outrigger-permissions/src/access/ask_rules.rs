//! Rules for a command line beyond its patterns: for each spelling of what it runs, and for uncertain ones.

use outrigger_kernel::permission::{UNKNOWN, evaluate, evaluate_unclear, matches, restricts};
use outrigger_protocol::permission::{Action, Rule};
use outrigger_tools::PermissionAsk;

use crate::access::strictness;

/// Returns the strictest answer; `None` if the question's patterns cover it. `layers` are in rising precedence.
pub fn by_spelling(ask: &PermissionAsk, layers: &[&[Rule]]) -> Option<Action> {
    let everything = ["*".to_owned()];
    let patterns = match ask.patterns.as_slice() {
        [] => &everything[..],
        patterns => patterns,
    };
    let unclear = patterns
        .iter()
        .filter(|_| ask.unclear.is_some())
        .map(|it| evaluate_unclear(&ask.permission, it, layers));
    let spelled = ask
        .spellings
        .iter()
        .map(|it| restricts(&ask.permission, it, layers));
    let named = patterns
        .iter()
        .filter(|_| ask.only_named)
        .map(|it| by_name(&ask.permission, it, layers));
    unclear
        .chain(spelled)
        .chain(named)
        .max_by_key(|action| strictness(*action))
}

/// Returns whether the question is about a line with commands that nobody has read, while a rule denies some: one of these could be among
/// them. So could one with words that only the shell knows (`git $x`), if a rule may mean it. Rules before one for everything do not count.
#[must_use]
pub fn may_pass_a_deny(ask: &PermissionAsk, layers: &[&[Rule]]) -> bool {
    let may_be_denied = |text: &String| {
        // A program in an unknown folder has a spelling by its name alone, too; one of an unknown name is unread.
        let program = text.split(' ').next().unwrap_or_default();
        let is_path = program.contains(UNKNOWN) && program.contains('/');
        text.contains(UNKNOWN) && !is_path && restricts_by_deny(&ask.permission, text, layers)
    };
    if ask.spellings.iter().any(may_be_denied) {
        return true;
    }
    let rules = layers.iter().rev().flat_map(|layer| layer.iter().rev());
    let mut about = rules.filter(|rule| matches(&rule.permission, &ask.permission));
    let is_everything = |rule: &Rule| rule.pattern.bytes().all(|b| b == b'*');
    let first = about.find(|rule| rule.action == Action::Deny || is_everything(rule));
    ask.unread && first.is_some_and(|rule| rule.action == Action::Deny)
}

/// Returns whether a rule that denies matches the text, or may match it.
fn restricts_by_deny(permission: &str, text: &str, layers: &[&[Rule]]) -> bool {
    let denies: Vec<Rule> = layers
        .iter()
        .flat_map(|layer| layer.iter())
        .filter(|rule| rule.action != Action::Ask)
        .cloned()
        .collect();
    restricts(permission, text, &[&denies]) != Action::Allow
}

/// Like [`by_spelling`], after the user answered "always": that answers the question, and lifts no deny.
pub fn by_spelling_approved(
    ask: &PermissionAsk,
    rules: &[&[Rule]],
    approvals: &[Rule],
) -> Option<Action> {
    match by_spelling(ask, rules) {
        Some(Action::Ask) => by_spelling(ask, &[rules, &[approvals]].concat()),
        other => other,
    }
}

/// Returns the action of the last rule that names the permission, other than by `*` for all of them.
fn by_name(permission: &str, pattern: &str, layers: &[&[Rule]]) -> Action {
    let names = |rule: &&Rule| rule.permission.contains(|c| c != '*' && c != '?');
    let named: Vec<Rule> = layers
        .iter()
        .flat_map(|layer| layer.iter())
        .filter(names)
        .cloned()
        .collect();
    evaluate(permission, pattern, &[&named])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::access::Access;
    use outrigger_workspace::ProjectLocation;

    fn action(ask: &PermissionAsk, layers: &[&[Rule]]) -> Action {
        let location = ProjectLocation {
            directory: "/p".into(),
            worktree: "/p".into(),
            git: false,
        };
        Access::new(&location, Path::new("/home/me")).action(ask, layers)
    }

    const ALLOW: Action = Action::Allow;
    const ASK: Action = Action::Ask;
    const DENY: Action = Action::Deny;

    fn rules(list: &[(&str, Action)]) -> Vec<Rule> {
        let rule = |(pattern, action): &(&str, Action)| Rule {
            permission: "bash".into(),
            pattern: (*pattern).into(),
            action: *action,
        };
        list.iter().map(rule).collect()
    }

    /// Attempts 400 to 425 of docs/bypass/attempts.toml.
    #[test]
    fn rules_about_commands_hold_however_they_are_spelled() {
        let denied = rules(&[("*", ALLOW), ("touch *", DENY), ("git push *", ASK)]);
        let listed = rules(&[
            ("*", ASK),
            ("git status *", ALLOW),
            ("echo *", ALLOW),
            ("env *", ALLOW),
        ]);
        let all = rules(&[("*", ALLOW)]);
        for (line, by_denied, by_listed) in [
            ("git status -s", ALLOW, ALLOW),
            ("echo a | cat", ALLOW, ASK),
            // Other spellings of the word.
            ("'touch' x", DENY, ASK),
            ("\\touch x", DENY, ASK),
            ("to\"\"uch x", DENY, ASK),
            ("touch\tx", DENY, ASK),
            ("/usr/bin/touch x", DENY, ASK),
            ("a=1 touch x", DENY, ASK),
            ("Y=1 touch x", DENY, ASK),
            (">y touch x", DENY, ASK),
            ("touch $v", DENY, ASK),
            ("touch", DENY, ASK),
            ("ls &&\\\n touch x", DENY, ASK),
            // After other programs.
            ("env touch x", DENY, ASK),
            ("env -i A=b touch x", DENY, ASK),
            (
                "nice -n 5 nohup timeout 5 stdbuf -oL setsid touch x",
                DENY,
                ASK,
            ),
            ("time touch x", DENY, ASK),
            ("sudo touch x", DENY, ASK),
            ("echo x | xargs touch", DENY, ASK),
            ("find . -exec touch {} +", DENY, ASK),
            ("busybox touch x", DENY, ASK),
            ("sh -c 'touch x'", DENY, ASK),
            ("bash -lc \"ls; touch x\"", DENY, ASK),
            ("command touch x", DENY, ASK),
            ("exec touch x", DENY, ASK),
            ("eval 'touch x'", DENY, ASK),
            ("echo $(touch x)", DENY, ASK),
            ("for i in 1; do touch $i; done", DENY, ASK),
            ("f() { touch x; }; f", DENY, ASK),
            // Possible matches.
            ("git $x", ASK, ASK),
            ("git -C sub push", ASK, ASK),
            ("$x y", ASK, ASK),
            ("env $x", ASK, ASK),
            ("to{u,}ch x", ASK, ASK),
            ("env -S 'touch x'", ASK, ASK),
            ("echo touch x | sh", ASK, ASK),
            ("[[ 'a[$(touch x)]' -eq 0 ]]", ASK, ASK),
            ("((x))", ASK, ASK),
            ("declare -i x='a[$(touch x)]'", ASK, ASK),
            ("echo \"$'\"; touch x; echo \"'\"", ASK, ASK),
            ("echo ${x@P}", ASK, ASK),
            ("export GIT_CONFIG_COUNT=1; git status", ASK, ASK),
            ("PATH=. git status", ASK, ASK),
            ("echo >&'$(touch x)'", ASK, ASK),
            ("cat <<-E\n\tE\ntouch x\nE", ASK, ASK),
            // Allowed words do not allow what follows from them.
            ("git status $(id)", ASK, ASK),
            ("git status; id", ALLOW, ASK),
            ("env git status", ALLOW, ALLOW),
            ("env id", ALLOW, ASK),
            ("echo a > b; export A=b", ALLOW, ASK),
            ("echo $x", ALLOW, ALLOW),
        ] {
            let ask = outrigger_tools::ask_for_line(line);
            let got = [&denied, &listed, &all].map(|rules| action(&ask, &[rules]));
            let got_denied = if got[0] == DENY && by_denied == ASK {
                ASK
            } else {
                got[0]
            };
            assert_eq!(
                (got_denied, got[1], got[2]),
                (by_denied, by_listed, ALLOW),
                "{line:?}: {ask:?}"
            );
        }
    }

    #[test]
    fn what_nobody_read_may_pass_a_rule_that_denies() {
        let denied = rules(&[("*", ALLOW), ("touch *", DENY)]);
        let lifted = rules(&[("touch *", DENY), ("*", ALLOW)]);
        let asks = rules(&[("*", ALLOW), ("touch *", ASK)]);
        for (line, want) in [
            ("$x y", true),
            ("touch{,er} x", true),
            ("touch $x", true),
            ("tou$x y", true),
            ("ls $x", false),
            ("[[ 1 ]]; ls", false),
            ("ls", false),
        ] {
            let ask = outrigger_tools::ask_for_line(line);
            let got = [&denied, &lifted, &asks].map(|it| may_pass_a_deny(&ask, &[it]));
            assert_eq!(got, [want, false, false], "{line}");
        }
    }

    /// An "always" for a line that cannot be analysed covers that line only.
    #[test]
    fn an_unclear_line_is_allowed_by_itself_alone() {
        let once = outrigger_tools::ask_for_line("git status $(id)");
        let approved: Vec<(&str, Action)> =
            once.always.iter().map(|it| (it.as_str(), ALLOW)).collect();
        let rules = rules(&[&[("*", ASK), ("git *", ALLOW)][..], &approved].concat());
        for (line, want) in [
            ("git status $(id)", ALLOW),
            ("git status $(rm x)", ASK),
            ("git log", ALLOW),
        ] {
            assert_eq!(
                action(&outrigger_tools::ask_for_line(line), &[&rules]),
                want,
                "{line}"
            );
        }
    }

    #[test]
    fn what_nobody_knows_is_allowed_by_its_name_alone() {
        let ask = PermissionAsk {
            permission: "Monitor".to_owned(),
            patterns: vec!["*".to_owned()],
            only_named: true,
            ..PermissionAsk::default()
        };
        for (list, want) in [
            (&[("*", ALLOW)][..], ASK),
            (&[("*", ALLOW), ("Monitor", ALLOW)], ALLOW),
            (&[("*", ALLOW), ("Mon*", ALLOW)], ALLOW),
            (&[("Monitor", ALLOW), ("*", DENY)], DENY),
            (&[("*", ALLOW), ("Monitor", DENY)], DENY),
            (&[], ASK),
        ] {
            let rules: Vec<Rule> = list
                .iter()
                .map(|(permission, action)| Rule {
                    permission: (*permission).into(),
                    pattern: "*".into(),
                    action: *action,
                })
                .collect();
            assert_eq!(action(&ask, &[&rules]), want, "{list:?}");
        }
    }
}
