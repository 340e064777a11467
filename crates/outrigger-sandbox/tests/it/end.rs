//! The end of a process: deadline, drop, the host's death. Nothing is left.

use std::time::Duration;

use outrigger_sandbox::ledger::Ledger;
use outrigger_sandbox::{Child, Spec, Stdio, run, start_time};
use outrigger_test_support::process::alive;
use tokio::io::AsyncReadExt as _;

use super::{eventually, helper, sh, spawner, vanishes};

/// One process in the group, one that has left the session, and a daemon (its parent has ended).
const FAMILY: &str = r#"
    sleep 1000 & echo $!
    setsid sh -c 'echo $$; exec sleep 1000' &
    (setsid sh -c 'echo $$; exec sleep 1000' &)
    echo $$
"#;

fn pids(text: &[u8]) -> Vec<u32> {
    String::from_utf8_lossy(text)
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect()
}

/// Starts a script and reads this many process numbers from its output.
async fn family(script: &str, count: usize) -> (Child, Vec<u32>) {
    let mut child = spawner()
        .spawn(sh(script).stdout(Stdio::Pipe))
        .await
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut said = Vec::new();
    while said.iter().filter(|byte| **byte == b'\n').count() < count {
        said.push(stdout.read_u8().await.unwrap());
    }
    let pids = pids(&said);
    (child, pids)
}

async fn all_gone(pids: &[u32]) {
    eventually(&format!("{pids:?} are dead"), || {
        !pids.iter().any(|pid| alive(*pid))
    })
    .await;
}

#[tokio::test]
async fn the_deadline_kills_the_whole_tree() {
    let script = format!("{FAMILY} wait; sleep 1000");
    let output = run(&spawner(), sh(&script), Duration::from_secs(10), 1000)
        .await
        .unwrap();
    assert!(output.timed_out);
    assert_eq!(output.exit.signal, Some(9));
    let pids = pids(&output.stdout);
    assert_eq!(pids.len(), 4, "what came before the deadline is kept");
    all_gone(&pids).await;
}

#[tokio::test]
async fn drop_kills_the_tree_and_reaps() {
    let (child, pids) = family(&format!("{FAMILY} wait; sleep 1000"), 4).await;
    let pid = child.pid();
    drop(child);
    all_gone(&pids).await;
    vanishes(pid).await;
}

#[tokio::test]
async fn kill_from_elsewhere_while_someone_waits() {
    let (mut child, pids) = family(&format!("{FAMILY} wait; sleep 1000"), 4).await;
    let killer = child.killer();
    let (exit, ()) = tokio::join!(child.wait(), async { killer.kill_tree() });
    assert_eq!(exit.unwrap().signal, Some(9));
    all_gone(&pids).await;
    assert!(
        start_time(child.pid()).is_some(),
        "the number is held until drop"
    );
    let pid = child.pid();
    drop(child);
    vanishes(pid).await;
    killer.kill_tree();
}

#[tokio::test]
async fn after_a_natural_end_the_group_goes_and_a_daemon_stays() {
    let (mut child, pids) = family(FAMILY, 4).await;
    assert!(child.wait().await.unwrap().success());
    let others: Vec<u32> = pids.into_iter().filter(|pid| *pid != child.pid()).collect();
    assert!(
        others.iter().all(|pid| alive(*pid)),
        "waiting kills nothing"
    );
    // The first line is the group member's, the others come in any order.
    let (in_group, free) = others.split_first().unwrap();
    let alone: Vec<bool> = free.iter().map(|pid| group_of(*pid) == *pid).collect();
    drop(child);
    all_gone(&[*in_group]).await;
    assert_eq!(
        (alone, free.iter().all(|pid| alive(*pid))),
        (vec![true, true], true)
    );
    free.iter().for_each(|pid| kill(*pid));
}

fn group_of(pid: u32) -> u32 {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::getpgid(Some(pid))
        .unwrap()
        .as_raw_nonzero()
        .get()
        .cast_unsigned()
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn output_held_open_does_not_hold_the_run() {
    let output = super::output(sh("setsid sleep 1000 & echo $!"))
        .await
        .unwrap();
    assert!(output.exit.success() && !output.timed_out);
    kill(pids(&output.stdout)[0]);
}

#[tokio::test]
async fn a_dropped_run_and_a_dropped_spawn_leave_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pid");
    let script = sh("echo $$ > pid.new; mv pid.new pid; sleep 1000").cwd(dir.path());
    let spawner = spawner();
    let mut running = Box::pin(run(&spawner, script, super::PLENTY, 1000));
    tokio::select! {
        _ = &mut running => panic!("it sleeps"),
        () = eventually("it runs", || file.exists()) => {}
    }
    let pid: u32 = std::fs::read_to_string(&file)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    drop(running);
    vanishes(pid).await;

    // Polled once, so that the job has started, then dropped.
    let marker = format!("{}.25", 100_000 + std::process::id());
    let mut spawning = Box::pin(spawner.spawn(Spec::new("/bin/sleep").arg(&marker)));
    let _ = futures_poll_once(&mut spawning).await;
    drop(spawning);
    // Jobs run in order: once the next one is done, so is that one.
    assert!(super::output(sh(":")).await.unwrap().exit.success());
    eventually("no such sleeper", || !any_command_holds(&marker)).await;
}

async fn futures_poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}

fn any_command_holds(word: &str) -> bool {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(Result::ok)
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|line| {
            String::from_utf8_lossy(&line).contains(word) && line.starts_with(b"/bin/sleep")
        })
}

#[tokio::test]
async fn no_zombies_after_many() {
    let mut pids = Vec::new();
    for round in 0..20 {
        let mut child = spawner().spawn(sh("exit 3")).await.unwrap();
        if round % 2 == 0 {
            assert_eq!(child.wait().await.unwrap().code, Some(3));
        }
        pids.push(child.pid());
    }
    for pid in pids {
        vanishes(pid).await;
    }
}

#[tokio::test]
async fn the_hosts_death_kills_the_child_and_the_next_host_sweeps_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    let task = format!("host {}", dir.path().display());
    let mut host = spawner()
        .spawn(helper::spec(&task).stdout(Stdio::Pipe))
        .await
        .unwrap();
    let mut stdout = host.stdout.take().unwrap();
    let mut said = String::new();
    let (shell, sleeper) = loop {
        said.push(char::from(stdout.read_u8().await.unwrap()));
        if let Some((_, rest)) = said.split_once("\nPIDS ")
            && let Some((numbers, _)) = rest.split_once('\n')
        {
            let (shell, sleeper) = numbers.split_once(' ').unwrap();
            break (
                shell.parse::<u32>().unwrap(),
                sleeper.parse::<u32>().unwrap(),
            );
        }
    };
    assert!(alive(shell) && alive(sleeper));
    let ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.sweep().unwrap(), [], "its host lives");

    // Only the host itself is killed, as by the kernel when memory runs out.
    kill(host.pid());
    assert_eq!(host.wait().await.unwrap().signal, Some(9));
    eventually("the shell dies with its host", || !alive(shell)).await;
    assert!(
        alive(sleeper),
        "what the shell started is not the kernel's business"
    );

    let swept = ledger.sweep().unwrap();
    let found: Vec<_> = swept
        .iter()
        .map(|swept| (swept.pid, swept.what.as_str(), swept.killed))
        .collect();
    assert_eq!(found, [(shell, "shell", 1)]);
    all_gone(&[sleeper]).await;
    assert_eq!(ledger.sweep().unwrap(), []);
}
