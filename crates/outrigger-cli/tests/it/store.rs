//! The store on a full disk, with several processes, and when damaged.

use std::os::unix::fs::FileExt as _;

use serde_json::json;

use crate::support::*;

/// In a separate mount namespace the data folder is a small file system, which is filled up and freed again.
#[test]
fn a_full_disk_loses_nothing_that_was_stored() {
    let world = World::new([text("one"), text("two"), text("three")]);
    let script = "
        mount -t tmpfs -o size=4m none $DATA || exit 77
        $OUTRIGGER run first || exit 1
        cat /dev/zero > $DATA/fill 2>/dev/null
        $OUTRIGGER run -c second > second.out 2> second.err; echo $? > second.code
        rm $DATA/fill
        $OUTRIGGER run -c third || exit 2
        $OUTRIGGER session verify && $OUTRIGGER session export > export.json";
    let done = world
        .start(world.script("unshare", &["-m", "sh", "-c", script]))
        .end();
    if done.code != 0 && (done.code == 77 || done.stderr.contains("unshare:")) {
        println!(
            "skipped: no file system can be mounted here ({})",
            done.stderr.trim()
        );
        return;
    }
    let done = done.ok();
    assert!(
        done.stdout.starts_with("one\n") && done.stdout.contains("hash chain intact"),
        "{}",
        done.stdout
    );
    assert_eq!(
        world.read("second.code"),
        "1\n",
        "{}",
        world.read("second.err")
    );
    insta::assert_snapshot!(world.plain(&world.read("second.err")), @r"
    Error: no room left to write to the session store HOME/.local/share/outrigger/outrigger.db
    error: no room left to write to the session store HOME/.local/share/outrigger/outrigger.db [store.full]
      hint: free some disk space; nothing was half-written and the next write works
    ");
    assert!(
        world.read("export.json").contains("\"one\"")
            && world.read("export.json").contains("\"third\"")
    );
}

#[test]
fn eight_processes_on_one_store() {
    let world = World::with(
        Mock::new([
            turn([call("read", json!({ "filePath": "hello.txt" }))]),
            done(),
        ])
        .by_results(),
    );
    let running: Vec<_> = (0..8)
        .map(|n| world.start(world.command(&["run", "--title", &format!("t{n}"), "go"])))
        .collect();
    for run in running {
        assert_eq!(run.end().ok().stdout, "All done.\n");
    }
    let sessions = world.cli(&["session", "list", "--json"]).ok().json();
    let mut titles: Vec<&str> = sessions
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|s| s["title"].as_str())
        .collect();
    titles.sort_unstable();
    assert_eq!(titles, ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"]);
    let verified = world.verify();
    assert!(verified.starts_with("8 turns"), "{verified}");
}

/// A session belongs to one process at a time; another one gets an error at once.
#[test]
fn one_session_in_two_processes() {
    let world = World::new([json!({ "text": "Wait for it", "stall": 2 }), done()]);
    let running = world.start(world.command(&["run", "--title", "x", "hi"]));
    assert!(
        wait_until(WAIT_TIMEOUT, || !world.mock.requests().is_empty()),
        "{}",
        running.stderr()
    );
    let sessions = world.cli(&["session", "list", "--json"]).ok().json();
    let id = sessions[0]["id"].as_str().unwrap().to_owned();
    let second = world.run(&["-s", &id, "me too"]).exited(1);
    insta::assert_snapshot!(second.stderr.replace(&id, "ID"), @r"
    error: session `ID` is in use by another process [agent.busy]
      hint: wait for it, or start a new session without -c and -s
    ");
    let refused = world.cli(&["session", "delete", &id]).exited(1);
    insta::assert_snapshot!(refused.stderr.replace(&id, "ID"), @r"
    error: session `ID` is in use by another process [agent.busy]
      hint: wait for it, or start a new session without -c and -s
    ");
    running.signal(rustix::process::Signal::INT);
    running.end().exited(130);
    world.run(&["-s", &id, "me too"]).ok();
    world.verify();
}

/// Overwrites pages, as a failing disk does, in a store whose log is in its main file.
fn damage(world: &World) {
    let file = std::fs::File::options()
        .write(true)
        .open(world.store())
        .unwrap();
    let pages = file.metadata().unwrap().len() / 4096;
    assert!(pages > 100, "{pages} pages");
    for page in [0, pages / 3, pages / 2] {
        file.write_all_at(&[0xA5; 4096], page * 4096).unwrap();
    }
    for left in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{left}", world.store().display()));
    }
}

#[test]
fn a_damaged_store_is_reported_and_salvaged() {
    let world = World::new([text("The answer is here."), done()]);
    world.run(&["keep", "this"]).ok();
    let large = world.file(
        "large.txt",
        &"a line to fill some pages with\n".repeat(8000),
    );
    for _ in 0..4 {
        world
            .run(&["-c", "-f", large.to_str().unwrap(), "--", "more"])
            .ok();
    }
    damage(&world);
    let failed = world.run(&["-c", "hi"]).exited(1);
    insta::assert_snapshot!(world.plain(&failed.stderr), @r"
    error: the session store HOME/.local/share/outrigger/outrigger.db is damaged: file is not a database [store.damaged]
      hint: run `outrigger session salvage` to copy what can still be read into a new store; the damaged file stays where it is
    ");
    assert_eq!(world.mock.requests().len(), 5);
    let target = world.root().join("salvaged.db");
    let salvaged = world
        .cli(&["session", "salvage", target.to_str().unwrap()])
        .ok();
    assert!(salvaged.stdout.contains("records"), "{}", salvaged.stdout);
    let again = world
        .cli(&["session", "salvage", target.to_str().unwrap()])
        .exited(1);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    // The user replaces the old file with the new one and continues.
    std::fs::rename(&target, world.store()).unwrap();
    assert!(
        world
            .cli(&["session", "show"])
            .ok()
            .stdout
            .contains("The answer is here.")
    );
    assert!(
        world
            .run(&["-c", "go on"])
            .ok()
            .stdout
            .ends_with("All done.\n")
    );
}

#[test]
fn a_file_that_is_no_store_is_left_alone() {
    let world = World::new([done()]);
    std::fs::create_dir_all(world.store().parent().unwrap()).unwrap();
    std::fs::write(world.store(), "my shopping list\n".repeat(1000)).unwrap();
    let failed = world.run(&["hi"]).exited(1);
    insta::assert_snapshot!(world.plain(&failed.stderr), @r"
    error: the session store HOME/.local/share/outrigger/outrigger.db is damaged: file is not a database [store.damaged]
      hint: run `outrigger session salvage` to copy what can still be read into a new store; the damaged file stays where it is
    ");
    assert!(
        std::fs::read_to_string(world.store())
            .unwrap()
            .starts_with("my shopping list\n")
    );
}

/// A second run reads the same configuration as the first: nothing that a run creates changes the discovery.
#[test]
fn the_second_run_is_like_the_first() {
    let world = World::with(
        Mock::new([
            turn([call(
                "bash",
                json!({ "command": "true", "description": "x" }),
            )]),
            done(),
        ])
        .by_results(),
    );
    world.plugin("mark", "export const Mark = async () => ({ 'chat.message': async (_, o) => { o.parts[0].text += ' marked' } })\n");
    let shown = || world.cli(&["config", "show"]).ok().stdout;
    let tree = || {
        let mut found: Vec<_> = walk(&world.project());
        found.sort();
        found
    };
    let (before, files) = (shown(), tree());
    let runs: Vec<Done> = (0..2).map(|_| world.run(&["hi"]).ok()).collect();
    let requests = world.mock.requests();
    assert_eq!(requests.len(), 4);
    for (first, second) in [(0, 2), (1, 3)] {
        let of = |n: usize| {
            (
                requests[n].texts("user"),
                requests[n].texts("system"),
                requests[n].tools(),
            )
        };
        assert_eq!(of(first), of(second));
    }
    assert!(requests[0].texts("user").concat().contains("marked"));
    assert_eq!(runs[0].stdout, runs[1].stdout);
    assert_eq!(shown(), before);
    assert_eq!(tree(), files, "a run leaves nothing in the project");
    // The folder is created so that it can be kept from commands; it is empty.
    assert_eq!(
        walk(&world.home().join(".config"))
            .iter()
            .filter(|path| path.is_file())
            .count(),
        0,
        "nor in the user's configuration"
    );
    // The same for its lists of keys and models.
    let lists = [("opencode/auth.json", "{}\n"), ("opencode/models.json", "")];
    let walked =
        [".local/share/opencode", ".cache/opencode"].map(|it| walk(&world.home().join(it)));
    for ((list, text), walked) in lists.iter().zip(walked) {
        let files: Vec<_> = walked.iter().filter(|path| path.is_file()).collect();
        assert!(files.len() == 1 && files[0].ends_with(list), "{files:?}");
        assert_eq!(
            std::fs::read_to_string(files[0]).unwrap(),
            *text,
            "nor in OpenCode's data"
        );
    }
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(dir)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .flat_map(|path| {
            if path.is_dir() {
                [walk(&path), vec![path]].concat()
            } else {
                vec![path]
            }
        })
        .collect()
}
