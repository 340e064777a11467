use super::*;

fn named(files: &[&str], value: Value) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap();
    for file in files {
        let path = project.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = match *file {
            "package.json" => r#"{"scripts": {"serve": "node lib/serve.js"}}"#,
            "tools/starts" => "#!./tools/interp -x\n",
            "data.db" => "SQLite format 3\0",
            "archive.db" => "SQLite format 3\0 PK\u{5}\u{6}",
            _ => "x",
        };
        std::fs::write(path, text).unwrap();
    }
    let found = files_run_by(&value, &project, Path::new("/home/x")).unwrap();
    found
        .iter()
        .map(|it| {
            let (file, hash) = it.rsplit_once(' ').unwrap();
            assert!(!hash.is_empty());
            Path::new(file)
                .strip_prefix(&project)
                .unwrap()
                .display()
                .to_string()
        })
        .collect()
}

#[test]
fn what_a_command_runs_is_found_however_it_is_written() {
    for (command, file) in [
        (json!(["node", "dist/index.js"]), "dist/index.js"),
        (json!(["node", "./dist"]), "dist/index.js"),
        (json!(["node", "dist/index"]), "dist/index.js"),
        (json!(["python", "-m", "tools.server"]), "tools/server.py"),
        (json!(["python3", "-mtools.server"]), "tools/server.py"),
        (json!(["python", "-m", "tools"]), "tools/__main__.py"),
        (
            json!("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/a.sh --x"),
            ".claude/hooks/a.sh",
        ),
        (
            json!("${CLAUDE_PROJECT_DIR}/.claude/hooks/a.sh"),
            ".claude/hooks/a.sh",
        ),
        (json!("$OTHER/.claude/hooks/a.sh"), ".claude/hooks/a.sh"),
        (json!("sh ${X:-./run.sh}"), "run.sh"),
        (json!("sh -c 'true;./run.sh'"), "run.sh"),
        (json!("cd tools && ./go"), "tools/go"),
        (json!("'my run.sh'"), "my run.sh"),
        (json!("./my\\ run.sh"), "my run.sh"),
        (json!("X=1 ./r'u'n.sh"), "run.sh"),
        (json!("sh<run.sh"), "run.sh"),
        (json!("node --require=./run.js x"), "run.js"),
        (json!({ "command": "make", "args": ["x"] }), "Makefile"),
        (json!(["/usr/bin/make"]), "Makefile"),
        (json!({ "command": "go", "cwd": "tools" }), "tools/go"),
        (
            json!({ "env": { "NODE_OPTIONS": "--import ./run.js" } }),
            "run.js",
        ),
        (json!({ "template": "See run.js: !`sh run.sh`" }), "run.sh"),
        (json!(["file:///run.sh"]), "run.sh"),
    ] {
        let other = ["README.md", "src/lib.rs"];
        assert_eq!(
            named(&[file, other[0], other[1]], command.clone()),
            [file],
            "{command}"
        );
    }
    for (command, files) in [
        (json!(["node", "."]), vec!["index.js", "util.js"]),
        (json!(["node", "lib"]), vec!["lib/serve.js"]),
        (
            json!(["python3", "-m", "http.server"]),
            vec!["json/__init__.py", "socketserver.py"],
        ),
        (json!(["perl", "-Isub", "-MX", "-e", "1"]), vec!["sub/X.pm"]),
        (json!(["sh", "-c", "sub/s.*"]), vec!["sub/s.sh"]),
        (
            json!(["bash", "-O", "globstar", "-c", "sh **/run"]),
            vec!["sub/deep/run"],
        ),
        (
            json!(["sh", "-c", "cd sub; cd deep; exec ./run"]),
            vec!["sub/deep/run"],
        ),
        (json!(["bash", "-c", "$'./sub/\\x72un'"]), vec!["sub/run"]),
        (json!(["run-parts", "sub"]), vec!["sub/10-a", "sub/20-b"]),
        (
            json!(["find", "sub", "-name", "*.x", "-exec", "sh", "{}", ";"]),
            vec!["sub/a.x", "sub/deep/b.x"],
        ),
        (
            json!(["git", "-c", "alias.x=!sub/s.sh", "x"]),
            vec!["sub/s.sh"],
        ),
        (
            json!({ "command": ["python3", "-m", "x"], "environment": { "PYTHONPATH": "sub" } }),
            vec!["sub/sitecustomize.py"],
        ),
        (
            json!({ "command": ["bash", "--posix", "-i"], "environment": { "ENV": "sub/rc.txt" } }),
            vec!["sub/rc.txt"],
        ),
        (
            json!({ "command": ["x"], "environment": { "START": "sub/s.sh" } }),
            vec!["sub/s.sh"],
        ),
        (
            json!(["npx", "--no-install", "mybin@1"]),
            vec!["node_modules/.bin/mybin"],
        ),
        (
            json!(["NPM", "exec", "mybin"]),
            vec!["node_modules/.bin/mybin"],
        ),
        (json!(["npx", "@a/b"]), vec!["node_modules/@a/b/cli.js"]),
        (
            json!(["/opt/Bun", "run", "sub/y.ts"]),
            vec!["bunfig.toml", "sub/y.ts"],
        ),
        (
            json!(["python3.12", "-m", "tools"]),
            vec!["tools/__main__.py"],
        ),
    ] {
        let mut found = named(&files, command.clone());
        found.sort();
        let mut files = files;
        files.sort();
        assert_eq!(found, files, "{command}");
    }
    // What a runtime's script is given is not run, nor is what another variable names.
    for (command, files) in [
        (
            json!(["python3", "check.py", "src"]),
            vec!["check.py", "src/a.py"],
        ),
        (json!(["npx", "-y", "x", "."]), vec!["index.js"]),
        (
            json!({ "command": ["node", "check.py"], "environment": { "MEMORY": "m.json", "ROOT": "src" } }),
            vec!["check.py", "m.json", "src/a.py"],
        ),
    ] {
        let found = named(&files, command.clone());
        let first = files
            .first()
            .filter(|it| **it == "check.py")
            .map(|it| (*it).to_owned());
        assert_eq!(found, Vec::from_iter(first), "{command}");
    }
    let started = named(&["tools/starts", "tools/interp"], json!(["./tools/starts"]));
    assert_eq!(started, ["tools/starts", "tools/interp"]);
    let files = ["package.json", "lib/serve.js", "lib/other.js"];
    let found = named(&files, json!(["npm", "run", "serve"]));
    assert_eq!(found, ["package.json", "lib/serve.js"]);
    assert!(named(&["data.db"], json!(["npx", "sqlite", "data.db"])).is_empty());
    let served = json!(["python3", "-m", "server", "--db", "data.db"]);
    assert!(named(&["data.db"], served).is_empty());
    assert!(named(&["run.sh"], json!(["npx", "https://x/run.sh", "-y"])).is_empty());
}

/// npx takes a name for a program of the package that it stands in, before it asks the registry.
#[test]
fn a_program_of_the_projects_own_package_is_part_of_what_npx_runs() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap();
    let digests = || {
        let command = json!(["npx", "-y", "some-server"]);
        files_run_by(&command, &project, Path::new("/home/x")).unwrap()
    };
    let manifest = |text: &str| std::fs::write(project.join("package.json"), text).unwrap();
    manifest(r#"{"name": "app"}"#);
    let before = digests();
    manifest(r#"{"name": "app", "dependencies": {"x": "1"}}"#);
    assert_eq!(digests(), before, "what people edit all day");
    std::fs::write(project.join("s.js"), "1").unwrap();
    manifest(r#"{"name": "app", "bin": {"some-server": "s.js"}}"#);
    let named = digests();
    assert_ne!(named, before);
    std::fs::write(project.join("s.js"), "2").unwrap();
    assert_ne!(digests(), named);
}

#[test]
fn pipes_links_and_many_files_are_handled() {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().canonicalize().unwrap();
    let all = |value: Value| files_run_by(&value, &project, Path::new("/home/x"));
    let digests = |value: Value| all(value).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(project.join("socket")).unwrap();
    assert_eq!(digests(json!(["sh", "socket"])).len(), 1);
    std::os::unix::fs::symlink("/bin/sh", project.join("link")).unwrap();
    let before = digests(json!(["./link"]));
    std::fs::remove_file(project.join("link")).unwrap();
    std::os::unix::fs::symlink("/bin/ls", project.join("link")).unwrap();
    let after = digests(json!(["./link"]));
    assert!(
        before.len() == 1 && after.len() == 1 && before != after,
        "{before:?}"
    );
    let huge = std::fs::File::create(project.join("huge.sh")).unwrap();
    huge.set_len(3 << 30).unwrap();
    let before = digests(json!(["./huge.sh"]));
    huge.set_len(4 << 30).unwrap();
    assert_ne!(before, digests(json!(["./huge.sh"])));
    let names: Vec<String> = (0..300).map(|n| format!("f{n}")).collect();
    for name in &names {
        std::fs::write(project.join(name), "x").unwrap();
    }
    assert_eq!(all(json!(names)), None);
}

/// A shell runs a file that begins like a database, and Python one that ends like an archive.
#[test]
fn a_database_that_is_run_is_code() {
    for command in [
        json!(["/bin/sh", "data.db"]),
        json!("env A=1 dash ./data.db"),
        json!(["node", "-e", "x", ";", "sh", "data.db"]),
    ] {
        assert_eq!(
            named(&["data.db"], command.clone()),
            ["data.db"],
            "{command}"
        );
    }
    let two =
        json!({ "a": { "command": ["npx", "data.db"] }, "b": { "command": ["sh", "data.db"] } });
    assert_eq!(named(&["data.db"], two), ["data.db"]);
    let archive = json!(["python3", "archive.db"]);
    assert_eq!(named(&["archive.db"], archive), ["archive.db"]);
}
