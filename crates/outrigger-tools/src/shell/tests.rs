use super::*;

fn texts(source: &str) -> Option<Vec<String>> {
    commands(source).map(|found| found.into_iter().map(|c| c.text).collect())
}

// The reference's answers, except where noted: it drops the redirection of the last command of a list, and takes no `cd`.
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
            &["FOO=1 env ls 'a b' > out.txt"],
        ),
        (
            "echo $(rm -f nothing)",
            &["echo $(rm -f nothing)", "rm -f nothing"],
        ),
        ("cat <<EOF\nhi $(whoami)\nEOF", &["cat <<EOF", "whoami"]),
        ("cat <<'EOF'\nhi $(whoami)\nEOF\nls", &["cat <<'EOF'", "ls"]),
        ("cat <<EOF | sh\nrm x\nEOF", &["cat <<EOF", "sh"]),
        ("(cd sub; ls)", &["cd sub", "ls"]),
        ("[ -f x ] && echo yes", &["echo yes"]),
        ("[[ -n $(rm x) ]] || ls", &["rm x", "ls"]),
        ("if true; then ls sub; fi", &["true", "ls sub"]),
        ("a=$(ls); echo $a", &["ls", "echo $a"]),
        ("echo `whoami`", &["echo `whoami`", "whoami"]),
        (
            "find . -name x -exec echo {} \\;",
            &["find . -name x -exec echo {} \\;"],
        ),
        ("f() { ls; }; f", &["ls", "f"]),
        ("function g { rm x; }; g", &["rm x", "g"]),
        ("! ls", &["ls"]),
        ("time ls sub", &["time ls sub"]),
        ("echo \"$(pwd)\"", &["echo \"$(pwd)\"", "pwd"]),
        (
            "diff <(ls) <(ls -a)",
            &["diff <(ls) <(ls -a)", "ls", "ls -a"],
        ),
        ("export A=$(rm x)", &["rm x"]),
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
        assert_eq!(texts(source), Some(want), "{source}");
    }
}

#[test]
fn what_cannot_be_read_is_not_guessed_at() {
    for source in [
        "echo 'unclosed",
        "echo \"a",
        "echo $(ls",
        "ls )",
        "cat <<EOF\nno end",
        "echo `ls",
        &"$(".repeat(100),
    ] {
        assert_eq!(texts(source), None, "{source}");
    }
}

#[test]
fn words_and_files_without_their_quotes() {
    let found = commands("FOO=1 cp 'a b' \"c\"d $HOME/x $y *.txt 2> err.log >&2").unwrap();
    let values: Vec<_> = found[0].words.iter().map(|w| w.value.as_deref()).collect();
    assert_eq!(
        values,
        [Some("cp"), Some("a b"), Some("cd"), Some("~/x"), None, None]
    );
    assert_eq!(found[0].files[0].value.as_deref(), Some("err.log"));
}

#[test]
fn prefixes() {
    for (words, want) in [
        ("git commit -m x", "git commit"),
        ("git stash pop", "git stash pop"),
        ("git", "git"),
        ("npm run build -- --x", "npm run build"),
        ("npm --version", "npm --version"),
        ("git -C sub status", "git -C"),
        ("docker compose up -d", "docker compose up"),
        ("kubectl get pods -n x", "kubectl get"),
        ("bun run x y", "bun run x"),
        ("cargo test -p x", "cargo test"),
        ("cat x", "cat"),
        ("env ls", "env"),
        ("/bin/ls sub", "/bin/ls"),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(prefix(&words).join(" "), want);
    }
}

proptest::proptest! {
    #[test]
    fn no_input_panics(source in "[a-z $(){}`'\"\\\\;&|<>\n#=é-]{0,60}") {
        let _ = commands(&source);
    }
}
