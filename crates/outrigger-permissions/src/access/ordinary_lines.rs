//! What ordinary command lines give under a rule that denies one word, with and without anybody to ask.

use std::path::Path;

use outrigger_protocol::permission::{Action, Rule};
use outrigger_workspace::ProjectLocation;

use super::Access;
use super::ask_rules::may_pass_a_deny;

#[derive(Debug, PartialEq)]
enum Given {
    /// Runs by the rules.
    Allowed,
    /// Needs approval as a whole; `--auto` gives it.
    Asked,
    /// Needs the approval of a person.
    Refused,
    /// A rule denies it.
    Denied,
}
use Given::{Allowed, Asked, Denied, Refused};

fn given(line: &str) -> Given {
    let rule = |pattern: &str, action| Rule {
        permission: "bash".into(),
        pattern: pattern.into(),
        action,
    };
    let rules = [rule("*", Action::Allow), rule("touch *", Action::Deny)];
    let location = ProjectLocation {
        directory: "/p".into(),
        worktree: "/p".into(),
        git: false,
    };
    let ask = outrigger_tools::ask_for_line(line);
    let action = Access::new(&location, Path::new("/home/me")).action(&ask, &[&rules]);
    match action {
        Action::Allow => Allowed,
        Action::Deny => Denied,
        Action::Ask if may_pass_a_deny(&ask, &[&rules]) => Refused,
        Action::Ask => Asked,
    }
}

const LINES: &[(&str, Given)] = &[
    // Plain words, lists, pipes and redirections.
    ("ls -la --color=never", Allowed),
    ("make 2>&1 | tee log", Allowed),
    ("cargo test && git status || echo failed", Allowed),
    ("find . -name '*.rs' | xargs grep -n foo", Allowed),
    ("awk '{print $1}' file | sort | uniq -c", Allowed),
    ("sed -i 's/a/b/g' *.txt", Allowed),
    ("if ! grep -q foo bar; then echo none; fi", Allowed),
    ("until curl -s localhost; do sleep 1; done", Allowed),
    ("cat > f.py <<'EOF'\nprint('$x')\nEOF", Allowed),
    ("set -euo pipefail; ls", Allowed),
    (
        "timeout 10 bash -c 'while ! nc -z localhost 80; do sleep 1; done'",
        Allowed,
    ),
    ("test -d node_modules || npm ci", Allowed),
    // Home folder, variables and substitutions.
    ("~/bin/x args", Allowed),
    ("$HOME/bin/x args", Allowed),
    ("\"$PWD/x\" args", Asked),
    ("echo \"$(git rev-parse HEAD)\"", Asked),
    ("cd \"$(git rev-parse --show-toplevel)\" && ls", Asked),
    ("echo `date`", Asked),
    ("tmp=$(mktemp -d); cd \"$tmp\"", Asked),
    ("echo \"${file%.txt}\" ${x:-default}", Asked),
    ("kill $(lsof -t -i:3000)", Asked),
    (
        "git commit -m \"$(cat <<'EOF'\nit's a (message)\nEOF\n)\"",
        Asked,
    ),
    ("export PATH=\"$HOME/bin:$PATH\"; ls", Asked),
    ("source venv/bin/activate && pip list", Asked),
    ("[ -s \"$NVM_DIR/nvm.sh\" ] && . \"$NVM_DIR/nvm.sh\"", Asked),
    ("trap 'rm -f \"$tmp\"' EXIT", Asked),
    // Here-documents and here-strings.
    ("cat <<< \"hello $name\"", Asked),
    ("read -r a b <<< \"1 2\"; echo $a", Asked),
    ("cat <<-EOF\n\t$x's\n\tEOF", Asked),
    // Process substitution.
    ("diff <(sort a) <(sort b)", Asked),
    ("make > >(tee log) 2>&1", Asked),
    ("mapfile -t lines < <(ls); echo ${#lines[@]}", Asked),
    // Loops.
    ("for f in *.rs; do wc -l \"$f\"; done", Asked),
    ("for ((i=0;i<3;i++)); do echo $i; done", Asked),
    ("for ((i = 0; i < 3; i += 1)) { echo $i; }", Asked),
    ("for i in {1..5}; do echo $((i * 2)); done", Asked),
    (
        "for i in $(seq 1 5); do [ $i -eq 3 ] && echo $i; done",
        Asked,
    ),
    (
        "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
        Asked,
    ),
    ("i=0; while (( i < 3 )); do ((i++)); done", Asked),
    (
        "while IFS= read -r line; do echo \"$line\"; done < file",
        Asked,
    ),
    ("for d in */; do (cd \"$d\" && git pull); done", Asked),
    // Conditions.
    ("[[ $x =~ ^(a|b)$ ]] && echo yes", Asked),
    (
        "[[ $v =~ ^v([0-9]+)\\.([[:digit:]]+)$ ]] && echo ${BASH_REMATCH[1]}",
        Asked,
    ),
    (
        "if [[ -f a && ( \"$b\" == *.txt || -d c ) ]]; then ls; fi",
        Asked,
    ),
    ("[[ -z \"${CI:-}\" ]] || exit 1", Asked),
    ("n=$(grep -c foo file); [[ $n -gt 5 ]] && echo many", Asked),
    (
        "start=$(date +%s); make; echo $(( $(date +%s) - start ))",
        Asked,
    ),
    ("if [ $# -eq 0 ]; then echo usage; fi", Allowed),
    ("make; rc=$?; [ $rc -ne 0 ] && exit $rc", Asked),
    // Functions, groups, `case` and arrays.
    ("function f() { ls; }; f", Asked),
    ("function f { ls; }; f", Asked),
    ("f() { local x=$1; echo \"$x\"; }; f a", Asked),
    ("(cd sub && make); { ls; pwd; } > out", Asked),
    (
        "case \"$1\" in start|begin) echo a ;; *) echo b ;; esac",
        Asked,
    ),
    ("case $x in (a) ls;; # it's\n(b|c) pwd;; esac", Asked),
    ("arr=(a b c); arr+=(d); echo \"${arr[@]}\" ${arr[0]}", Asked),
    ("declare -A m=([a]=1 [b]=2); echo ${m[a]}", Asked),
    ("mv file.{txt,md}", Asked),
    // Nobody knows what these run.
    ("$EDITOR file", Refused),
    ("eval \"$(ssh-agent -s)\"", Refused),
    ("curl -s localhost/install.sh | sh", Refused),
    ("echo $((unknown + 1))", Refused),
    ("find . -print0 | xargs -0 -I{} sh -c 'wc -l {}'", Refused),
    // The denied word is found wherever it stands.
    ("for ((i=0;i<3;i++)); do touch $i; done", Denied),
    ("[[ $x =~ ^(a|b)$ ]] && touch x", Denied),
    ("function f() { touch x; }; f", Denied),
    ("make > >(touch log)", Denied),
    ("case a in a) touch x;; esac", Denied),
    ("~/bin/touch x", Denied),
];

#[test]
fn ordinary_lines_are_read() {
    assert!(LINES.len() >= 60);
    for (line, want) in LINES {
        assert_eq!(&given(line), want, "{line}");
    }
}
