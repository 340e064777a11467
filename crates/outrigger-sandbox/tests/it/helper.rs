//! The helper process of some tests: this test binary, started again with `OUTRIGGER_IT_HELPER` set.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};

use outrigger_sandbox::ledger::Ledger;
use outrigger_sandbox::{Spec, Stdio};
use tokio::io::AsyncReadExt as _;

const WITHOUT: &str = "OUTRIGGER_IT_WITHOUT";
const SWITCH: &str = "OUTRIGGER_IT_HELPER";

/// Returns a spec that runs `task` in this test binary.
pub(crate) fn spec(task: &str) -> Spec {
    Spec::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "helper::helper",
            "--nocapture",
            "--test-threads=1",
        ])
        .var(SWITCH, task)
        .var("PATH", "/usr/local/bin:/usr/bin:/bin")
}

/// Runs this test again without user namespaces and without the right to mount. Returns `None` if that cannot be set up.
pub(crate) async fn without_namespaces(test: &str) -> Option<Spec> {
    const ENTER: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set -all --inh-caps=-all --no-new-privs \"$@\"";
    let spec = |args: &[&std::ffi::OsStr]| {
        Spec::new("unshare")
            .args(["-Ur", "sh", "-c", ENTER, "sh"])
            .args(args)
            .var("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    };
    let can = super::output(spec(&["true".as_ref()])).await;
    if !can.is_ok_and(|it| it.exit.success()) {
        println!("skipped: no user namespace to begin with");
        return None;
    }
    let exe = std::env::current_exe().unwrap();
    let more = ["--exact", test, "--nocapture", "--test-threads=1"].map(std::ffi::OsStr::new);
    Some(spec(&[&[exe.as_os_str()][..], &more[..]].concat()).var(WITHOUT, "1"))
}

/// Checks whether this is the run of [`without_namespaces`].
pub(crate) fn is_without_namespaces() -> bool {
    std::env::var_os(WITHOUT).is_some()
}

/// Not a test: does nothing unless it is started by [`spec`].
#[test]
fn helper() {
    let Some(task) = std::env::var_os(SWITCH) else {
        return;
    };
    let task = task.into_string().unwrap();
    let (name, argument) = task.split_once(' ').unwrap();
    match name {
        "connect" => say(TcpStream::connect(("127.0.0.1", argument.parse().unwrap())).map(drop)),
        "bind" => say(TcpListener::bind(("127.0.0.1", argument.parse().unwrap())).map(drop)),
        "host" => host(argument),
        "boxed" => sandboxed(argument),
        "frozen" => frozen(argument),
        "call" => say(super::calls::make(argument)),
        "reach" => say(super::connects::make(argument)),
        other => panic!("no task {other}"),
    }
}

fn say(answer: std::io::Result<()>) {
    match answer {
        Ok(()) => println!("\nANSWER ok"),
        Err(error) => println!("\nANSWER {:?}", error.kind()),
    }
}

/// Runs a host with a sandboxed command, which waits to be killed.
#[tokio::main]
async fn sandboxed(argument: &str) {
    super::namespace::host(argument).await;
}

/// Runs a host whose processes are frozen, which waits to be killed.
#[tokio::main]
async fn frozen(argument: &str) {
    super::freezer::host(argument).await;
}

/// Runs a host with a shell that has started another process. Prints both numbers, then waits to be killed.
#[tokio::main]
async fn host(ledger: &str) {
    let spawner = super::spawner().with_ledger(Ledger::open(ledger).unwrap());
    let script = super::sh("sleep 1000 & echo $$ $!; wait")
        .stdout(Stdio::Pipe)
        .label("shell");
    let mut child = spawner.spawn(script).await.unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(stdout.read_u8().await.unwrap());
    }
    print!("\nPIDS {}", String::from_utf8(line).unwrap());
    std::io::stdout().flush().unwrap();
    std::future::pending::<()>().await;
}
