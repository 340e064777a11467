//! `-f` with what is no plain file, and `--dir`.

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
    // Its size is 0 for the file system.
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
