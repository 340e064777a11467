use super::*;

/// Returns the texts of the commands, or the doubt.
fn texts(source: &str) -> Result<Vec<String>, Doubt> {
    let line = read(source);
    match line.doubt {
        None => Ok(line.commands.into_iter().map(|it| it.text).collect()),
        Some(doubt) => Err(doubt),
    }
}

#[test]
fn commands_of_lists_and_pipes() {
    for (source, want) in [
        (
            "echo hi && git commit -m x | cat; npm run build -- --x",
            &["echo hi", "git commit -m x", "cat", "npm run build -- --x"][..],
        ),
        ("ls > /dev/null 2>&1 &", &["ls > /dev/null 2>&1"]),
        ("a |& b || c\nd", &["a", "b", "c", "d"]),
        (
            "ls 'a b' \"c $d\" *.txt # rm x\npwd",
            &["ls 'a b' \"c $d\" *.txt", "pwd"],
        ),
        ("A=1 x", &["A=1 x"]),
        (
            "a=1; echo $a ${a}b \"$?\"",
            &["a=1", "echo $a ${a}b \"$?\""],
        ),
        ("! grep -q x y && ls", &["grep -q x y", "ls"]),
        (
            "cat > f <<'EOF'\n$(rm x) `y`\nEOF\nls",
            &["cat > f <<'EOF'", "ls"],
        ),
        ("cat <<E\nplain\nE", &["cat <<E"]),
        (
            "git show stash@{0} HEAD^{} {}",
            &["git show stash@{0} HEAD^{} {}"],
        ),
        ("echo a#b a=b ~ ~/x", &["echo a#b a=b ~ ~/x"]),
        (
            "[ ! -f x ] || [ \"$a\" != b ]",
            &["[ ! -f x ]", "[ \"$a\" != b ]"],
        ),
        ("printf '%s\\n' $x", &["printf '%s\\n' $x"]),
        ("echo a \\\n  b", &["echo a \\\n  b"]),
        (
            "echo \"it's $5, \\$x and a \\\" $\"",
            &["echo \"it's $5, \\$x and a \\\" $\""],
        ),
        ("> empty.txt", &["> empty.txt"]),
        (
            "if [ -f x ]; then ls; elif ! a; then b; else c; fi > y",
            &["[ -f x ]", "ls", "a", "b", "c", "> y"],
        ),
        (
            "until [ -e x ]; do sleep 1; done; while a\ndo b\ndone | c",
            &["[ -e x ]", "sleep 1", "a", "b", "c"],
        ),
        ("", &[]),
        ("# nothing", &[]),
    ] {
        let want: Vec<String> = want.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(texts(source), Ok(want), "{source}");
    }
}

#[test]
fn wrappers_are_unfolded() {
    for (source, want) in [
        ("env -i A=b touch x", &["env -i A=b touch x", "touch x"][..]),
        ("env", &["env"]),
        (
            "nice -n 5 nohup touch x",
            &["nice -n 5 nohup touch x", "nohup touch x", "touch x"],
        ),
        (
            "timeout -k 1 --signal=KILL 5s touch x",
            &["timeout -k 1 --signal=KILL 5s touch x", "touch x"],
        ),
        ("time touch x", &["time touch x", "touch x"]),
        (
            "bash -lc 'cd /x && touch \"$1\"' a b",
            &[
                "bash -lc 'cd /x && touch \"$1\"' a b",
                "cd /x",
                "touch \"$1\"",
            ],
        ),
        (
            "sh -euo pipefail -c 'touch x'",
            &["sh -euo pipefail -c 'touch x'", "touch x"],
        ),
        (
            "sudo -u root sh -c 'sh -c \"touch x\"'",
            &[
                "sudo -u root sh -c 'sh -c \"touch x\"'",
                "sh -c 'sh -c \"touch x\"'",
                "sh -c \"touch x\"",
                "touch x",
            ],
        ),
        (
            "find . -name '*.a' -exec touch {} + -exec rm {} \\;",
            &[
                "find . -name '*.a' -exec touch {} + -exec rm {} \\;",
                "touch {}",
                "rm {}",
            ],
        ),
        (
            "ls | xargs -0 -n 1 touch",
            &["ls", "xargs -0 -n 1 touch", "touch …"],
        ),
        (
            "/usr/bin/busybox touch x",
            &["/usr/bin/busybox touch x", "touch x"],
        ),
        ("command -v git", &["command -v git"]),
        ("bash script.sh", &["bash script.sh"]),
    ] {
        let want: Vec<String> = want.iter().map(|s| (*s).to_owned()).collect();
        assert_eq!(texts(source), Ok(want), "{source}");
    }
}

#[test]
fn what_is_not_understood() {
    for source in [
        // A subscript in an arithmetic comparison runs a command.
        "[[ 'a[$(touch x)]' -eq 0 ]]",
        "((x))",
        "declare -i x='a[$(touch x)]'",
        "export -p > x",
        "readonly PATH=x > y",
        "echo \"$'\"; touch x; \"'\"",
        "echo ${x@P}",
        "export GIT_CONFIG_COUNT=1; git status",
        "cat <<-E\n\tE\ntouch x\nE",
        // Words.
        "echo $(id)",
        "echo `id`",
        "echo \"$(id)\"",
        "cat <(id)",
        "echo $((1))",
        "echo $[1]",
        "echo ${a:-b}",
        "echo $'a'",
        "echo {a,b}",
        "echo {1..3}",
        "to\\\nuch x",
        "echo 'open",
        "echo \"open",
        "echo \\",
        "echo a\rtouch x",
        "echo \0",
        "echo hi!",
        "=ls",
        "echo $a[1]",
        // Programs.
        "$x a",
        "x$y",
        "*",
        "./a*",
        "\"$x\"",
        "''",
        // Grammar.
        "(ls)",
        "{ ls; }",
        "f() { ls; }",
        "if true; then ls; fi x",
        "then; ls",
        "> x if true; then ls; fi",
        "time if touch x; then a; fi",
        "time A=1 touch x",
        "time -p ! touch x",
        "time -p touch x",
        "1=x touch y",
        "time 1=x touch y",
        "{a}",
        "echo $#x",
        "echo $12",
        "echo $x=ls $x$y~",
        "echo ''~",
        "echo \"\"=ls",
        "echo \"$xé\"",
        "é=x touch y",
        "for i in a; do ls; done",
        "case x in x) ls;; esac",
        "a=(1 2)",
        "a[0]=1",
        "coproc ls",
        "ls;;",
        "repeat 3 ls",
        // Redirections.
        "ls > $x",
        "ls > *",
        "ls >| a >! b",
        "ls >&'$(id)'",
        "ls >& y",
        "ls >&$x",
        "ls {fd}>x",
        "a &!= b",
        "ls {fd} > x",
        "ls 2&> x",
        "ls >&'' x",
        "ls > /dev/tcp/a/1",
        "cat <<< x",
        "ls >",
        "ls 2>&1-",
        // Here-documents.
        "cat <<E\n$(id)\nE",
        "cat <<E\na\\\nE\nid\nE",
        "cat <<a <<b\na\nb",
        "cat <<E",
        "cat <<\"E\"F\nEF",
        "cat <<E 'a\nb'\nE",
        "cat <<E\n E\nE2",
        // Variables.
        "PATH=. ls",
        "IFS=x",
        "LD_PRELOAD=x ls",
        "GIT_SSH=x git pull",
        "PAGER=x",
        "RANDOM='a[$(id)]'",
        "X=\"a[0]\" ls",
        "path=x ls",
        "env PATH=. ls",
        "export PATH=.",
        "export A=$x",
        "NODE_OPTIONS=x node",
        "BASH_ENV=x bash x",
        // Commands of the shell.
        "eval ls",
        "exec ls",
        "command ls",
        "builtin cd x",
        "source x",
        ". x",
        "trap ls EXIT",
        "alias a=b",
        "unset x",
        "read x",
        "set -a",
        "printf -v PATH x",
        "printf $x",
        "test -v 'a[$(id)]'",
        "[ $a = b ]",
        "[ x -eq 1 ]",
        "hash -p x ls",
        "cd $x",
        "let x=1",
        "wait -p x",
        "mapfile",
        "shopt -s expand_aliases",
        "enable -f x",
        "exit 'a[0]'",
        // Wrappers.
        "env -S 'touch x'",
        "xargs -i touch",
        "timeout touch x",
        "time -o x ls",
        "sh",
        "ls | sh",
        "sh -i",
        "sh -c $x",
        "sh -s",
        "sh /dev/stdin",
        "bash --rcfile x",
        "find $x",
        "find -ex*",
        "find ./$x",
        "find \"$@\"",
        "[ \"$@\" ]",
        "[ \"a\"$x ]",
        "find . -exec $x \\;",
        "find . -exec ls",
        "watch ls",
        "env $x",
        "xargs -I{} {}",
        "su -c ls",
        "sudo -i",
        "chrt -i touch x",
        "env -C / ls",
        "fd a -x touch",
        "fd -HX touch",
    ] {
        assert!(texts(source).is_err(), "{source:?}: {:?}", texts(source));
    }
}

#[test]
fn words_and_files_without_their_quotes() {
    let found = read("FOO=1 cp 'a b' \"c\"d $HOME/x $y *.txt 2> err.log < in >&2").commands;
    let values: Vec<_> = found[0].words.iter().map(Word::known).collect();
    assert_eq!(
        values,
        [Some("cp"), Some("a b"), Some("cd"), Some("~/x"), None, None]
    );
    // bash inserts the home folder, dash does not.
    for (source, want) in [
        ("dd of=~/x", "of=\0"),
        ("dd of=a:~", "of=a:\0"),
        ("dd -of=~", "-of=~"),
    ] {
        assert_eq!(read(source).commands[0].words[1].value, want, "{source}");
    }
    let files: Vec<_> = found[0]
        .files
        .iter()
        .map(|it| (it.name.known(), it.written))
        .collect();
    assert_eq!(files, [(Some("err.log"), true), (Some("in"), false)]);
}

#[test]
fn spellings() {
    for (source, want) in [
        ("'touch' x", &["'touch' x", "touch x"][..]),
        ("\\touch\tx", &["\\touch x", "touch x"]),
        ("to\"\"uch   x", &["to\"\"uch x", "touch x"]),
        ("Y=1 touch x >y", &["touch x"]),
        ("/usr/bin/touch x", &["/usr/bin/touch x", "touch x"]),
        ("touch $v", &["touch $v", "touch \0"]),
        (
            "git -C sub --no-pager -c a=b push",
            &["git -C sub --no-pager -c a=b push", "git push"],
        ),
        ("npx touch x", &["npx touch x", "touch x", "x"]),
        (
            "/usr/lib/git-core/git-push x",
            &["/usr/lib/git-core/git-push x", "git-push x", "git push x"],
        ),
    ] {
        assert_eq!(read(source).commands[0].spellings(), want, "{source}");
    }
}

#[test]
fn what_git_starts_by_its_options_is_in_doubt() {
    for (line, doubt) in [
        ("git -c alias.x=push x origin", true),
        ("git -c 'alias.x=!git push' x", true),
        ("git --no-pager -C sub -c Alias.X=push x", true),
        ("V=push git --config-env=alias.x=V x", true),
        ("git --config-env alias.x=V x", true),
        ("git -c core.pager='touch x' log", true),
        ("git -c core.sshCommand=./x fetch", true),
        ("git -c diff.y.textconv=./x diff", true),
        ("git -c include.path=x status", true),
        ("git -c $x status", true),
        ("git --exec-path=. x", true),
        ("git rebase -x 'git push' --root", true),
        ("git rebase -ix 'git push' --root", true),
        ("git rebase --exec='git push' --root", true),
        ("/usr/lib/git-core/git-rebase -x ls --root", true),
        ("git grep -O'touch P' hi", true),
        ("git grep -nO./x hi", true),
        ("git grep --open-files-in-pager=./x hi", true),
        ("git difftool -y -x ./x HEAD", true),
        ("git filter-branch --msg-filter cat HEAD", true),
        ("git clone -c core.fsmonitor=./x a", true),
        ("git clone -u ./x a", true),
        ("git fetch --upload-pack=./x a", true),
        ("git push --receive-pack=./x a", true),
        ("git --shallow-file '' push", true),
        ("git psuh origin", true),
        ("git -c help.autocorrect=immediate status", true),
        ("git -c x.r=. for-each-repo --config=x.r push", true),
        (
            "git -c tar.x.command='git push' archive --format=x HEAD",
            true,
        ),
        ("git -c gpg.ssh.defaultKeyCommand=./x commit", true),
        ("git -c core.hooksPath=on commit", true),
        ("VISUAL=./x git commit", true),
        ("ls | split --filter='git push'", true),
        ("tar --to-command=./x -xf a.tar", true),
        ("rg --pre ./x hi", true),
        ("git", false),
        ("git --git-dir=x --no-pager log", false),
        ("git -c core.hooksPath=/dev/null commit", false),
        ("git -c user.name=x -c user.email=\"$M\" commit -m x", false),
        ("git -c core.pager=cat log", false),
        ("git -c core.editor=true rebase --continue", false),
        ("git --no-pager grep -n -e Oxx src", false),
        ("git grep -nE 'O' src", false),
        ("git rebase -i --onto main x", false),
        ("git push --recurse-submodules=no origin main", false),
        ("git clone -b x --depth 1 url", false),
        ("git-lfs pull", false),
    ] {
        assert_eq!(read(line).doubt.is_some(), doubt, "{line}");
    }
}

#[test]
fn what_needs_no_approval() {
    for (source, inert) in [
        ("a=1", true),
        ("A=1", false),
        ("[ -f x ]", true),
        ("[ -f x ] > y", false),
        ("> x", false),
        // zsh runs a pager.
        ("< x", false),
        ("2>&1", false),
        ("a=1 < x", true),
        ("ls", false),
        ("export A=1", false),
    ] {
        assert_eq!(read(source).commands[0].inert, inert, "{source}");
    }
}

#[test]
fn folders_that_a_command_may_run_in() {
    for (source, want) in [
        ("x", Some(&[""][..])),
        ("cd a && x", Some(&["a"])),
        ("cd a && cd b/.. && x", Some(&["a/b/.."])),
        ("cd /a && x", Some(&["/a"])),
        ("cd ~/a && x", Some(&["~/a"])),
        ("cd \"$HOME/a\" && x", Some(&["~/a"])),
        ("cd -- 'a b' && time nice x", Some(&["a b"])),
        ("cd a && sh -c 'cd b && x'", Some(&["a/b"])),
        // It may have failed, been skipped, or run in a separate shell.
        ("cd a; x", Some(&["", "a"])),
        ("cd a\nx", Some(&["", "a"])),
        ("cd a || x", Some(&["", "a"])),
        ("cd a | x", Some(&["", "a"])),
        ("cd a & x", Some(&["", "a"])),
        ("! cd a && x", Some(&["", "a"])),
        ("time cd a && x", Some(&["", "a"])),
        ("if cd a; then x; fi", Some(&["", "a"])),
        ("cd a && b; cd c && x", Some(&["c", "a/c"])),
        ("pushd a && popd && x", Some(&["", "a"])),
        ("sh -c 'cd a'; x", Some(&[""])),
        // Unknown.
        ("cd - && x", None),
        ("cd && x", None),
        ("cd '~' && x", None),
        ("cd -P a && x", None),
        ("pushd && x", None),
        ("find . -execdir x ';'", None),
        ("while x; do cd a; done; x", None),
    ] {
        let line = read(source);
        assert_eq!(line.doubt, None, "{source}");
        let mut last = line.commands.into_iter();
        let last = last.rfind(|it| it.program() == Some("x")).unwrap();
        let folders: Option<Vec<&str>> = last
            .folders
            .as_ref()
            .map(|it| it.iter().map(String::as_str).collect());
        assert_eq!(folders.as_deref(), want, "{source}");
    }
}

/// The lenient reader finds every file that any shell may open.
#[test]
fn files_that_are_written() {
    for (source, want) in [
        ("echo a >| f", &["f"][..]),
        ("echo a &> f", &["f"]),
        ("echo a &>> f", &["f"]),
        ("echo a >& f", &["f"]),
        ("cat <> f", &["f"]),
        ("exec 3> f", &["f"]),
        ("exec {fd}> f", &["f"]),
        ("echo a >! f", &["f", "!"]),
        ("echo a >!f", &["f", "!f"]),
        ("echo a >&| f", &["f"]),
        ("echo a >>| f", &["f"]),
        ("cat <<E > f\n$(x)\nE", &["f"]),
        ("for i in 1; do echo a; done > f", &["f"]),
        ("(echo a > f)", &["f"]),
        ("{ echo a; } > f", &["f"]),
        ("f() { echo a > f; }; f", &["f"]),
        ("echo $(echo a > f)", &["f"]),
        ("cat >(cat > f)", &["f"]),
        ("sh -c 'echo $(x) > f'", &["f"]),
        ("echo $(x) > $y", &["?"]),
        ("echo a 2>&1", &[]),
    ] {
        let line = read(source);
        let commands = line.commands.iter();
        let files: Vec<&str> = commands
            .flat_map(|it| &it.files)
            .filter(|it| it.written)
            .map(|it| it.name.known().unwrap_or("?"))
            .collect();
        assert_eq!(files, want, "{source}");
    }
}

proptest::proptest! {
    #[test]
    fn no_input_panics(source in "[a-zA $(){}`'\"\\\\;&|<>\n\t#=~!*é-]{0,60}") {
        let _ = read(&source);
    }
}
