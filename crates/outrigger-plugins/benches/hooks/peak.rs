//! How long the plugin process keeps a core busy for one call (A14).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Its CPU time is read this often.
const WINDOW: Duration = Duration::from_millis(1);
/// It is busy in a window where it uses more than this of one core.
const BUSY: f64 = 0.8;

/// The CPU time of a process so far.
fn cpu_of(pid: i32) -> Option<Duration> {
    let mut clock = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    #[expect(unsafe_code, reason = "another process's clock has no safe wrapper")]
    // SAFETY: both write into what they are given, and refuse what is not a process.
    let failed = unsafe {
        libc::clock_getcpuclockid(pid, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanos = u32::try_from(time.tv_nsec).ok()?;
    (!failed).then(|| Duration::new(seconds, nanos))
}

/// The process below this one that runs a program.
pub(crate) fn process(program: &Path) -> i32 {
    let program = program.canonicalize().unwrap();
    let mut found = vec![std::process::id().to_string()];
    loop {
        let pid = found.pop().expect("a process that runs the program");
        if std::fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == program) {
            return pid.parse().unwrap();
        }
        let threads = std::fs::read_dir(format!("/proc/{pid}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children =
                std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(str::to_owned));
        }
    }
}

/// Whether its main thread runs or waits for a core: with other programs beside it a process that is busy has none for a while.
fn is_runnable(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name of the program stands before it in parentheses.
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('R'))
}

/// Watches a process until it is asked for the length of its peak: the longest time in which it was busy without a break, without
/// what it waited for a core.
pub(crate) struct Peak {
    stop: Arc<AtomicBool>,
    watching: std::thread::JoinHandle<Duration>,
}

impl Peak {
    pub(crate) fn of(pid: i32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let watching = std::thread::spawn(move || watch(pid, &stopped));
        Self { stop, watching }
    }

    pub(crate) fn end(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.watching.join().unwrap()
    }
}

fn watch(pid: i32, stop: &AtomicBool) -> Duration {
    let (mut longest, mut run) = (Duration::ZERO, Duration::ZERO);
    let (mut at, mut cpu) = (Instant::now(), cpu_of(pid).unwrap());
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(WINDOW);
        let now = Instant::now();
        let Some(used) = cpu_of(pid) else { break };
        let (window, share) = (now - at, used.saturating_sub(cpu));
        let is_busy = share.as_secs_f64() > BUSY * window.as_secs_f64() || is_runnable(pid);
        run = if is_busy { run + share } else { Duration::ZERO };
        longest = longest.max(run);
        (at, cpu) = (now, used);
    }
    longest
}
