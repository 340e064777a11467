use super::*;

fn texts(source: &str) -> Vec<String> {
    read(source)
        .commands
        .into_iter()
        .map(|it| it.text)
        .collect()
}

#[test]
fn commands_are_found_wherever_they_hide() {
    for (source, want) in [
        (
            "echo hi && git commit -m x | cat; npm run build -- --x",
            &["echo hi", "git commit -m x", "cat", "npm run build -- --x"][..],
        ),
        ("cd /tmp && ls > /dev/null", &["cd /tmp", "ls > /dev/null"]),
        ("for i in 1 2; do echo $i; done", &["echo $i"]),
        (
            "FOO=1 env ls 'a b' > out.txt",
            &["FOO=1 env ls 'a b' > out.txt", "ls 'a b'"],
        ),
        (
            "echo $(rm -f nothing)",
            &["echo $(rm -f nothing)", "rm -f nothing"],
        ),
        ("cat <<EOF\nhi $(whoami)\nEOF", &["cat <<EOF", "whoami"]),
        ("cat <<'EOF'\nhi $(whoami)\nEOF\nls", &["cat <<'EOF'", "ls"]),
        ("cat <<EOF | sh\nrm x\nEOF", &["cat <<EOF", "sh"]),
        ("(cd sub; ls)", &["cd sub", "ls"]),
        ("[ -f x ] && echo yes", &["[ -f x ]", "echo yes"]),
        ("[[ -n $(rm x) ]] || ls", &["rm x", "ls"]),
        ("if true; then ls sub; fi", &["true", "ls sub"]),
        ("a=$(ls); echo $a", &["ls", "echo $a"]),
        ("echo `whoami`", &["echo `whoami`", "whoami"]),
        (
            "find . -name x -exec echo {} \\;",
            &["find . -name x -exec echo {} \\;", "echo {}"],
        ),
        ("f() { ls; }; f", &["ls", "f"]),
        ("function g { rm x; }; g", &["rm x", "g"]),
        ("! ls", &["ls"]),
        ("time ls sub", &["time ls sub", "ls sub"]),
        ("echo \"$(pwd)\"", &["echo \"$(pwd)\"", "pwd"]),
        (
            "diff <(ls) <(ls -a)",
            &["diff <(ls) <(ls -a)", "ls", "ls -a"],
        ),
        ("export A=$(rm x)", &["export A=$(rm x)", "rm x"]),
        ("A=1", &[]),
        ("arr=(a b $(rm x)); ls", &["rm x", "ls"]),
        ("echo hi & wait", &["echo hi", "wait"]),
        ("ls 2>&1 | cat", &["ls 2>&1", "cat"]),
        (
            "while read l; do echo $l; done < hello.txt",
            &["read l", "echo $l", "< hello.txt"],
        ),
        (
            "case x in a|b) echo y;; *) rm z;; esac; ls",
            &["echo y", "rm z", "ls"],
        ),
        ("# comment only", &[]),
        ("ls # rm x", &["ls"]),
        ("echo a#b", &["echo a#b"]),
        ("echo $((1 + $(rm x)))", &["echo $((1 + $(rm x)))", "rm x"]),
        ("echo ${a:-$(rm x)}", &["echo ${a:-$(rm x)}", "rm x"]),
        (
            "echo \"a \\\" $(rm 'b)') c\"",
            &["echo \"a \\\" $(rm 'b)') c\"", "rm 'b)'"],
        ),
        ("echo a \\\n  b", &["echo a \\\n  b"]),
        ("{ ls; rm x; } > out", &["ls", "rm x", "> out"]),
        ("ls &> all.txt", &["ls &> all.txt"]),
        ("> empty.txt", &["> empty.txt"]),
        ("echo ünï 'ö)'; ls", &["echo ünï 'ö)'", "ls"]),
    ] {
        let want: Vec<String> = want.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(texts(source), want, "{source}");
    }
}

#[test]
fn what_stands_before_an_error_is_found() {
    for (source, want) in [
        ("touch x; echo 'unclosed", &["touch x", "echo"][..]),
        ("ls )", &["ls"]),
        ("cat <<EOF\nno end", &["cat <<EOF"]),
        ("eval 'touch x'", &["eval 'touch x'", "touch x"]),
        ("exec touch x", &["exec touch x", "touch x"]),
        (
            "for i in 1; do sh -c 'touch x'; done",
            &["sh -c 'touch x'", "touch x"],
        ),
        (&"$(".repeat(100), &[]),
    ] {
        assert_eq!(texts(source), want, "{source}");
    }
}

/// Deep enough to overflow a stack.
#[test]
fn what_is_nested_deep_is_read_as_far_as_is_bounded() {
    for unit in ["$(", "echo $(", "${a:-", "\"${a:-\"", "$((", "`"] {
        let source = format!("touch x; echo {}", unit.repeat(100_000));
        let found = texts(&source);
        assert_eq!(found[0], "touch x", "{unit}");
        assert!(found.len() < 40, "{unit}: {}", found.len());
    }
}

/// Attempt 1366 of docs/bypass/attempts.toml: what the reader does not get through to says so, and what it reads is what bash reads.
#[test]
fn a_line_that_is_not_read_to_its_end_says_so() {
    let spelled = |source: &str| {
        let found = read(source);
        let spellings = found.commands.iter().flat_map(Command::spellings);
        (spellings.collect::<Vec<_>>(), found.missed)
    };
    let (many, nested) = (":; ".repeat(1200), "$(".repeat(40));
    for line in [
        format!("[[ 1 ]]; {many}touch x"),
        format!("echo {nested}touch x{}", ")".repeat(40)),
        "[[ 1 ]] || : ) ; touch x".to_owned(),
        "esac; touch x".to_owned(),
        "shopt -s extglob\n: !(a|b); touch x".to_owned(),
        "$x y".to_owned(),
        "to{u,}ch x".to_owned(),
        "/bin/t?uch x".to_owned(),
        "env $x y".to_owned(),
        "strace touch x; [[ 1 ]]".to_owned(),
        "echo touch x | sh; [[ 1 ]]".to_owned(),
        "eval $x; [[ 1 ]]".to_owned(),
        "trap $x EXIT".to_owned(),
        "alias a=touch; a x".to_owned(),
        "coproc NAME (touch x)".to_owned(),
    ] {
        assert!(spelled(&line).1, "{}", line.get(..30).unwrap_or(&line));
    }
    for line in [
        "$'touch' x",
        "$'\\x74\\157\\u0075ch' x",
        "$\"touch\" x",
        "time -p touch x",
        "time { touch x; }",
        "time A=1 touch x",
        "coproc touch x; wait",
        "coproc NAME { touch x; }",
        "a[0]=(1) x; touch x",
        "i=0; a[$i]+=1; touch x",
        "a=(')' \"$(ls)\"); touch x",
        "echo \"$'\"; touch x; echo \"'\"",
        "for f in *; do [ -f \"$f\" ] && touch x; done",
    ] {
        let (spellings, missed) = spelled(line);
        assert!(
            spellings.contains(&"touch x".to_owned()),
            "{line}: {spellings:?}"
        );
        assert!(!missed, "{line}");
    }
}

/// Attempt 1328 of docs/bypass/attempts.toml: arithmetic evaluates values, and a subscript in one runs a command.
#[test]
fn values_that_arithmetic_evaluates_are_numbers() {
    for line in [
        "((x))",
        "echo $((x)) $(($x + 1)) ${y[x]} ${HOME:x} ${HOME:0:$x}",
        "[[ $x -eq 0 ]]",
        "[[ x -eq 0 ]]",
        "[ \"$x\" -eq 0 ]",
        "[[ -v $x ]]",
        "test -v \"$x\"",
        "[ $x = y ]",
        "let x",
        "let z=x",
        "declare -i z; z=$x",
        "for ((i = x; i < 3; i++)); do :; done",
        "y[x]=1",
        "y=([x]=1)",
        "read \"$x\"",
        "printf -v \"$x\" y",
        "printf %d \"$x\"",
        "printf \"$x\" y",
        "unset \"$x\"",
        "exit $x",
        "echo $[x]",
        "z=1; z=$x; ((z))",
        "z=1; z+=$x; ((z))",
        "for z in 1 $x; do ((z)); done",
        "z=1; read z <<< $x; ((z))",
        "z=1; n=z; read $n <<< $x; ((z))",
        "z=1; printf -v z %s \"$x\"; ((z))",
        "z=1; declare z=$x; ((z))",
        "z=1; env z=\"$x\" bash -c '((z))'",
        "z=1; : ${z:=$x}; ((z))",
        "z=1; declare -n r=z; r=$x; ((z))",
        "z=$(echo $x); ((z))",
        "z=$(grep -cH a \"$x\"); ((z))",
        "z=$(wc -l \"$x\"); ((z))",
        "date() { echo $x; }; z=$(date +%s); ((z))",
        "f() { declare -A m; }; echo ${m[x]}",
    ] {
        let line = format!("x='a[$(touch y)]'; {line}");
        assert!(read(&line).missed, "{line}");
    }
    for line in [
        "[[ 'a[$(touch y)]' -eq 0 ]]",
        "let 'a[$(touch y)]'",
        "RANDOM='a[$(touch y)]'",
        "a=(['b[$(touch y)]']=1)",
        "declare 'a[$(touch y)]=1'",
        "PS4='$(touch y)'; set -x; ls",
        "x='$(touch y)'; echo ${x@P}",
        "x=y; echo ${!x}",
        "((touch y); ls)",
        "echo $((touch y); ls)",
        "((unknown++))",
        "time [[ unknown -eq 0 ]]",
        "(\\\n(unknown))",
    ] {
        assert!(read(line).missed, "{line}");
    }
}

/// Attempt 1329 of docs/bypass/attempts.toml: what bash reads as a command is found, or the line is not read to its end.
#[test]
fn syntax_hides_no_command() {
    for line in [
        "for x do touch y; done",
        "set -- a; for x do touch y; done",
        "select x do touch y; done",
        "function f if touch y; then :; fi; f",
        "function f (touch y); f",
        "function f() { touch y; }; f",
        "echo ${x:-'}'}; touch y #'",
        "echo \"`echo \\\"';\\\" ; touch y; echo \\\"'\\\"`\"",
        "echo `echo \\$(touch y)`",
        "case a in # '\na) touch y;; esac #') ls;; esac",
        "a=( # '\n$(touch y) #')",
        "cat <<E\n\tE\n'\nE\ntouch y #'",
        "cat <<E\n\\\nE\n'\nE\ntouch y #'",
        "[[ a # ' ]]\n ]]; touch y #'",
        "[[ -f a ]] { touch y }",
        "sh {-c,'touch y'}",
        "x='; touch y'; eval \"echo $x\"",
        "x='; touch y'; trap \"echo $x\" EXIT",
        ". /dev/stdin <<< 'touch y'",
        ". <(echo touch y)",
        "repeat 3 touch y",
        "A\\\n=1 touch y",
        "set -- a; for x d\\\no touch y; done",
        "set -- a; for x do\\\n touch y; done",
        ">&-a touch y",
        "mapfile -C 'touch y' -c 1 x < z",
        "echo a >&'$(touch y)'",
        "time (touch y)",
        "set -- a; time for x do touch y; done",
        "a > >(touch y) < <(touch y)",
        // Where sh is dash.
        "sh -c '[[ a || touch y ]]'",
        "sh -c \"echo \\$'\\\\'; touch y #'\"",
        "sh -c '((touch y))'",
    ] {
        let found = read(line);
        let mut spellings = found.commands.iter().flat_map(Command::spellings);
        assert!(
            found.missed || spellings.any(|it| it.starts_with("touch y")),
            "{line}"
        );
    }
}

/// What an attacker of the readers found, beside lines that must pass.
#[test]
fn what_bash_evaluates_by_itself_is_not_taken_as_read() {
    let mut wrong = Vec::new();
    for (line, missed) in [
        // Arithmetic: an index of a variable is expanded.
        ("x='a[$(git push)]'; echo $((x))", true),
        ("x='a[$(git push)]'; ((x)); ls $(pwd)", true),
        ("x='a[$(git push)]'; echo ${y:x:1}", true),
        ("x='a[$(git push)]'; [[ $x -eq 0 ]]", true),
        ("x='a[$(git push)]'; declare -i y=$x", true),
        ("a[$i]+=1; echo $(pwd)", true),
        ("test -v 'a[$(git push)]'; echo $(pwd)", true),
        ("printf -v 'a[$(git push)]' x; echo $(pwd)", true),
        ("for ((i=0; i<n; i++)); do ls $i; done", true),
        ("for ((i=0; i<3; i++)); do i='a[$(git push)]'; done", true),
        ("for ((i=0; i<3; i++)); do read i; done", true),
        (
            "for ((i=0; i<3; i++)); do echo '(('; i='a[$(git push)]'; echo '))'; done",
            true,
        ),
        (
            "for ((i=0; i<3; i++)); do ls $i \"${i}\" $((i + 1)); done",
            false,
        ),
        ("echo $((1 + 2)) $((0x10 * 3))", false),
        // Text that is evaluated as a line, or a value that is one.
        ("x='$(git push)'; echo ${x@P}", true),
        ("echo ${!x}", true),
        ("PS4='$(git push)'; set -x; [[ 1 ]]", true),
        ("compgen -C 'git push;#'; [[ 1 ]]", true),
        ("source <(echo git pu''sh)", true),
        ("export EDITOR='git push;:'; git commit; [[ 1 ]]", true),
        ("VISUAL='git push;:' git commit; [[ 1 ]]", true),
        ("eval echo $x", true),
        ("eval -- git push", true),
        ("trap -- 'git push' 0", true),
        ("trap -- - EXIT; ls $(pwd)", false),
        (". -- <(echo git push)", true),
        ("source -- /dev/stdin <<< 'git push'", true),
        ("source -- .venv/bin/activate; ls $(pwd)", false),
        ("jobs -x git push", true),
        ("declare -a 'x=($(git push))'", true),
        ("typeset -A \"x=([a]=$(git push))\"", true),
        ("readonly -a 'x=(`git push`)'", true),
        ("v='($(git push))'; declare -a x=\"$v\"", true),
        ("read v; declare -a x=\"$v\"; ls $(pwd)", true),
        ("x=(1); declare 'x=($(git push))'", true),
        ("x=(1); read v; declare x=\"$v\"; ls $(pwd)", true),
        ("declare -a x=(a b); ls $(pwd)", false),
        ("f() { local v=\"$1\"; ls \"$v\" $(pwd); }; f", false),
        ("BASH_CMDS[ls]=$(type -P git); ls push", true),
        ("BASH_ALIASES[x]='git push'; [[ 1 ]]", true),
        ("source .venv/bin/activate && [[ 1 ]]", false),
        ("NODE_ENV=test npm test $(pwd)", false),
        ("CC=clang GIT_PAGER=cat make $(pwd)", false),
        ("CC='git push' make $(pwd)", true),
        ("while IFS= read -r l; do echo $l; done < f", false),
        ("while read -r l; do echo $l; done < f", false),
        (
            "set -euo pipefail; echo ${x:-$(pwd)} ${y%.*} ${#z} ${a[@]} ${b//x/y}",
            false,
        ),
        ("export A=1 NODE_ENV=test; [[ -f x && $y == *.js ]]", false),
        // Grammar.
        ("set -- 1; for x do git push; done", true),
        ("function f if git push; then :; fi; f", true),
        ("cat <<E\n$' $(git push) '\nE", true),
        ("echo \"${a:-$' $(git push) '}\"", true),
        ("for f in a b; do ls $f; done", false),
        ("for f\ndo ls $f; done", false),
        ("function f() { ls; }; f", false),
        ("function f { ls; }; f", false),
    ] {
        let found = crate::read(line);
        let named = |it: &Command| it.text.starts_with("git push");
        if (found.missed || found.commands.iter().any(named)) != missed {
            wrong.push((line, missed));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
