//! `-f` with something other than a plain file, and `--dir`.

use crate::support::*;

#[test]
fn files_are_those_of_the_folder_that_is_worked_in() {
    let world = World::new([done()]);
    let mut command = world.command(&[
        "run",
        "--dir",
        "project",
        "-f",
        "hello.txt",
        "--",
        "what is this?",
    ]);
    command.current_dir(world.root());
    world.start(command).end().ok();
    assert!(
        world
            .mock
            .last()
            .texts("user")
            .join("\n")
            .contains("hi there")
    );
}

#[test]
fn what_has_no_end_is_not_read() {
    let world = World::new([done()]);
    let fifo = world.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink("/dev/zero", world.path("zero.png")).unwrap();
    for path in ["/dev/zero", "fifo", "zero.png"] {
        let refused = world.run(&["-f", path, "--", "x"]).exited(1);
        assert!(
            refused
                .stderr
                .contains("it is neither a file nor a folder [agent.attachment]"),
            "{path}: {}",
            refused.stderr
        );
    }
    // The file system reports its size as 0.
    world.run(&["-f", "/proc/self/status", "--", "x"]).ok();
    assert!(world.mock.last().texts("user").join("\n").contains("VmRSS"));
}

#[test]
fn what_is_too_long_is_not_sent() {
    let world = World::new([done()]);
    world.file("long.txt", &"x".repeat(256 * 1024 + 1));
    let refused = world.run(&["-f", "long.txt", "--", "x"]).exited(1);
    assert!(
        refused.stderr.contains("it is longer than 256 KiB"),
        "{}",
        refused.stderr
    );
    for n in 0..1010 {
        world.file(&format!("many/{n}"), "");
    }
    world.run(&["-f", "many", "--", "x"]).ok();
    assert!(
        world
            .mock
            .last()
            .texts("user")
            .join("\n")
            .contains("(10 more)")
    );
}

/// The project's author chose where its links point, so following one needs a confirmation. A path the user
/// names is the user's own choice.
#[test]
fn a_link_that_leads_out_of_the_project_takes_a_yes() {
    const SECRET: &str = "not-for-you";
    let world = World::new((0..8).map(|_| done()));
    let (secret, folder) = (world.home().join("keys/id"), world.home().join("keys"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(&secret, SECRET).unwrap();
    world.file(".env", SECRET);
    let link = |to: &std::path::Path, at: &str| {
        std::os::unix::fs::symlink(to, world.path(at)).unwrap();
    };
    link(&secret, "README.md");
    link(&folder, "docs");
    link("hello.txt".as_ref(), "inside.md");
    let server = world.serve(&["--no-auth"]);
    let url = server.url();
    for (file, why) in [
        ("README.md", "a link that leads out of the project"),
        ("docs/id", "a link that leads out of the project"),
        (".env", "a rule requires approval to read *.env"),
    ] {
        for way in [&["run"][..], &["run", "--attach", &url]] {
            let args = [way, &["-f", file, "--", "see"]].concat();
            let refused = world.start(world.command(&args)).end().exited(1);
            assert!(refused.stderr.contains(why), "{file}: {}", refused.stderr);
        }
    }
    assert_eq!(world.mock.all_requests().len(), 0);
    for (args, has_secret) in [
        (&["-f", secret.to_str().unwrap()][..], true),
        (&["-f", "inside.md"], false),
        (&["--auto", "-f", "README.md"], true),
    ] {
        world.run(&[args, &["--", "see"]].concat()).ok();
        let prompt = world.mock.last().texts("user").join("\n");
        assert_eq!(prompt.contains(SECRET), has_secret, "{args:?}: {prompt}");
    }
}
