//! Processes with a terminal.

use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::{Size, Spec, Terminal};

use super::{PLENTY, sh, spawner, vanishes};

/// Reads until `end` has arrived, or the terminal is closed.
async fn read_until(terminal: &Terminal, end: &str) -> String {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    let read = async {
        while !String::from_utf8_lossy(&seen).contains(end) {
            match terminal.read(&mut buffer).await.unwrap() {
                0 => break,
                count => seen.extend_from_slice(&buffer[..count]),
            }
        }
    };
    tokio::time::timeout(PLENTY, read).await.unwrap();
    String::from_utf8(seen).unwrap()
}

#[tokio::test]
async fn a_shell_leads_a_session_in_its_terminal() {
    let size = Size { rows: 7, cols: 33 };
    let spec =
        sh("tty >/dev/null && stty size; ps -o pid=,sid=,tpgid= -p $$ | tr -s ' '; echo end")
            .var("PATH", "/usr/bin:/bin")
            .terminal(size);
    let mut child = spawner().spawn(spec).await.unwrap();
    let terminal = child.terminal.take().unwrap();
    let pid = child.pid();
    let seen = read_until(&terminal, "end").await;
    assert!(seen.starts_with("7 33\r\n"), "{seen:?}");
    if seen.contains(&pid.to_string()) {
        assert!(seen.contains(&format!("{pid} {pid} {pid}")), "{seen:?}");
    }
    assert!(child.wait().await.unwrap().success());
    assert_eq!(read_until(&terminal, "never").await.trim(), "");
}

#[tokio::test]
async fn what_is_typed_is_read_and_a_new_size_is_signalled() {
    let script =
        "trap 'stty size' WINCH; read -r line; echo \"got $line\"; while :; do sleep 0.05; done";
    let spec = sh(script)
        .var("PATH", "/usr/bin:/bin")
        .terminal(Size::default());
    let mut child = spawner().spawn(spec).await.unwrap();
    let terminal = child.terminal.take().unwrap();
    terminal.write_all("h\u{e9}llo\r".as_bytes()).await.unwrap();
    assert!(
        read_until(&terminal, "got h\u{e9}llo")
            .await
            .contains("got")
    );
    terminal.resize(Size { rows: 5, cols: 9 }).unwrap();
    assert!(read_until(&terminal, "5 9").await.contains("5 9"));
    // Ctrl-C reaches the foreground group.
    terminal.write_all(&[3]).await.unwrap();
    let ended = tokio::time::timeout(PLENTY, child.wait()).await.unwrap();
    assert!(!ended.unwrap().success());
}

#[tokio::test]
async fn jobs_of_a_shell_end_with_it() {
    let spec = sh("set -m; sleep 600 & echo job $!; wait")
        .var("PATH", "/usr/bin:/bin")
        .terminal(Size::default());
    let mut child = spawner().spawn(spec).await.unwrap();
    let terminal = child.terminal.take().unwrap();
    let seen = read_until(&terminal, "\n").await;
    let job: u32 = seen.split_whitespace().last().unwrap().parse().unwrap();
    assert!(outrigger_sandbox::start_time(job).is_some());
    drop((child, terminal));
    vanishes(job).await;
}

#[tokio::test]
async fn a_program_that_is_not_there_leaves_no_terminal() {
    let error = spawner()
        .spawn(Spec::new("/no/such").terminal(Size::default()))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "spawn.not_found");
}
