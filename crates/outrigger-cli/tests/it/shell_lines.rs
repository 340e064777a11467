//! Rules about shell words, against lines that spell them in another way or run them indirectly (rows 400 to 439 of
//! docs/bypass.md), with nobody to ask.

use serde_json::{Value, json};

use crate::support::*;

/// Runs the lines as calls of one step; `FILE` in each stands for a file that it creates. Returns the lines whose file exists.
fn made<'a>(lines: &[&'a str], rules: Value) -> Vec<&'a str> {
    made_with(&["do it"], lines, rules)
}

/// Like [`made`], with these arguments of `outrigger run`.
fn made_with<'a>(arguments: &[&str], lines: &[&'a str], rules: Value) -> Vec<&'a str> {
    let file = |at: usize| format!("made-{at}");
    let calls = lines.iter().enumerate().map(|(at, line)| {
        let command = line.replace("FILE", &file(at));
        call("bash", json!({ "command": command, "description": "x" }))
    });
    let world = World::new([turn(calls.collect::<Vec<_>>()), done()]);
    world.config(json!({ "permission": { "bash": rules } }));
    world.run(arguments);
    let made = lines.iter().enumerate();
    let made: Vec<&str> = made
        .filter(|(at, _)| world.path(&file(*at)).exists())
        .map(|(_, line)| *line)
        .collect();
    made
}

#[test]
fn a_denied_word_is_not_run_however_it_is_spelled() {
    let lines = [
        "'touch' FILE",
        "\\touch FILE",
        "to\"\"uch FILE",
        "touch\tFILE",
        "Y=1 touch FILE",
        "y=1 touch FILE",
        "> /dev/null touch FILE",
        "/usr/bin/touch FILE",
        "v=FILE; touch $v",
        "x=touch; $x FILE",
        "env touch FILE",
        "env -i PATH=\"$PATH\" touch FILE",
        "env -S 'touch FILE'",
        "command touch FILE",
        "exec touch FILE",
        "nice nohup timeout 5 setsid -w touch FILE",
        "time touch FILE",
        "echo FILE | xargs touch",
        "echo touch FILE | sh",
        "find . -maxdepth 0 -exec touch FILE ';'",
        "sh -c 'touch FILE'",
        "bash -lc 'touch FILE'",
        "eval 'touch FILE'",
        "f() { touch FILE; }; f",
        "shopt -s expand_aliases\nalias a=touch\na FILE",
        "to{u,}ch FILE",
        "t=ouch; t${t:-} FILE; \"t$t\" FILE",
        "trap 'touch FILE' EXIT",
        "echo $(touch FILE)",
        "cat <(touch FILE)",
        "for i in FILE; do touch $i; done",
    ];
    let rules = json!({ "*": "allow", "touch *": "deny" });
    assert_eq!(made(&lines, rules.clone()), Vec::<&str>::new());
    // Unrelated lines run.
    let others = [
        "echo touch > FILE",
        "cat > FILE <<'E'\n$(touch x)\nE",
        "env A=b sh -c 'echo \"$A\" > FILE'",
    ];
    assert_eq!(made(&others, rules), others);
}

/// Attempts 1328, 1329, 1346 and 1366 of docs/bypass/attempts.toml: `--auto` answers for the user, who would be asked about what was not read.
#[test]
fn a_denied_word_is_not_run_unread_with_auto() {
    let (many, nested) = (":; ".repeat(1200), "$(".repeat(40));
    let lines = [
        format!("[[ 1 ]]; {many}touch FILE"),
        format!("echo {nested}touch FILE{}", ")".repeat(40)),
        "$'touch' FILE".to_owned(),
        "$'\\x74ouch' FILE".to_owned(),
        "time -p touch FILE".to_owned(),
        "coproc touch FILE; wait".to_owned(),
        "a[0]=(1) x; touch FILE".to_owned(),
        "shopt -s extglob\n: !(a|b); touch FILE".to_owned(),
        "x=touch; $x FILE".to_owned(),
        "x='a[$(touch FILE)]'; ((x))".to_owned(),
        "x='a[$(touch FILE)]'; [[ $x -eq 0 ]]".to_owned(),
        "i=1; read i <<< 'a[$(touch FILE)]'; echo $((i))".to_owned(),
        "set -- a; for x do touch FILE; done".to_owned(),
        "echo ${x:-'}'}; touch FILE #'".to_owned(),
        "x='; touch FILE'; eval \"echo $x\"".to_owned(),
        "bash {-c,'touch FILE'}".to_owned(),
        "sh -c \"echo \\$'\\\\'; touch FILE #'\"".to_owned(),
        "for i in FILE; do echo > $i; done".to_owned(),
        "for ((i=0;i<1;i++)); do [[ $i =~ ^(0|1)$ ]] && echo > FILE; done".to_owned(),
        "function f() { cat <<< a > >(cat > FILE); sleep 1; }; f".to_owned(),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let rules = json!({ "*": "allow", "touch *": "deny" });
    let got = made_with(&["--auto", "do it"], &lines, rules);
    // These were read.
    assert_eq!(got, lines[lines.len() - 3..]);
    // Without a rule that denies, they all run.
    let unread = ["$'touch' FILE", "x=touch; $x FILE"];
    let got = made_with(
        &["--auto", "do it"],
        &unread,
        json!({ "*": "allow", "touch *": "ask" }),
    );
    assert_eq!(got, unread);
}

#[test]
fn what_hides_a_command_needs_approval() {
    let lines = [
        "[[ 'a[$(touch FILE)]' -eq 0 ]]",
        "x='a[$(touch FILE)]'; ((x))",
        "declare -i x='a[$(touch FILE)]'",
        "x='a[$(touch FILE)]'; let x",
        "x='a[$(touch FILE)]'; test -v \"$x\"",
        "x='a[$(touch FILE)]'; printf -v \"$x\" y",
        "RANDOM='a[$(touch FILE)]'",
        "x='$(touch FILE)'; echo ${x@P}",
        "echo \"$'\"; touch FILE; echo \"'\"",
        "cat <<-E\n\tE\ntouch FILE\nE",
        "export -p > FILE",
        "readonly > FILE",
        "export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0='touch FILE'; git status",
        "git() { touch FILE; }; git status",
        "printf '#!/bin/sh\\ntouch FILE' > git; PATH=.:$PATH; git status",
        "git status; touch FILE",
        "git status \"$(touch FILE)\"",
        "echo \"`touch FILE`\"",
        "echo >&'$(touch FILE)'",
        "echo a &> y touch FILE; echo $((x=1)) > FILE",
        "echo {fd}>FILE; exec {fd}>FILE",
        "hash -p /usr/bin/touch git; git FILE",
        "alias echo=touch\necho FILE > FILE",
    ];
    let rules = json!({ "*": "ask", "git status *": "allow", "echo *": "allow", "cat *": "allow", "x=*": "allow", "printf '*": "allow" });
    let got = made(&lines, rules);
    // The files that the pattern allows to write.
    let allowed: Vec<&str> = Vec::new();
    assert_eq!(got, allowed);
    // If everything is allowed, and nothing is excepted, everything runs.
    let all = [
        "[[ 'a[$(touch FILE)]' -eq 0 ]]",
        "f() { touch FILE; }; f",
        "eval 'touch FILE'",
    ];
    assert_eq!(made(&all, json!("allow")), all);
}

/// A program with a relative path is the one in the session's folder, and a redirection writes what `edit` allows.
#[test]
fn another_program_of_the_same_name_and_a_file_behind_a_redirection() {
    let run = |command: &str, workdir: &str| {
        let input = json!({ "command": command, "workdir": workdir, "description": "x" });
        call("bash", input)
    };
    let world = World::new([
        turn([
            run("./t.sh", "."),
            run("cd sub && ./t.sh", "."),
            run("./t.sh", "sub"),
            run("cd sub; ./t.sh", "."),
            run("echo a > denied", "."),
            run("cd sub && echo a >> denied", "."),
            run("echo $(echo a > denied)", "."),
            run("echo a > allowed", "."),
        ]),
        done(),
    ]);
    world.file("t.sh", "#!/bin/sh\necho ran >> own\n");
    world.file("sub/t.sh", "#!/bin/sh\ntouch elsewhere ../elsewhere\n");
    for script in ["t.sh", "sub/t.sh"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(world.path(script), mode).unwrap();
    }
    let rules = json!({ "*": "ask", "./t.sh": "allow", "echo *": "allow" });
    let edit = json!({ "*": "deny", "allowed": "allow" });
    world.config(json!({ "permission": { "bash": rules, "edit": edit } }));
    world.run(&["do it"]);
    assert_eq!(world.lines("own"), ["ran"]);
    let made = ["elsewhere", "sub/elsewhere", "denied", "sub/denied"];
    let made: Vec<&str> = made
        .into_iter()
        .filter(|it| world.path(it).exists())
        .collect();
    assert_eq!(made, Vec::<&str>::new());
    assert!(world.path("allowed").exists());
    let states = world
        .parts("tool")
        .iter()
        .map(|it| it["state"].to_string())
        .collect::<String>();
    assert_eq!(
        states.matches("a rule that denies edit").count(),
        2,
        "{states}"
    );
}

#[test]
fn lines_of_templates_are_read_too() {
    let world = World::new([done()]);
    world.config(
        json!({ "permission": { "bash": { "*": "ask", "echo *": "allow" }, "edit": "ask" } }),
    );
    world.file(
        ".opencode/command/state.md",
        "!`echo one` !`echo two; touch made-0` !`echo $(touch made-1)` !`echo a > made-2`\n",
    );
    world.run(&["--command", "state"]).ok();
    let text = world.mock.last().texts("user").remove(0);
    assert!(text.starts_with("one\n (not run: "), "{text}");
    assert_eq!(text.matches("(not run: ").count(), 3, "{text}");
    for file in ["made-0", "made-1", "made-2"] {
        assert!(!world.path(file).exists(), "{file}");
    }
}

/// Guards of tool calls are asked about a command's lines and files, and no other plugin is.
#[test]
fn lines_and_files_of_commands_pass_the_guards() {
    const GUARD: &str = "
import fs from 'node:fs'
export const G = async ({ directory }) => ({ 'tool.execute.before': async (input, output) => {
  const call = JSON.stringify([input.tool, output.args, input.provenance])
  fs.appendFileSync(directory + '/NAME.txt', call + '\\n')
  if (call.includes('forbidden')) throw new Error('the guard says no')
} })";
    for by_hook in [false, true] {
        let world = World::new([done()]);
        world.plugin("other", &GUARD.replace("NAME", "other"));
        if by_hook {
            let command = "in=$(cat); echo \"$in\" >> guard.txt; case $in in *forbidden*) echo 'the guard says no' >&2; exit 2;; esac";
            let hook = json!({"type": "command", "command": command, "timeout": 20});
            let hooks = json!({"PreToolUse": [{"matcher": "Bash|Read", "hooks": [hook]}]});
            let folder = world.home().join(".claude");
            std::fs::create_dir_all(&folder).unwrap();
            let settings = json!({ "hooks": hooks }).to_string();
            std::fs::write(folder.join("settings.json"), settings).unwrap();
        } else {
            world.plugin("guard", &GUARD.replace("NAME", "guard"));
            let guarded = "[plugins.guard]\nfail_closed = [\"tool.execute.before\"]\n";
            crate::user_grants::granting(&world, guarded);
        }
        world.config(json!({ "permission": "allow" }));
        world.file("forbidden.md", "secret");
        world.file("notes.md", "remember");
        world.file(
            ".opencode/command/state.md",
            "!`echo fine` !`echo forbidden > made` @forbidden.md @notes.md\n",
        );
        world.run(&["--command", "state"]).ok();
        let prompt = world.mock.last().texts("user").concat();
        for says in [
            "fine",
            "(not run: the guard says no)",
            "(forbidden.md is skipped: the guard says no)",
            "remember",
        ] {
            assert!(prompt.contains(says), "{says}: {prompt}");
        }
        assert!(!prompt.contains("secret"), "{prompt}");
        assert!(!world.path("made").exists());
        let asked = world.read("guard.txt");
        assert!(asked.contains("command state"), "{asked}");
        assert_eq!(asked.lines().count(), 4, "{asked}");
        assert!(!world.path("other.txt").exists());
    }
}
