use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::*;

#[test]
fn programs_and_scripts_are_executed_and_what_they_look_at_is_not() {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().canonicalize().unwrap();
    for file in [
        "hooks/guard.sh",
        "hooks/guard.py",
        "start",
        "src/a.ts",
        "main.py",
        "node_modules/.bin/lint",
        "Makefile",
        "notes.md",
    ] {
        let path = project.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, file).unwrap();
        if matches!(file, "start" | "node_modules/.bin/lint") {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(&path, mode).unwrap();
        }
    }
    let scripts = json!({"scripts": {"check": "sh hooks/guard.sh", "other": "node x"}});
    std::fs::write(project.join("package.json"), scripts.to_string()).unwrap();
    let options = LoadOptions {
        directory: project.clone(),
        worktree: project.clone(),
        home: "/home/x".into(),
        ..LoadOptions::default()
    };
    for (line, want) in [
        (
            "bash \"$CLAUDE_PROJECT_DIR\"/hooks/guard.sh",
            "hooks/guard.sh",
        ),
        ("sh -c 'cd hooks && python3 guard.py'", "hooks/guard.py"),
        ("cat hooks/guard.sh | bash", "hooks/guard.sh"),
        ("./start --quiet src/a.ts notes.md", "start"),
        ("X=1 $CLAUDE_PROJECT_DIR/start", "start"),
        ("npm run check", "hooks/guard.sh package.json"),
        ("npx eslint src/*.ts src/a.ts", ""),
        ("prettier --check . main.py", ""),
        ("echo main", ""),
        ("sed 's/.*x//' notes > main.py; cat log > main.py", ""),
        ("sh -c 'hooks/*.sh'", "hooks/guard.sh"),
        ("ENV=hooks/guard.sh bash -i", "hooks/guard.sh"),
        ("node_modules/.bin/lint src/a.ts", "node_modules/.bin/lint"),
    ] {
        let value = json!({"type": "command", "command": line});
        let found: Vec<String> = executed_by(&value, &project.join(".claude"), &options)
            .keys()
            .map(|it| it.strip_prefix(&project).unwrap())
            .map(|it| it.display().to_string())
            .collect();
        assert_eq!(found.join(" "), want, "{line}");
        let asks = [TrustRequest::new(
            &project.join(".claude/settings.json"),
            "/hooks/Stop",
            &value,
        )];
        let kept = kept(&asks, &options);
        let stays = |it: &&str| !it.starts_with("node_modules") && *it != "package.json";
        let want = want.split_whitespace().filter(stays);
        assert!(
            kept.into_iter().eq(want.map(|it| project.join(it))),
            "{line}"
        );
    }
    let value = json!({"command": "./start", "args": ["hooks/guard.sh"]});
    assert_eq!(executed_by(&value, &project, &options).len(), 1);
}

/// Files of a project with guards of all kinds.
const FILES: [(&str, &str); 24] = [
    (
        "Makefile",
        "include inc.mk\nguard: deep\n\t@sh tools/g.sh\ndeep:\n\t./tools/deep.sh\n",
    ),
    ("inc.mk", "x:\n"),
    ("tools/Makefile", "guard:\n\t@true\n"),
    ("tools/x.mk", "guard:\n\t@true\n"),
    ("tools/g.sh", "x"),
    ("tools/deep.sh", "x"),
    ("tools/notes.md", "x"),
    ("tools/mod/guard.py", "x"),
    ("tools/index.js", "x"),
    ("tools/app/package.json", r#"{"main": "lib/start"}"#),
    ("tools/app/lib/start.js", "x"),
    ("justfile", "import 'more.just'\nguard:\n  tools/g.sh\n"),
    ("more.just", "x:\n"),
    ("Taskfile.yml", "includes:\n  x: ./tools/x.yml\n"),
    ("tools/x.yml", "x"),
    ("out/build.ninja", "subninja rules\n"),
    ("out/rules", "x"),
    ("CMakeLists.txt", "x"),
    ("Rakefile", "x"),
    ("build.gradle", "x"),
    ("node_modules/.bin/guard", "x"),
    ("src/a.ts", "x"),
    ("bunfig.toml", "x"),
    ("go.sh", "x"),
];

fn project() -> (tempfile::TempDir, LoadOptions) {
    let root = tempfile::tempdir().unwrap();
    let project = root.path().canonicalize().unwrap();
    for (file, text) in FILES {
        let path = project.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        if text == "x" && file != "tools/notes.md" && !file.ends_with(".toml") {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    let options = LoadOptions {
        directory: project.clone(),
        worktree: project,
        home: "/home/x".into(),
        ..LoadOptions::default()
    };
    (root, options)
}

/// Each of these lines could be switched off by a change of one of these files.
#[test]
fn the_files_in_which_programs_find_what_they_run_are_held() {
    let (_root, options) = project();
    let make = "Makefile inc.mk tools/deep.sh tools/g.sh";
    for (line, want) in [
        ("make guard", make),
        ("make -s guard || exit 2", make),
        ("env X=1 make guard", make),
        ("bash -c 'make guard'", make),
        ("M=make; $M guard", make),
        ("${MAKE:-make} guard", make),
        ("/usr/bin/make guard", make),
        (
            "make -sC tools guard",
            "Makefile inc.mk tools/Makefile tools/deep.sh tools/g.sh",
        ),
        (
            "make -Ctools other",
            "Makefile inc.mk tools/Makefile tools/deep.sh tools/g.sh",
        ),
        ("make -ftools/x.mk x", "Makefile inc.mk tools/x.mk"),
        ("make -f tools/x.mk x", "Makefile inc.mk tools/x.mk"),
        ("MAKEFILES=tools/x.mk make x", "Makefile inc.mk tools/x.mk"),
        ("just guard", "justfile more.just tools/g.sh"),
        ("task guard", "Taskfile.yml tools/x.yml"),
        ("ninja -C out guard", "out/build.ninja out/rules"),
        (
            "cmake --build out",
            "CMakeLists.txt Makefile inc.mk out/build.ninja out/rules",
        ),
        ("rake guard", "Rakefile"),
        ("gradle guard", "build.gradle"),
        ("cd too*; sh g.sh", "tools/g.sh"),
        ("cd tools && sh g.*", "tools/g.sh"),
        ("find tools -name 'g.*' -exec sh {} ';'", "tools/g.sh"),
        ("find tools -name 'g.*' | xargs sh", "tools/g.sh"),
        ("python3 -m tools.mod.guard", "tools/mod/guard.py"),
        ("node tools", "tools/index.js"),
        ("cd tools && node app", "tools/app/lib/start.js"),
        ("npx guard", "node_modules/.bin/guard"),
        ("bun tools/index", "bunfig.toml tools/index.js"),
        (
            "sh \"$(git rev-parse --show-toplevel)/tools/g.sh\"",
            "tools/g.sh",
        ),
        ("grep -q x src/a.ts tools/notes.md", ""),
    ] {
        let value = json!({ "command": line });
        let found = executed_by(&value, &options.directory, &options);
        let names: Vec<String> = found
            .keys()
            .map(|it| {
                it.strip_prefix(&options.directory)
                    .unwrap()
                    .display()
                    .to_string()
            })
            .filter(|it| it != "src/a.ts")
            .collect();
        let missing: Vec<&str> = want
            .split(' ')
            .filter(|it| !it.is_empty() && !names.contains(&(*it).to_owned()))
            .collect();
        assert!(missing.is_empty(), "{line}: {names:?} without {missing:?}");
        assert!(!want.is_empty() || names.is_empty(), "{line}: {names:?}");
        assert_eq!(
            unheld_by(&value, &options.directory, &options),
            None,
            "{line}"
        );
        // They are part of what the user trusts, in the same state.
        let ask = TrustRequest::new(&options.directory.join("x.json"), "/hooks/Stop", &value);
        let trusted = trusted_for(&[ask], &options, false);
        let trusted: Vec<String> = trusted
            .iter()
            .map(|it| format!("{} {}", it.file, it.hash))
            .collect();
        for (file, hash) in &found {
            let one = format!("{} {hash}", file.display());
            assert!(trusted.contains(&one), "{line}: {one} in {trusted:?}");
        }
    }
}

/// What is preferred over the file that was there counts as a change, and so does a link that leads elsewhere.
#[test]
fn a_file_that_takes_the_place_of_another_is_a_change() {
    for (line, change) in [
        ("make guard", "echo > GNUmakefile"),
        ("make -C tools guard", "echo > tools/makefile"),
        ("just guard", "echo > .justfile"),
        (
            "python3 -m tools.mod.guard",
            "mkdir tools/mod/guard; echo > tools/mod/guard/__init__.py",
        ),
        (
            "node tools",
            "echo '{\"main\": \"notes.md\"}' > tools/package.json",
        ),
        (
            "bun tools/index.js",
            "echo > bunfig.toml; echo preload > bunfig.toml",
        ),
        ("./link", "ln -sfn /bin/false link"),
        ("sh link/g.sh", "ln -sfn tools/mod link"),
        ("cd too*; sh g.sh", "mkdir toola; echo > toola/g.sh"),
        ("find tools -exec sh {} ';'", "echo > tools/0.sh"),
    ] {
        let (_root, options) = project();
        let link = options.directory.join("link");
        let target = if line == "./link" {
            "/bin/true"
        } else {
            "tools"
        };
        std::os::unix::fs::symlink(target, link).unwrap();
        let value = json!({ "command": line });
        let before = executed_by(&value, &options.directory, &options);
        assert!(!before.is_empty(), "{line}");
        run_in(&options.directory, change);
        assert_ne!(
            executed_by(&value, &options.directory, &options),
            before,
            "{line}"
        );
    }
}

fn run_in(folder: &Path, changes: &str) {
    for change in changes.split("; ") {
        let words = crate::project::command_words::shell_words(change);
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .filter(|it| !it.is_empty())
            .collect();
        match words.as_slice() {
            ["mkdir", name] => std::fs::create_dir(folder.join(name)).unwrap(),
            ["ln", _, target, name] => {
                std::fs::remove_file(folder.join(name)).unwrap();
                std::os::unix::fs::symlink(target, folder.join(name)).unwrap();
            }
            ["echo", text @ .., name] => std::fs::write(folder.join(name), text.concat()).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_cannot_be_found_is_named() {
    let (_root, options) = project();
    std::fs::write(
        options.directory.join("tools/Makefile"),
        "include $(D)/x.mk\n",
    )
    .unwrap();
    for line in [
        "find . -name g.sh -exec sh {} ';'",
        "for f in x; do sh $f; done",
        "eval \"$(cat go.sh)\"",
        "cargo run -p guard",
        "go run ./tools/guard",
        "make -C tools guard",
    ] {
        let value = json!({ "command": line });
        let unheld = unheld_by(&value, &options.directory, &options);
        assert!(unheld.is_some(), "{line}");
    }
    for line in ["sh tools/g.sh", "make guard", "jq .x | grep -q y && exit 2"] {
        let value = json!({ "command": line });
        assert_eq!(
            unheld_by(&value, &options.directory, &options),
            None,
            "{line}"
        );
    }
}
