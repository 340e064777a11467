//! One set of rules for tools and their processes: what a rule denies is kept from shell commands and plugins too.

use serde_json::{Value, json};

use crate::support::*;

const SECRET: &str = "not-for-you";

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// Sets up a repository, because patterns apply to paths from its root.
fn repository(turns: impl IntoIterator<Item = Value>) -> World {
    let world = World::new(turns);
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world
}

/// Sets up a project with secrets, and rules that deny them.
fn guarded(turns: impl IntoIterator<Item = Value>) -> World {
    let world = repository(turns);
    world.file(".env", SECRET);
    world.file("deep/.env", SECRET);
    world.file("keys/id", SECRET);
    world.file("schema.lock", "locked");
    world.file("plain.txt", "plain");
    world.file("conf/secret.yml", SECRET);
    world.file("conf/prod.yml", "locked");
    world.config(json!({ "permission": {
        "read": { "*.env": "deny", "keys/*": "deny", "conf/secret.yml": "deny" },
        "edit": { "*.lock": "deny", "conf/prod.yml": "deny" },
    } }));
    world
}

/// A deny applies to `read .env` and to `f=.env; cat "$f"` alike.
#[test]
fn what_a_rule_denies_is_kept_from_tools_and_commands_alike() {
    let ways = [
        turn([call("read", json!({ "filePath": ".env" }))]),
        bash("f=.env; cat \"$f\""),
        bash("cat deep/.e*; cat keys/id; ls keys; grep -r not-for . ; cat /proc/self/cwd/.env"),
        bash("mv deep moved; cat moved/.env; cp .env copy; cat copy; ln keys/id hard; cat hard"),
        turn([call(
            "write",
            json!({ "filePath": "schema.lock", "content": "open" }),
        )]),
        bash("echo open > schema.lock; rm -f schema.lock; mv schema.lock other"),
        bash(
            "mv conf c2; git mv conf c3; mkdir -p conf; echo open > conf/prod.yml; cat c2/secret.yml",
        ),
        bash("cat c2/secret.yml; echo x > conf/new"),
        turn([call("read", json!({ "filePath": "c2/secret.yml" }))]),
        bash("cat plain.txt; echo more > new.txt"),
    ];
    let count = ways.len();
    let world = guarded(ways.into_iter().chain([done()]));
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    assert_eq!(results.len(), count);
    for answer in &results {
        assert!(!answer.contains(SECRET), "{answer}");
    }
    assert!(
        results[0].contains("a rule that denies read"),
        "{}",
        results[0]
    );
    assert!(
        results[count - 1].contains("plain"),
        "{}",
        results[count - 1]
    );
    assert_eq!(world.read(".env"), SECRET);
    assert_eq!(world.read("schema.lock"), "locked");
    assert_eq!(world.read("conf/prod.yml"), "locked");
    assert_eq!(world.read("conf/new"), "x\n");
    assert_eq!(world.read("new.txt"), "more\n");
}

/// Where nothing is there is nothing to be mounted over: what a command makes under a denied name is moved aside when it has ended.
#[test]
fn a_new_file_of_a_denied_name_goes_with_its_command() {
    let world = guarded([
        // What a line names itself is refused before it runs.
        bash("sh make.sh"),
        bash("ls a"),
        done(),
    ]);
    world.file(
        "make.sh",
        "echo evil > new.lock; mkdir a; mv new.lock a/b.lock; echo fine > fine.txt; cat a/b.lock\n",
    );
    world.run(&["do it"]).ok();
    let results = world.mock.last().texts("tool");
    let said = "Rules deny changes of a/b.lock: what came there";
    assert!(
        results[0].contains("evil") && results[0].contains(said),
        "{results:?}"
    );
    assert!(results[1].starts_with("b.lock.put-aside-"), "{results:?}");
    assert!(!results[1].contains("Rules deny"), "{results:?}");
    assert!(!world.path("a/b.lock").exists());
    assert_eq!(world.read("fine.txt"), "fine\n");
}

/// The control: with the sandbox off, the rule applies to the tool alone.
#[test]
fn without_the_sandbox_a_rule_holds_for_tools_only() {
    let world = guarded([
        turn([call("read", json!({ "filePath": ".env" }))]),
        bash("cat .env"),
        done(),
    ]);
    world
        .run_with(&[("OUTRIGGER_SANDBOX", "off")], &["do it"])
        .ok();
    let results = world.mock.last().texts("tool");
    assert!(!results[0].contains(SECRET), "{}", results[0]);
    assert!(results[1].contains(SECRET), "{}", results[1]);
}

/// A rule of one agent applies to the processes of that agent.
#[test]
fn an_agents_own_rules_hold_for_its_commands() {
    let world = repository([bash("cat notes.txt plain.txt"), done()]);
    world.file("notes.txt", SECRET);
    world.file("plain.txt", "plain");
    world.config(
        json!({ "agent": { "build": { "permission": { "read": { "notes.txt": "deny" } } } } }),
    );
    world.run(&["do it"]).ok();
    let result = world.mock.last().texts("tool").remove(0);
    assert!(
        result.contains("plain") && !result.contains(SECRET),
        "{result}"
    );
}

/// Returns a folder other than the temporary ones, which commands may write to in every profile.
fn elsewhere() -> Option<tempfile::TempDir> {
    let temporary = [
        std::env::temp_dir(),
        "/tmp".into(),
        "/var/tmp".into(),
        "/dev/shm".into(),
    ];
    let built = Some(env!("CARGO_TARGET_TMPDIR").into());
    let home = std::env::var_os("HOME").map(std::path::PathBuf::from);
    [built, home, Some("/opt".into())]
        .into_iter()
        .flatten()
        .filter(|folder| {
            !temporary
                .iter()
                .any(|temporary| folder.starts_with(temporary))
        })
        .find_map(|folder| tempfile::tempdir_in(folder).ok())
}

#[test]
fn profiles_of_shell_commands() {
    let Some(elsewhere) = elsewhere() else {
        return skip("everything that this user can write to lies in temporary folders");
    };
    let outside = elsewhere.path().join("outside.txt");
    for (profile, in_project, anywhere) in [
        ("full", true, true),
        ("workspace-write", true, false),
        ("read-only", false, false),
    ] {
        let command = "cat plain.txt; echo in > inside.txt; echo out > $(cat where.txt); echo x > $(mktemp) && echo temporary";
        let world = World::new([bash(command), done()]);
        world.file("plain.txt", "plain\n");
        world.file("where.txt", outside.to_str().unwrap());
        world
            .run_with(&[("OUTRIGGER_TOOLS_SANDBOX", profile)], &["do it"])
            .ok();
        let result = world.mock.last().texts("tool").remove(0);
        assert!(
            result.contains("plain") && result.contains("temporary"),
            "{profile}: {result}"
        );
        let there = (world.path("inside.txt").exists(), outside.exists());
        assert_eq!(there, (in_project, anywhere), "{profile}: {result}");
        let _ = std::fs::remove_file(&outside);
    }
}

/// A project's own file cannot widen what commands may do.
#[test]
fn a_project_cannot_loosen_the_profile() {
    let world = World::new([bash("echo in > inside.txt"), done()]);
    world.settings("[tools]\nsandbox = \"full\"");
    let ours = world.home().join(".config/outrigger/outrigger.toml");
    std::fs::create_dir_all(ours.parent().unwrap()).unwrap();
    std::fs::write(ours, "[tools]\nsandbox = \"read-only\"\n").unwrap();
    let done = world.run(&["do it"]).ok();
    assert!(done.stderr.contains("tools.sandbox"), "{}", done.stderr);
    assert!(!world.path("inside.txt").exists());
}

/// If more is denied than can be kept from a process, it is not started, and the reason is reported.
#[test]
fn too_much_to_deny_refuses_the_command() {
    let world = World::new([bash("cat plain.txt"), done()]);
    world.file("plain.txt", SECRET);
    for number in 0..2_001 {
        world.file(&format!("{number}.key"), "");
    }
    world.config(json!({ "permission": { "read": { "*.key": "deny" } } }));
    world.run(&["do it"]).ok();
    let result = world.mock.last().texts("tool").remove(0);
    insta::assert_snapshot!(world.plain(&result), @"The command was not started: cannot apply the permission rules to the process sandbox: PROJECT has more than 2000 paths that a rule denies (deny whole folders, as `secrets/*`, instead of names that may be anywhere, as `*.key`)");
}

const NOSY: &str = r#"
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import net from "node:net"
const tried = (name, what) => { try { return `${name}: ${what()}` } catch (error) { return `${name}: ${error.code}` } }
const connect = (path) => new Promise((resolve) => {
    const socket = net.connect({ path })
    socket.on("connect", () => { socket.end(); resolve("unix: connected") })
    socket.on("error", (error) => resolve(`unix: ${error.code}`))
})
export const Nosy = async ({ directory }) => ({
    "tool.execute.before": async () => {
        const said = [
            tried("env", () => readFileSync(`${directory}/.env`, "utf8") || "nothing"),
            tried("key", () => readFileSync(`${directory}/keys/id`, "utf8")),
            tried("lock", () => writeFileSync(`${directory}/schema.lock`, "open")),
            tried("plain", () => readFileSync(`${directory}/plain.txt`, "utf8")),
            tried("moved", () => renameSync(`${directory}/conf`, `${directory}/c2`)),
            await connect(`${directory}/service.sock`),
        ]
        writeFileSync(`${directory}/said.txt`, said.join("\n"))
    },
})
"#;

/// A plugin's process follows the same rules, and has no access to services that listen on UNIX sockets without a
/// grant.
#[test]
fn plugins_are_under_the_same_rules() {
    for (granted, unix) in [("false", false), ("true", true)] {
        let world = guarded([bash("true"), done()]);
        let plugin = world.plugin("nosy", NOSY);
        let service = std::os::unix::net::UnixListener::bind(world.path("service.sock")).unwrap();
        // A file is granted something by its path: anyone can call theirs `nosy`.
        let ours = world.home().join(".config/outrigger/outrigger.toml");
        std::fs::create_dir_all(ours.parent().unwrap()).unwrap();
        let grant = format!(
            "[plugins.\"{}\"]\nunix_sockets = {granted}\n",
            plugin.display()
        );
        std::fs::write(ours, grant).unwrap();
        world.run(&["do it"]).ok();
        drop(service);
        let said = world.read("said.txt");
        assert!(!said.contains(SECRET), "{said}");
        assert!(said.contains("plain: plain"), "{said}");
        assert!(said.contains("moved: EBUSY"), "{said}");
        assert_eq!(said.contains("unix: connected"), unix, "{granted}: {said}");
        assert_eq!(world.read("schema.lock"), "locked");
    }
}

/// `outrigger sandbox` runs a command as the tool does: the same rules, its exit code, its output.
#[test]
fn the_sandbox_of_commands_can_be_tried() {
    let world = guarded([]);
    let rows = [
        ("cat plain.txt", 0, "plain"),
        ("cat .env", 0, ""),
        ("echo no >&2; exit 7", 7, ""),
        ("kill -TERM $$", 143, ""),
    ];
    for (command, code, printed) in rows {
        let done = world.start(world.command(&["sandbox", "--", "sh", "-c", command]));
        let done = done.end();
        assert_eq!(
            (done.code, done.stdout.trim()),
            (code, printed),
            "{}",
            done.stderr
        );
        assert!(!done.stdout.contains(SECRET) && !done.stderr.contains(SECRET));
    }
    let missing = world
        .start(world.command(&["sandbox", "--", "no-such-program"]))
        .end();
    assert_eq!(missing.code, 1);
    assert!(
        missing.stderr.contains("no-such-program"),
        "{}",
        missing.stderr
    );
}

/// On systems without user namespaces (Ubuntu 24.04), what cannot be covered is not allowed, or is restored.
#[test]
fn what_rules_deny_and_what_runs_later_holds_without_user_namespaces() {
    const ENTER: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps=-all --no-new-privs \"$@\"";
    let world = guarded([]);
    world.file(".git/config", "[core]\n\tbare = false\n");
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world.file(".git/hooks/post-merge", "mine\n");
    world.file(".envrc", "mine\n");
    world.file("sub/x", "x\n");
    let sandboxed = |command: &str| {
        let script = format!("exec \"$OUTRIGGER\" sandbox -- sh -c '{command}'");
        let inner = ["sh", "-c", &script];
        let args = [&["-Ur", "sh", "-c", ENTER, "sh"][..], &inner].concat();
        world.start(world.script("unshare", &args)).end()
    };
    let possible = sandboxed("cat plain.txt; echo a > sub/new && cat sub/new");
    if possible.stderr.contains("unshare") {
        return skip("there is no user namespace to begin with");
    }
    assert_eq!(
        (possible.code, possible.stdout.as_str()),
        (0, "plaina\n"),
        "{}",
        possible.stderr
    );
    for command in [
        "cat .env",
        "cp .env sub/x",
        "mv .env sub/y; cat sub/y",
        "ln .env sub/z; cat sub/z",
    ] {
        let done = sandboxed(command);
        assert!(done.code != 0, "{command}");
        assert!(!(done.stdout + &done.stderr).contains(SECRET), "{command}");
    }
    // A daemon repeats it until it is ended.
    let done = sandboxed(
        "echo evil > .envrc; echo \"[core] fsmonitor = x\" >> .git/config; rm -r .git/hooks; \
         (setsid sh -c \"while :; do echo evil > .git/config; done\" >/dev/null 2>&1 &); sleep 0.2",
    );
    assert_eq!(done.code, 0, "{}", done.stderr);
    assert!(
        done.stderr.contains("what was there is back"),
        "{}",
        done.stderr
    );
    assert_eq!(world.read(".envrc"), "mine\n");
    assert_eq!(world.read(".git/config"), "[core]\n\tbare = false\n");
    assert_eq!(world.read(".git/hooks/post-merge"), "mine\n");
    assert!(world.read(".env").contains(SECRET));
}
