//! A sandboxed process affects no process outside of its sandbox: no signals, no limits, no scheduling, no shared
//! memory, no terminal. Tested as this user and as an unprivileged one.

use std::fs;

use outrigger_sandbox::{Calls, Policy};
use rustix::process::getpriority_process;
use rustix::thread::sched_getaffinity;

use super::{output, sh, spawner};

/// Scripts that must fail. Their signals would do no harm if they arrived.
const ROWS: &[&str] = &[
    "kill -URG $HOST",
    "kill -0 $HOST",
    "kill -STOP $SLEEPER",
    "kill -KILL $SLEEPER",
    "kill -KILL -- -$SLEEPER",
    "kill -URG -- -1",
    "perl -e 'exit(!syscall(62, $ENV{SLEEPER}, 9) ? 0 : 1)'",
    // One of its threads; a handle to it.
    "perl -e 'exit(syscall(200, $ENV{SLEEPER}, 9) == 0 ? 0 : 1)'",
    "perl -e 'exit(syscall(234, $ENV{SLEEPER}, $ENV{SLEEPER}, 9) == 0 ? 0 : 1)'",
    "perl -e '$fd = syscall(434, $ENV{SLEEPER}, 0); exit($fd >= 0 && syscall(424, $fd, 9, 0, 0) == 0 ? 0 : 1)'",
    "setsid kill -KILL $SLEEPER",
    "(setsid sh -c 'kill -KILL $SLEEPER' && touch $DIR/done &); sleep 0.3; test -e $DIR/done",
    "perl -e 'fcntl(STDIN, 8, int $ENV{SLEEPER}) or exit 1; exit(kill(0, $ENV{SLEEPER}) ? 0 : 1)'",
    // Its priority.
    "renice -n 7 -p $HOST",
    "perl -e 'exit(syscall(141, 2, 0, 7) == 0 ? 0 : 1)' && test $(ps -o ni= -p $HOST) = 7",
    "taskset -pc 0 $HOST",
    "chrt -b -p 0 $HOST",
    "ionice -c 3 -p $HOST",
    "prlimit --nofile=64 --pid $HOST",
    // Memory that is not a file.
    "ipcs -m | grep -q 0x0badcafe",
    "ipcrm -M 0x0badcafe",
    // The host's terminal.
    ": > /dev/tty",
    "exec 5<>/dev/tty",
    "test $(cut -d ' ' -f 6 /proc/self/stat) = $SESSION",
];

/// The host's own shared memory, removed on drop.
struct Memory(libc::c_int);

#[expect(unsafe_code, reason = "System V memory has no wrapper")]
impl Memory {
    fn new() -> Self {
        // SAFETY: numbers only.
        let id = unsafe { libc::shmget(0x0bad_cafe, 4096, libc::IPC_CREAT | 0o666) };
        assert_ne!(id, -1);
        Self(id)
    }

    fn is_there(&self) -> bool {
        // SAFETY: the kernel writes one structure of that type.
        unsafe {
            let mut stat: libc::shmid_ds = std::mem::zeroed();
            libc::shmctl(self.0, libc::IPC_STAT, &raw mut stat) == 0
        }
    }
}

#[expect(unsafe_code, reason = "System V memory has no wrapper")]
impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: a number and no structure.
        unsafe { libc::shmctl(self.0, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

/// Returns the session of this process, or 0 if its leader is outside of our PID namespace, for which `rustix` has no
/// value.
fn session() -> i32 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    stat.split(' ').nth(5).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_sandboxed_process_reaches_none_outside() {
    let memory = Memory::new();
    let host = (
        getpriority_process(None).unwrap(),
        sched_getaffinity(None).unwrap().count(),
        session(),
    );
    let sleeper = spawner().spawn(sh("exec sleep 1000")).await.unwrap();
    for script in ROWS {
        let dir = tempfile::tempdir().unwrap();
        let hide = || vec![dir.path().join("hidden")];
        fs::write(dir.path().join("hidden"), "").unwrap();
        let open = Policy {
            hide: hide(),
            ..Policy::open()
        };
        let confined = Policy {
            hide: hide(),
            calls: Some(Calls::default()),
            ..Policy::system().write(dir.path())
        };
        for policy in [Policy::open(), open, confined] {
            let spec = sh(script)
                .cwd(dir.path())
                .var("DIR", dir.path())
                .var("HOST", std::process::id().to_string())
                .var("SLEEPER", sleeper.pid().to_string())
                .var("SESSION", host.2.to_string());
            let output = output(spec.policy(policy)).await.unwrap();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(!output.exit.success(), "{script}: {said}");
            assert!(sleeper.try_wait().unwrap().is_none(), "{script}: {said}");
            let stat = fs::read_to_string(format!("/proc/{}/stat", sleeper.pid())).unwrap();
            assert!(!stat.contains(") T "), "{script}: it was stopped: {stat}");
        }
    }
    let after = (
        getpriority_process(None).unwrap(),
        sched_getaffinity(None).unwrap().count(),
        session(),
    );
    assert_eq!(host, after);
    assert!(memory.is_there());
}

/// What it may do with its own processes.
#[tokio::test]
async fn a_sandboxed_process_rules_its_own() {
    for script in [
        "sleep 1000 & kill -STOP $! && kill -CONT $! && kill $! && ! wait $!",
        "nice -n 5 sh -c 'test $(nice) -ge 5'",
        "taskset -c 0 true",
        "ionice -c 3 true",
        "sh -c 'kill -9 $$'; test $? = 137",
        "ipcmk -M 4096 && ipcs -m | grep -q 4096",
        "setsid true",
    ] {
        let policy = Policy {
            calls: Some(Calls::default()),
            ..Policy::system()
        };
        let output = output(sh(script).policy(policy)).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.exit.success(), "{script}: {said}");
    }
}
