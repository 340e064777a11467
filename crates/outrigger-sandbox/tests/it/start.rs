//! The start of a process: environment, descriptors, channel, limits, and the report of a failed start.

use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;

use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::{Exit, Limits, Spec, Stdio, run_with_input};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::{PLENTY, output, sh, spawner, text};

#[tokio::test]
async fn the_environment_is_exactly_what_was_given() {
    let spec = Spec::new("/usr/bin/env")
        .var("B", "2")
        .var("A", "old")
        .var("A", "x=y z")
        .var("EMPTY", "");
    let mut lines: Vec<String> = text(spec).await.lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["A=x=y z", "B=2", "EMPTY="]);
    assert_eq!(text(Spec::new("/usr/bin/env")).await, "");
}

#[tokio::test]
async fn working_directory_and_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().canonicalize().unwrap();
    let spec = sh(r#"pwd; printf '<%s>' "$0" "$@""#)
        .args(["name", "a b", "", "*"])
        .cwd(&dir);
    assert_eq!(
        text(spec).await,
        format!("{}\n<name><a b><><*>", dir.display())
    );
}

#[tokio::test]
async fn no_descriptor_leaks() {
    // Files of the host without close-on-exec, as a C library might leave them.
    let file = std::fs::File::open("/dev/zero").unwrap();
    let leaky: Vec<_> = (0..4).map(|_| rustix::io::dup(&file).unwrap()).collect();
    assert!(leaky.iter().all(|fd| fd.as_raw_fd() > 2));
    // `ls` itself has the folder open under the lowest free number.
    let list = || Spec::new("/bin/ls").arg("/proc/self/fd");
    let numbers = |text: String| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(numbers(text(list()).await), "0 1 2 3");
    assert_eq!(numbers(text(list().channel()).await), "0 1 2 3 4");
}

#[tokio::test]
async fn the_channel_is_descriptor_3() {
    let mut child = spawner()
        .spawn(sh(r#"while read -r line <&3; do echo "got $line" >&3; done"#).channel())
        .await
        .unwrap();
    let mut channel = child.channel.take().unwrap();
    for word in ["one", "two"] {
        channel
            .write_all(format!("{word}\n").as_bytes())
            .await
            .unwrap();
        let mut answer = vec![0; "got one\n".len()];
        channel.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), format!("got {word}\n"));
    }
    drop(channel);
    assert!(
        child.wait().await.unwrap().success(),
        "the end of the channel is seen"
    );
}

#[tokio::test]
async fn pipes_and_exit_codes() {
    let mut child = spawner()
        .spawn(sh("read -r x; echo out $x; echo err $x >&2; exit 7").piped())
        .await
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"word\n")
        .await
        .unwrap();
    let (mut out, mut err) = (String::new(), String::new());
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut err)
        .await
        .unwrap();
    assert_eq!((out.as_str(), err.as_str()), ("out word\n", "err word\n"));
    let exit = Exit {
        code: Some(7),
        signal: None,
    };
    assert_eq!(child.wait().await.unwrap(), exit);
    assert_eq!(child.wait().await.unwrap(), exit, "asked again");
    assert_eq!(child.try_wait().unwrap(), Some(exit));
    assert_eq!(
        output(sh("kill -TERM $$")).await.unwrap().exit,
        Exit {
            code: None,
            signal: Some(15)
        }
    );
}

#[tokio::test]
async fn input_goes_in_and_output_is_bounded() {
    let input = vec![b'x'; 3 << 20];
    let answer = run_with_input(&spawner(), Spec::new("/bin/cat"), Some(input), PLENTY, 1000)
        .await
        .unwrap();
    assert_eq!(
        (answer.stdout.len(), answer.stdout_total, answer.truncated),
        (1000, 3 << 20, true)
    );
    // A process that does not read its input is not an error.
    let input = vec![b'x'; 3 << 20];
    let answer = run_with_input(
        &spawner(),
        Spec::new("/bin/true"),
        Some(input),
        PLENTY,
        1000,
    )
    .await
    .unwrap();
    assert!(answer.exit.success() && !answer.truncated && !answer.timed_out);
}

#[tokio::test]
async fn limits() {
    // By default, only core dumps are off.
    assert_eq!(text(sh("ulimit -c; ulimit -Hc")).await, "0\n0\n");
    let limits = Limits {
        data: Some(512 << 20),
        nofile: Some(64),
    };
    assert_eq!(
        text(sh("ulimit -n; ulimit -Hn; ulimit -d").limits(limits)).await,
        "64\n64\n524288\n"
    );
    // They are enforced.
    let open_two_more = sh("exec 3</dev/null 4</dev/null");
    for (nofile, works) in [(4, false), (5, true)] {
        let limits = Limits {
            data: None,
            nofile: Some(nofile),
        };
        let output = output(open_two_more.clone().limits(limits)).await.unwrap();
        assert_eq!(output.exit.success(), works, "{nofile}");
    }
    let hungry = Spec::new("/bin/dd").args(["if=/dev/zero", "of=/dev/null", "bs=256M", "count=1"]);
    assert!(output(hungry.clone()).await.unwrap().exit.success());
    let limits = Limits {
        data: Some(64 << 20),
        nofile: None,
    };
    assert!(!output(hungry.limits(limits)).await.unwrap().exit.success());
    // A value above the host's hard limit is clamped, and not an error.
    let limits = Limits {
        data: Some(u64::MAX),
        nofile: Some(u64::MAX),
    };
    assert!(output(sh(":").limits(limits)).await.unwrap().exit.success());
}

/// A program that uses `select` fails with more files than its usual limit.
#[tokio::test]
async fn a_raised_limit_of_files_is_not_the_childrens() {
    let before = text(sh("ulimit -n")).await;
    outrigger_sandbox::open_files::raise_limit();
    assert_eq!(text(sh("ulimit -n")).await, before);
    let hard = text(sh("ulimit -Hn")).await;
    let now = outrigger_sandbox::open_files::limit().to_string();
    assert!(hard.trim() == now || hard.trim() == "unlimited", "{now}");
}

#[tokio::test]
async fn privileges_cannot_grow_unless_allowed() {
    let flag = "grep NoNewPrivs /proc/self/status";
    assert_eq!(text(sh(flag)).await, "NoNewPrivs:\t1\n");
    // The test itself may run with the flag, which cannot be unset.
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = own
        .lines()
        .find(|line| line.starts_with("NoNewPrivs"))
        .unwrap();
    assert_eq!(text(sh(flag).allow_new_privs()).await.trim_end(), own);
}

#[tokio::test]
async fn a_failed_start_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let orphan = file("orphan", "#!/no/such/interpreter\n", 0o755);
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let base = dir.path().display().to_string();
    let cases = [
        (
            Spec::new("no-such-tool").var("PATH", "/usr/bin"),
            "spawn.not_found",
            "program no-such-tool not found (searched: /usr/bin)",
        ),
        (
            Spec::new("sh"),
            "spawn.not_found",
            "program sh not found (searched: )",
        ),
        (
            Spec::new("./none").cwd(dir.path()),
            "spawn.not_found",
            "program ./none not found (searched: BASE)",
        ),
        (
            Spec::new("/bin/sh").cwd(dir.path().join("none")),
            "spawn.cwd",
            "cannot start /bin/sh in BASE/none: No such file or directory (os error 2)",
        ),
        (
            Spec::new("/bin/sh").cwd(&plain),
            "spawn.cwd",
            "cannot start /bin/sh in BASE/plain: not a directory",
        ),
        (
            Spec::new(&orphan),
            "spawn.failed",
            "cannot start BASE/orphan: No such file or directory (os error 2)",
        ),
        (
            Spec::new(&plain),
            "spawn.failed",
            "cannot start BASE/plain: Permission denied (os error 13)",
        ),
    ];
    for (spec, code, message) in cases {
        // Also with a channel: its descriptor must not cover the pipe that reports the failure.
        for spec in [spec.clone(), spec.channel().stdin(Stdio::Pipe)] {
            let error = spawner().spawn(spec).await.unwrap_err();
            assert_eq!(
                (error.code(), error.to_string().replace(&base, "BASE")),
                (code, message.to_owned())
            );
            assert!(error.hint().is_some(), "{error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_each_with_a_channel() {
    let one = |number: u32| async move {
        let spec = sh("read -r x <&3; echo $((x + 1)) >&3").channel();
        let mut child = spawner().spawn(spec).await.unwrap();
        let mut channel = child.channel.take().unwrap();
        channel
            .write_all(format!("{number}\n").as_bytes())
            .await
            .unwrap();
        let mut answer = String::new();
        channel.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, format!("{}\n", number + 1));
        assert!(child.wait().await.unwrap().success());
    };
    let tasks: Vec<_> = (0..50).map(|number| tokio::spawn(one(number))).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// C13: a listener is called for every started process, with its sandbox, and not for one that could not
/// be started.
#[tokio::test]
async fn every_start_is_reported_with_its_sandbox() {
    let starts = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let list = std::sync::Arc::clone(&starts);
    let spawner = spawner().with_recorder(std::sync::Arc::new(move |start| {
        list.lock().unwrap().push(start.clone());
    }));
    let policy = outrigger_sandbox::Policy::system();
    let sandboxed = spawner.spawn(sh(":").policy(policy)).await.unwrap();
    let plain = spawner.spawn(sh(":").label("plain")).await.unwrap();
    spawner
        .spawn(Spec::new("no-such-program"))
        .await
        .unwrap_err();
    let starts = starts.lock().unwrap();
    assert_eq!(starts.len(), 2);
    assert_eq!(
        (starts[0].pid, starts[0].level),
        (sandboxed.pid(), sandboxed.level())
    );
    assert_eq!(
        (starts[1].pid, starts[1].level, starts[1].label.as_str()),
        (plain.pid(), None, "plain")
    );
}
