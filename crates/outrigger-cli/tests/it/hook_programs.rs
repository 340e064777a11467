//! Project files that command hooks execute: nothing changes them while the agent works, and a file that changed anyway is not
//! run.

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

/// Refuses input that contains the word.
const GUARD: &str = "if grep -q forbidden; then echo 'the guard says no' >&2; exit 2; fi\n";

/// Tries to replace the guard in every way.
const SWAPS: &str = "echo 'exit 0' > tools/guard.sh
rm -f tools/guard.sh
mv tools old
echo 'exit 0' > new.sh; mv -f new.sh tools/guard.sh
ln -sf /dev/null tools/guard.sh
chmod 777 tools/guard.sh
touch tried; echo x > tools/other";

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Sets up a project with a script as hook, named by its own settings or the user's.
fn guarded(turns: impl IntoIterator<Item = Value>, by_user: bool) -> World {
    let world = World::new(turns);
    world.file("tools/guard.sh", GUARD);
    let hook = json!({"type": "command", "command": "sh \"$CLAUDE_PROJECT_DIR\"/tools/guard.sh", "timeout": 20});
    let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
    let folder = if by_user {
        world.home().join(".claude")
    } else {
        world.path(".claude")
    };
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), settings.to_string()).unwrap();
    world.config(json!({"permission": "allow"}));
    world
}

#[test]
fn a_command_does_not_change_the_script_of_a_hook() {
    for (by_user, sandbox) in [
        (false, "workspace-write"),
        (false, "full"),
        (true, "workspace-write"),
    ] {
        let forbidden = bash("echo forbidden > made");
        let world = guarded([bash(SWAPS), forbidden, done()], by_user);
        granting(&world, &format!("[tools]\nsandbox = \"{sandbox}\"\n"));
        let run = world.run(&["hi"]).ok();
        assert!(world.path("tried").exists(), "{sandbox}: {}", run.stderr);
        assert_eq!(world.read("tools/guard.sh"), GUARD, "{sandbox}");
        // Other files in the folder stay writable.
        assert_eq!(world.read("tools/other"), "x\n");
        let result = world.mock.last().texts("tool").concat();
        assert!(result.contains("the guard says no"), "{result}");
        assert!(!world.path("made").exists(), "{sandbox} {result}");
    }
}

/// As for start-up files: nobody is there to be asked.
#[test]
fn tools_ask_before_they_change_the_script_of_a_hook() {
    let path = "tools/guard.sh";
    let calls = [
        call("write", json!({"filePath": path, "content": "exit 0\n"})),
        call(
            "edit",
            json!({"filePath": path, "oldString": "exit 2", "newString": "exit 0"}),
        ),
    ];
    for change in calls {
        let read = call("read", json!({ "filePath": path }));
        let world = guarded([turn([read]), turn([change.clone()]), done()], false);
        let run = world.run(&["hi"]);
        assert_eq!(world.read(path), GUARD);
        let result = format!("{}{}", run.stdout, run.stderr);
        let says = "settings of this folder run it";
        assert!(result.contains(says), "{change:?}: {result}");
    }
}

/// Without a sandbox, or by another program: a changed script is not run, and what it guards is refused.
#[test]
fn a_script_that_was_changed_all_the_same_is_not_asked() {
    for (by_user, swap) in [
        (false, "echo 'exit 0' > tools/guard.sh"),
        (false, "rm tools/guard.sh"),
        (
            false,
            "mv tools old; mkdir tools; echo 'exit 0' > tools/guard.sh",
        ),
        (true, "echo 'exit 0' > tools/guard.sh"),
    ] {
        let world = guarded(
            [
                bash(&format!("{swap}; touch tried")),
                bash("touch made"),
                done(),
            ],
            by_user,
        );
        granting(&world, "sandbox = \"off\"\n");
        let run = world.run(&["hi"]).ok();
        assert!(world.path("tried").exists(), "{swap}: {}", run.stderr);
        let result = world.mock.last().texts("tool").concat();
        assert!(
            result.contains("tools/guard.sh has changed since"),
            "{result}"
        );
        assert!(!world.path("made").exists(), "{swap}: {result}");
    }
}

/// If it is replaced while it runs, its answer does not count.
#[test]
fn a_script_that_is_changed_while_it_runs_does_not_count() {
    let world = guarded([bash("touch made"), done()], false);
    let swaps = "echo 'exit 0' > \"$CLAUDE_PROJECT_DIR\"/tools/guard.sh\n";
    world.file("tools/guard.sh", swaps);
    granting(&world, "sandbox = \"off\"\n");
    world.run(&["hi"]).ok();
    let result = world.mock.last().texts("tool").concat();
    assert!(
        result.contains("tools/guard.sh has changed since"),
        "{result}"
    );
    assert!(!world.path("made").exists(), "{result}");
}

/// The file in which a program finds the guard is held like the guard: nothing names it in the command.
#[test]
fn a_makefile_that_was_changed_is_not_asked() {
    let guard = "guard:\n\t@! grep -q forbidden || { echo 'the guard says no' >&2; exit 2; }\n";
    for (by_user, command, swap) in [
        (
            false,
            "make -s guard || exit 2",
            "printf 'guard:\\n\\t@true\\n' > Makefile",
        ),
        (
            false,
            "make -s guard || exit 2",
            "printf 'guard:\\n\\t@true\\n' > GNUmakefile",
        ),
        (
            true,
            "make -s guard || exit 2",
            "printf 'guard:\\n\\t@true\\n' > Makefile",
        ),
    ] {
        let world = guarded(
            [
                bash(&format!("{swap}; touch tried")),
                bash("echo forbidden > made"),
                done(),
            ],
            by_user,
        );
        world.file("Makefile", guard);
        let folder = if by_user {
            world.home()
        } else {
            world.path("")
        };
        let hook = json!({"type": "command", "command": command, "timeout": 20});
        let settings = json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}});
        std::fs::write(folder.join(".claude/settings.json"), settings.to_string()).unwrap();
        world.run(&["hi"]).ok();
        let result = world.mock.last().texts("tool").concat();
        assert!(world.path("tried").exists(), "{swap}: {result}");
        assert!(
            result.contains("akefile has changed since"),
            "{swap}: {result}"
        );
        assert!(!world.path("made").exists(), "{swap}: {result}");
    }
}
