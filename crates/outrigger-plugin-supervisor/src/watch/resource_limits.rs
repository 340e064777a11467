//! Limits for the resource use of a plugin process (A13): a pure evaluation of one reading a second.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use outrigger_plugin_registry::access::settings::ProcessLimits;
use outrigger_plugin_status::ProcessUse;
use outrigger_sandbox::usage::Usage;
use outrigger_stdx::sync::lock;

/// Consequence of a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It uses CPU although it has nothing to do.
    Slow(String),
    /// It is nearly out of file descriptors. The system refuses further ones, and only the plugin sees that.
    Full(String),
    /// A limit is exceeded; the text names it.
    Stop(String),
}

/// The latest readings of one process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gauge {
    last: Option<(Duration, Usage)>,
    busy: Duration,
    warned: bool,
    full: bool,
    /// Fraction of a core used between the last two readings.
    pub cpu: f64,
}

impl Gauge {
    /// Evaluates a reading at `now` (any monotonic clock). `working`: it has calls to answer, so CPU time is not a
    /// fault.
    pub(crate) fn read(
        &mut self,
        now: Duration,
        usage: Usage,
        working: bool,
        limits: &ProcessLimits,
    ) -> Option<Verdict> {
        if let Some(over) = over(&usage, limits) {
            return Some(Verdict::Stop(over));
        }
        if let Some(full) = self.fills(&usage, limits) {
            return Some(full);
        }
        let (then, before) = self.last.replace((now, usage))?;
        let passed = now.saturating_sub(then);
        // The time of a child that exited without being waited for disappears, so the sum may fall.
        let used = usage.cpu.saturating_sub(before.cpu);
        self.cpu = used.as_secs_f64() / passed.as_secs_f64().max(1e-3);
        if working || self.cpu * 100.0 < f64::from(limits.busy_percent) {
            self.busy = Duration::ZERO;
            self.warned = false;
            return None;
        }
        self.busy += passed;
        let seconds = self.busy.as_secs();
        if self.busy >= limits.busy_stop {
            return Some(Verdict::Stop(format!(
                "it used {:.0} % of a core for {seconds} s with no call open",
                self.cpu * 100.0
            )));
        }
        if self.busy >= limits.busy_slow && !self.warned {
            self.warned = true;
            return Some(Verdict::Slow(format!(
                "it has used {:.0} % of a core for {seconds} s with no call open",
                self.cpu * 100.0
            )));
        }
        None
    }
}

impl Gauge {
    /// Reports file descriptors once, until the process has closed some.
    fn fills(&mut self, usage: &Usage, limits: &ProcessLimits) -> Option<Verdict> {
        let open = u64::try_from(usage.files).unwrap_or(u64::MAX);
        let full = open.saturating_mul(20) >= limits.files.saturating_mul(19);
        let reported = std::mem::replace(&mut self.full, full);
        (full && !reported).then(|| {
            Verdict::Full(format!(
                "it has {open} files open of the {} of limits.plugin_open_files",
                limits.files
            ))
        })
    }
}

fn over(usage: &Usage, limits: &ProcessLimits) -> Option<String> {
    const MIB: u64 = 1 << 20;
    if usage.rss > limits.memory {
        return Some(format!(
            "it held {} MiB of memory, more than the {} MiB of limits.plugin_memory_mb",
            usage.rss / MIB,
            limits.memory / MIB
        ));
    }
    (usage.processes > limits.processes).then(|| {
        format!(
            "it ran {} processes, more than the {} of limits.plugin_processes",
            usage.processes, limits.processes
        )
    })
}

/// Readings of all processes, by process key.
#[derive(Default)]
pub struct Readings(pub(crate) Mutex<HashMap<u64, (u64, Gauge, Usage)>>);

impl Readings {
    /// Returns the last known resource use of a process.
    pub fn of(&self, key: u64) -> Option<ProcessUse> {
        let readings = lock(&self.0);
        let (_, gauge, usage) = readings.get(&key)?;
        Some(ProcessUse {
            cpu_ms: u64::try_from(usage.cpu.as_millis()).unwrap_or(u64::MAX),
            cpu: gauge.cpu,
            rss: usage.rss,
            processes: usage.processes,
        })
    }

    pub(crate) fn forget(&self, key: u64) {
        let mut readings = lock(&self.0);
        readings.remove(&key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: ProcessLimits = ProcessLimits {
        memory: 100 << 20,
        processes: 4,
        files: 64,
        busy_percent: 90,
        busy_slow: Duration::from_secs(10),
        busy_stop: Duration::from_secs(30),
    };

    /// Evaluates one reading a second; `(seconds, fraction of a core, working)`.
    fn verdicts(spans: &[(u32, f64, bool)]) -> String {
        let (mut gauge, mut now, mut usage) = (Gauge::default(), Duration::ZERO, Usage::default());
        let mut out = Vec::new();
        gauge.read(now, usage, false, &LIMITS);
        for (seconds, part, working) in spans {
            for _ in 0..*seconds {
                now += Duration::from_secs(1);
                usage.cpu += Duration::from_secs_f64(*part);
                match gauge.read(now, usage, *working, &LIMITS) {
                    Some(Verdict::Slow(_)) => out.push(format!("slow at {}", now.as_secs())),
                    Some(Verdict::Stop(why)) => {
                        out.push(format!("stop at {}: {why}", now.as_secs()));
                        return out.join(", ");
                    }
                    Some(Verdict::Full(_)) | None => {}
                }
            }
        }
        out.join(", ")
    }

    #[test]
    fn cpu_with_no_call_open_is_named_and_then_stopped() {
        for (spans, expected) in [
            (
                vec![(60, 1.0, false)],
                "slow at 10, stop at 30: it used 100 % of a core for 30 s with no call open",
            ),
            (
                vec![(60, 3.0, false)],
                "slow at 10, stop at 30: it used 300 % of a core for 30 s with no call open",
            ),
            (vec![(600, 1.0, true)], ""),
            (vec![(600, 0.8, false)], ""),
            (vec![(9, 1.0, false), (1, 0.1, false), (9, 1.0, false)], ""),
            (
                vec![(29, 1.0, false), (1, 1.0, true), (29, 1.0, false)],
                "slow at 10, slow at 40",
            ),
        ] {
            assert_eq!(verdicts(&spans), expected, "{spans:?}");
        }
    }

    #[test]
    fn memory_and_processes_are_limits_that_name_themselves() {
        let mut gauge = Gauge::default();
        let mut read = |rss, processes| {
            let usage = Usage {
                rss,
                processes,
                ..Usage::default()
            };
            gauge.read(Duration::ZERO, usage, true, &LIMITS)
        };
        assert_eq!(read(100 << 20, 4), None);
        assert_eq!(
            read(101 << 20, 1),
            Some(Verdict::Stop(
                "it held 101 MiB of memory, more than the 100 MiB of limits.plugin_memory_mb"
                    .into()
            ))
        );
        assert_eq!(
            read(0, 5),
            Some(Verdict::Stop(
                "it ran 5 processes, more than the 4 of limits.plugin_processes".into()
            ))
        );
    }

    #[test]
    fn open_files_are_named_once_before_they_run_out() {
        let mut gauge = Gauge::default();
        let mut read = |files| {
            let usage = Usage {
                files,
                ..Usage::default()
            };
            gauge.read(Duration::ZERO, usage, true, &LIMITS)
        };
        let full =
            Verdict::Full("it has 61 files open of the 64 of limits.plugin_open_files".into());
        let verdicts: Vec<Option<Verdict>> = [60, 61, 64, 10, 61].map(&mut read).into();
        assert_eq!(verdicts, [None, Some(full.clone()), None, None, Some(full)]);
    }
}
