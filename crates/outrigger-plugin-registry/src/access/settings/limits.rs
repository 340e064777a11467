//! Limits for processes and calls of plugins.

use std::time::Duration;

use outrigger_kernel::hooks::Deadline;

/// Time limits of calls (C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Pure policy hooks.
    pub fast: Duration,
    /// Hooks of JS plugins.
    pub normal: Duration,
    /// Each step of a plugin's loading, and the `config` hook.
    pub load: Duration,
    /// Authentication.
    pub slow: Duration,
    /// A plugin's tool. The tool runtime has its own deadlines; this one is the last resort.
    pub tool: Duration,
}

/// Limit of process restarts (A7, A13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restarts {
    /// Maximum number of restarts.
    pub most: usize,
    /// Period in which they occur; beyond the limit the plugins are switched off.
    pub within: Duration,
}

/// Limits of one plugin process with everything it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessLimits {
    /// Maximum resident bytes.
    pub memory: u64,
    /// Maximum number of processes.
    pub processes: usize,
    /// Maximum number of open files of each process (`RLIMIT_NOFILE`).
    pub files: u64,
    /// Percentage of one core that counts as busy.
    pub busy_percent: u32,
    /// Busy time with no open call after which it is deprioritised and reported.
    pub busy_slow: Duration,
    /// Busy time after which it is stopped.
    pub busy_stop: Duration,
}

impl Default for ProcessLimits {
    fn default() -> Self {
        Self {
            memory: 2 << 30,
            processes: 128,
            files: 4096,
            busy_percent: 90,
            busy_slow: Duration::from_secs(10),
            busy_stop: Duration::from_secs(30),
        }
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        let of = |class: Deadline| Duration::from_millis(class.default_ms());
        Self {
            fast: of(Deadline::Fast),
            normal: of(Deadline::Normal),
            load: of(Deadline::Load),
            slow: of(Deadline::Slow),
            // `task` tools of plugins run whole subagents.
            tool: Duration::from_secs(60 * 60),
        }
    }
}

impl Default for Restarts {
    fn default() -> Self {
        Self {
            most: 3,
            within: Duration::from_secs(60),
        }
    }
}

impl Deadlines {
    /// Returns the deadline of a class.
    #[must_use]
    pub fn of(&self, class: Deadline) -> Duration {
        match class {
            Deadline::Fast => self.fast,
            Deadline::Normal => self.normal,
            Deadline::Load => self.load,
            Deadline::Slow => self.slow,
        }
    }
}
