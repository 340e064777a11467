//! `bash`.

use std::time::Duration;

use outrigger_kernel::hooks::HookPoint;
use outrigger_sandbox::{Policy, Spec, Stdio};
use outrigger_test_support::process::gone;
use outrigger_tools::CancelFlag;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::support::Room;

async fn run(room: &Room, command: &str) -> (String, Value) {
    let output = room.output("bash", json!({"command": command})).await;
    assert_eq!(output.title, command);
    (output.output, output.metadata)
}

#[tokio::test]
async fn output_and_exit_code() {
    let room = Room::new();
    for (command, output, exit) in [
        ("echo one", "one\n", json!(0)),
        ("echo err >&2; exit 3", "err\n", json!(3)),
        ("true", "(no output)", json!(0)),
        ("printf 'no newline'", "no newline", json!(0)),
        ("cat", "(no output)", json!(0)),
        (
            "kill -9 $$",
            "(no output)\n\n<shell_metadata>\nThe command was ended by signal 9.\n</shell_metadata>",
            Value::Null,
        ),
        ("printf '\\377'", "\u{fffd}", json!(0)),
    ] {
        let (got, metadata) = run(&room, command).await;
        assert_eq!(
            (got.as_str(), &metadata["exit"]),
            (output, &exit),
            "{command}"
        );
        assert_eq!(metadata["truncated"], false);
    }
    let (_, metadata) = run(&room, "echo one").await;
    assert_eq!(
        metadata,
        json!({"output": "one\n", "exit": 0, "truncated": false})
    );
    let (output, metadata) = run(&room, "echo a; sleep 0.1; echo b >&2; sleep 0.1; echo c").await;
    assert_eq!(output, "a\nb\nc\n");
    assert_eq!(
        (&metadata["stdout"], &metadata["stderr"]),
        (&json!("a\nc\n"), &json!("b\n"))
    );
}

/// If a name resolves to a program that is not the system's, in the project or elsewhere, the question names that
/// program.
#[tokio::test]
async fn a_question_names_the_programs_that_are_not_the_systems() {
    let room = Room::new();
    let project = room.file("tool", "#!/bin/sh\n");
    let outside = room.outside().join("git");
    std::fs::write(&outside, "#!/bin/sh\n").unwrap();
    let link = room.project().join("linked");
    std::os::unix::fs::symlink(&outside, &link).unwrap();
    for (command, programs) in [
        ("ls -l; sh -c true".to_owned(), Value::Null),
        (
            "./tool one && ./tool two".to_owned(),
            json!([format!(
                "./tool is {}",
                project.canonicalize().unwrap().display()
            )]),
        ),
        (
            format!("{} status; ./linked", outside.display()),
            json!([
                format!(
                    "{} is {}",
                    outside.display(),
                    outside.canonicalize().unwrap().display()
                ),
                format!("./linked is {}", outside.canonicalize().unwrap().display()),
            ]),
        ),
    ] {
        let _ = room.execute("bash", json!({ "command": command })).await;
        let mut asks = std::mem::take(&mut *room.host.asks.lock().unwrap());
        asks.retain(|ask| ask.permission == "bash");
        let asked: Vec<&Value> = asks.iter().map(|ask| &ask.metadata["programs"]).collect();
        assert_eq!(asked, [&programs], "{command}");
    }
}

#[tokio::test]
async fn folder_and_environment() {
    let room = Room::new();
    room.file("sub/x", "");
    let output = room
        .output("bash", json!({"command": "pwd", "workdir": "sub"}))
        .await;
    assert!(
        output.output.ends_with("ROOM/project/sub\n"),
        "{}",
        output.output
    );
    let (_, message) = room
        .failure("bash", json!({"command": "pwd", "workdir": "nope"}))
        .await;
    assert_eq!(
        message,
        "There is no directory ROOM/project/nope to run the command in"
    );
    room.host.hook(HookPoint::ExecuteBeforeShell, |mut o| {
        o["env"] = json!({"RECORDER_ENV": "from-plugin", "N": 5, "GONE": null, "LD_PRELOAD": "/evil.so", "A=B": "x"});
        Ok(o)
    });
    let (output, _) = run(
        &room,
        "echo $RECORDER_ENV $N $AGENT $OPENCODE $OUTRIGGER [$LD_PRELOAD$GONE] $0",
    )
    .await;
    assert_eq!(output, "from-plugin 5 1 1 1 [] /bin/sh\n");
    let log = room.host.lines();
    let hook = format!(
        r#"hooks execute.before_shell {{"cwd":"{}","sessionID":"ses_1","callID":"call_1"}} -> {{"env":{{}}}}"#,
        room.project().display()
    );
    assert!(log.contains(&hook), "{log}");
}

#[tokio::test]
async fn progress_is_reported_while_it_runs() {
    let room = Room::new();
    run(&room, "echo one; sleep 0.5; echo two").await;
    let seen = room.host.progress.lock().unwrap().clone();
    assert_eq!(seen.first(), Some(&json!({"output": ""})));
    assert!(seen.contains(&json!({"output": "one\n"})), "{seen:?}");
    assert_eq!(seen.last(), Some(&json!({"output": "one\ntwo\n"})));
    assert!(seen.len() < 10);
}

#[tokio::test]
async fn a_hundred_megabytes_are_cut_and_kept() {
    let room = Room::new();
    let output = room
        .output(
            "bash",
            json!({"command": "head -c 100000000 /dev/zero | tr '\\0' x; echo end"}),
        )
        .await;
    assert!(output.output.len() < 60 * 1024);
    assert!(
        output.output.starts_with(
            "...output truncated...\n\nFull output saved to: ROOM/artifacts/tool_call_1_"
        ),
        "{}",
        &output.output[..200]
    );
    assert!(output.output.ends_with("xend\n"));
    assert!(output.metadata["output"].as_str().unwrap().len() < 31_000);
    let kept = std::fs::metadata(output.metadata["outputPath"].as_str().unwrap()).unwrap();
    assert_eq!(kept.len(), 100_000_004);
    assert!(
        room.host
            .progress
            .lock()
            .unwrap()
            .iter()
            .all(|p| p.to_string().len() < 64 * 1024)
    );
}

#[tokio::test]
async fn many_lines_are_cut_to_the_last_ones() {
    let room = Room::new();
    let (output, metadata) = run(&room, "seq 1 3000").await;
    let body = output.split("\n\n").nth(2).unwrap();
    assert!(
        body.starts_with("1002\n1003\n") && body.ends_with("2999\n3000\n"),
        "{body}"
    );
    assert_eq!(metadata["truncated"], true);
}

// A child in the background, one in a separate session.
const FAMILY: &str = "sleep 600 & echo $! > a.pid; setsid sh -c 'echo $$ > b.pid; exec sleep 600' & while ! [ -s b.pid ]; do sleep 0.02; done; echo start; echo $$ > c.pid; wait";

fn pid(room: &Room, file: &str) -> u32 {
    room.text(file).trim().parse().unwrap()
}

fn family(room: &Room) -> [u32; 3] {
    ["a.pid", "b.pid", "c.pid"].map(|file| pid(room, file))
}

#[tokio::test]
async fn a_timeout_kills_the_whole_tree_and_tells_what_was_printed() {
    let room = Room::new();
    let output = room
        .output("bash", json!({"command": FAMILY, "timeout": 3000}))
        .await;
    assert_eq!(
        output.output,
        "start\n\n\n<shell_metadata>\nshell tool terminated command after exceeding timeout 3000 ms. If this command is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.\n</shell_metadata>"
    );
    assert_eq!(
        output.metadata,
        json!({"output": "start\n", "exit": null, "truncated": false})
    );
    assert!(gone(&family(&room)));
}

#[tokio::test]
async fn a_cancelled_turn_kills_the_whole_tree() {
    let room = Room::new();
    let (switch, flag) = CancelFlag::new();
    let call = room.call("bash", json!({"command": FAMILY}));
    let mut ctx = room.context(&call);
    ctx.cancel = flag;
    let (done, ()) = tokio::join!(room.runtime.execute(call, ctx), async {
        while !room.project().join("c.pid").exists() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        switch.send(true).unwrap();
    });
    assert_eq!(done.record.outcome, "tool.cancelled");
    assert!(gone(&family(&room)));
}

#[tokio::test]
async fn a_process_left_in_the_background_does_not_hold_the_call() {
    let room = Room::new();
    let (output, _) = run(&room, "sleep 600 & echo $! > a.pid; echo hi").await;
    assert_eq!(output, "hi\n");
    assert!(gone(&[pid(&room, "a.pid")]));
}

#[tokio::test]
async fn what_is_asked_for_commands() {
    let room = Room::new();
    room.file("sub/x", "");
    for (input, want) in [
        (
            json!({"command": "echo hi && git commit -m x | cat; npm run build -- --x"}),
            vec![
                r#"bash ["echo hi","git commit -m x","cat","npm run build -- --x"] ["echo *","git commit *","cat *","npm run build *"]"#,
            ],
        ),
        (
            json!({"command": "cat /etc/hostname"}),
            vec![
                r#"external_directory ["/etc/*"] ["/etc/*"]"#,
                r#"bash ["cat /etc/hostname"] ["cat *"]"#,
            ],
        ),
        // A variable or a wildcard names it.
        (
            json!({"command": "cat /etc/host*"}),
            vec![
                r#"external_directory ["/etc/*"] ["/etc/*"]"#,
                r#"bash ["cat /etc/host*"] ["cat *"]"#,
            ],
        ),
        (
            json!({"command": "v=/etc; v=$v/hostname; w=$v; tail \"$w\""}),
            vec![
                r#"external_directory ["/etc/*"] ["/etc/*"]"#,
                r#"bash ["tail \"$w\""] ["tail *"]"#,
            ],
        ),
        (
            json!({"command": "v=/et; v+=c; cat a $v/hostname $nothing/etc/passwd"}),
            vec![
                r#"external_directory ["/etc/*"] ["/etc/*"]"#,
                r#"bash ["cat a $v/hostname $nothing/etc/passwd"] ["cat *"]"#,
            ],
        ),
        (
            json!({"command": "for d in a b; do rm -r \"$d\"/*; done"}),
            vec![r#"bash ["for d in a b; do rm -r \"$d\"/*; done"] []"#],
        ),
        // With too many, any file may be among them.
        (
            json!({"command": format!("v=a; {} cat $v", "v+=$v; ".repeat(300))}),
            vec![
                r#"external_directory ["/*"] ["/*"]"#,
                r#"bash ["cat $v"] ["cat *"]"#,
            ],
        ),
        (
            json!({"command": "sh -c 'cat $1' a /etc/hostname"}),
            vec![
                r#"external_directory ["/etc/*"] ["/etc/*"]"#,
                r#"bash ["sh -c 'cat $1' a /etc/hostname","cat $1"] ["sh -c 'cat $1' a /etc/hostname","cat *"]"#,
            ],
        ),
        (
            json!({"command": "v=sub; cat $v/* $PWD/x $TMPDIR/x $nothing/x *.txt \"$v\"/../x"}),
            vec![r#"bash ["cat $v/* $PWD/x $TMPDIR/x $nothing/x *.txt \"$v\"/../x"] ["cat *"]"#],
        ),
        (
            json!({"command": "pwd", "workdir": "/tmp"}),
            vec![
                r#"external_directory ["/tmp/*"] ["/tmp/*"]"#,
                r#"bash ["pwd"] ["pwd *"]"#,
            ],
        ),
        (
            json!({"command": "cd /tmp && ls > /dev/null"}),
            vec![
                r#"external_directory ["/tmp/*"] ["/tmp/*"]"#,
                r#"bash ["ls > /dev/null"] ["ls *"]"#,
            ],
        ),
        (json!({"command": "cd sub"}), vec![]),
        (json!({"command": "a=1"}), vec![]),
        // Programs may read it.
        (json!({"command": "A=1"}), vec![r#"bash ["A=1"] ["A=1"]"#]),
        (
            json!({"command": "echo $(rm -f nothing)"}),
            vec![r#"bash ["echo $(rm -f nothing)"] ["echo $(rm -f nothing)"]"#],
        ),
        (
            json!({"command": "touch x; cp x sub/../../outside/y"}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"bash ["touch x","cp x sub/../../outside/y"] ["touch *","cp *"]"#,
            ],
        ),
        (
            json!({"command": "echo x > ../outside/z"}),
            vec![
                r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#,
                r#"bash ["echo x > ../outside/z"] ["echo *"]"#,
            ],
        ),
        (
            json!({"command": "echo 'unclosed"}),
            vec![r#"bash ["echo 'unclosed"] ["echo 'unclosed"]"#],
        ),
        (
            json!({"command": "ls; ls"}),
            vec![r#"bash ["ls"] ["ls *"]"#],
        ),
        // A program with a relative path is the one in the session's folder, or is asked about by its location.
        (
            json!({"command": "./t.sh -a; sh t.sh; env sub/x"}),
            vec![
                r#"bash ["./t.sh -a","sh t.sh","env sub/x","sub/x"] ["./t.sh *","sh *","env sub/x","sub/x *"]"#,
            ],
        ),
        (
            json!({"command": "cd sub && ./t.sh -a && python t.py && sh -c ./u"}),
            vec![
                r#"bash ["./sub/t.sh -a","python sub/t.py","sh -c ./u","./sub/u"] ["./sub/t.sh *","python *","sh -c ./u","./sub/u *"]"#,
            ],
        ),
        (
            json!({"command": "A=./t.sh \"./t.sh\" > out", "workdir": "sub"}),
            vec![r#"bash ["A=./t.sh ./sub/t.sh > out"] ["./sub/t.sh *"]"#],
        ),
        (
            json!({"command": "cd .. && ./t.sh", "workdir": "sub"}),
            vec![r#"bash ["./t.sh"] ["./t.sh *"]"#],
        ),
        (
            json!({"command": "cd sub; ./t.sh"}),
            vec![r#"bash ["./t.sh","./sub/t.sh"] ["./t.sh *","./sub/t.sh *"]"#],
        ),
        (
            json!({"command": "cd - && ./t.sh"}),
            vec![r#"bash ["cd - && ./t.sh"] ["cd - && ./t.sh"]"#],
        ),
        (
            json!({"command": "./t.sh $(id)", "workdir": "sub"}),
            vec![r#"bash ["cd sub && ./t.sh $(id)"] ["cd sub && ./t.sh $(id)"]"#],
        ),
    ] {
        *room.host.refuse.lock().unwrap() = Some("bash");
        room.execute("bash", input.clone()).await;
        assert_eq!(room.asked(), want, "{input}");
    }
}

/// The shell opens the file that a redirection writes, so the rules about changes are asked, too.
#[tokio::test]
async fn what_is_asked_for_redirections() {
    let room = Room::new();
    room.file("sub/x", "");
    for (input, want) in [
        (json!({"command": "echo a > f"}), Some(r#"["f"]"#)),
        (
            json!({"command": "echo a >> sub/f; cat < f > ./f"}),
            Some(r#"["sub/f","f"]"#),
        ),
        (
            json!({"command": "cd sub && echo a >| f"}),
            Some(r#"["sub/f"]"#),
        ),
        (
            json!({"command": "echo a > f", "workdir": "sub"}),
            Some(r#"["sub/f"]"#),
        ),
        (
            json!({"command": "cd sub; ls &> f"}),
            Some(r#"["f","sub/f"]"#),
        ),
        (json!({"command": "sh -c 'echo a > f'"}), Some(r#"["f"]"#)),
        (json!({"command": "echo $(id) > f"}), Some(r#"["f"]"#)),
        (json!({"command": "x=f; echo a > $x"}), Some(r#"["*"]"#)),
        (
            json!({"command": "true > /dev/../PROJECT/f"}),
            Some(r#"["f"]"#),
        ),
        (json!({"command": "ls > /dev/null 2>&1; cat < sub/x"}), None),
        (json!({"command": "ls > /tmp/f-of-nobody"}), None),
    ] {
        let input = input.to_string();
        let project = room.project().display().to_string();
        let input = input.replace("/PROJECT", &project);
        *room.host.refuse.lock().unwrap() = Some("edit");
        room.execute("bash", serde_json::from_str(&input).unwrap())
            .await;
        let asked = room.asked();
        let edit = asked.iter().find(|it| it.starts_with("edit"));
        let want = want.map(|patterns| format!(r#"edit {patterns} ["*"]"#));
        assert_eq!(edit, want.as_ref(), "{input}: {asked:?}");
    }
}

/// What runs outside of its sandbox may need a lock of a process that is frozen meanwhile.
#[tokio::test]
async fn a_command_outside_is_not_left_with_a_lock_of_a_frozen_process() {
    let room = Room::new();
    if !room.spawner.has_filters() {
        return println!("skipped: the kernel filters no system calls");
    }
    let policy = Policy::system().read("/").write(room.project());
    *room.host.sandbox.lock().unwrap() = Some((policy, room.spawner.clone()));
    let holder = Spec::new("/bin/sh")
        .args(["-c", "exec flock build sh -c 'echo held; sleep 1000'"])
        .cwd(room.project())
        .var("PATH", "/usr/bin:/bin")
        .stdout(Stdio::Pipe)
        .label("mcp:builder");
    let mut holder = room.spawner.spawn(holder).await.unwrap();
    let mut stdout = holder.stdout.take().unwrap();
    stdout.read_u8().await.unwrap();
    for (command, said) in [
        (
            "flock build echo built",
            "ended because it waited for a lock that it could not get: `",
        ),
        ("flock -n build echo built", "Frozen while it ran: `"),
    ] {
        let command = format!("touch ../outside/file && {command}");
        let (output, _) = run(&room, &command).await;
        assert!(output.contains(said), "{output}");
        assert!(
            output.contains("of mcp:builder) holds ROOM/project/build")
                && !output.contains("built"),
            "{output}"
        );
    }
    // One that fails and meets no lock names none.
    drop(holder);
    let (output, _) = run(&room, "rm ../outside/file && exit 3").await;
    assert!(
        output.contains("let it run once more outside") && !output.contains("Frozen"),
        "{output}"
    );
}

/// The model reads which process it was, and what was printed before.
#[tokio::test]
async fn a_process_that_cannot_be_frozen_is_named() {
    let room = Room::new();
    if !room.spawner.has_filters() {
        return println!("skipped: the kernel filters no system calls");
    }
    let policy = Policy::system().read("/").write(room.project());
    *room.host.sandbox.lock().unwrap() = Some((policy, room.spawner.clone()));
    let script = "import ctypes, signal, time
libc = ctypes.CDLL(None)
event = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
assert libc.timer_create(1, event, ctypes.byref(ctypes.c_void_p())) == 0
print('ready', flush=True)
time.sleep(1000)";
    let waker = Spec::new("python3")
        .args(["-c", script])
        .var("PATH", "/usr/local/bin:/usr/bin:/bin")
        .stdout(Stdio::Pipe)
        .label("mcp:waker");
    let mut waker = room.spawner.spawn(waker).await.unwrap();
    waker.stdout.as_mut().unwrap().read_u8().await.unwrap();
    let (output, _) = run(&room, "touch ../outside/file").await;
    assert!(output.contains("cannot touch"), "{output}");
    assert!(
        output.contains("cannot freeze `python3` (process "),
        "{output}"
    );
    assert!(output.contains("of mcp:waker): it has a timer"), "{output}");
    assert!(!room.outside().join("file").exists());
}
