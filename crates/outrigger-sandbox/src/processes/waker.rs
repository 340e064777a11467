//! Wakes frozen processes if the host is killed meanwhile: without a PID namespace, what a process has started outlives the host, and
//! would stay stopped, with its locks, until the next start ends it ([`crate::ledger`]).

use std::fs::File;
use std::io::Write as _;

use crate::error::SandboxError;
use crate::spawn::child::Child;
use crate::spawn::spawner::Spawner;
use crate::spawn::spec::{Spec, Stdio};

/// The shell that was started ends with the host, the one behind it reads the end of its input then.
const SCRIPT: &str = "exec 3<&0; { while read -r pid; do pids=\"$pids $pid\"; done; kill -s CONT $pids; } <&3 & wait";

/// Wakes the processes that it knows when the host is killed; does nothing when it is dropped.
pub(crate) struct Waker {
    pids: File,
    _shell: Child,
}

impl Waker {
    pub(crate) async fn start(spawner: &Spawner) -> Result<Self, SandboxError> {
        let spec = Spec::new("/bin/sh").args(["-c", SCRIPT]);
        let spec = spec.stdin(Stdio::Pipe).never_frozen().label("thaw");
        let mut shell = spawner.spawn(spec).await?;
        let pid = shell.pid();
        let watch = |source| SandboxError::Watch { pid, source };
        let input = shell.stdin.take().ok_or(SandboxError::Stopped)?;
        let pids = input.into_blocking_fd().map_err(watch)?;
        Ok(Self {
            pids: pids.into(),
            _shell: shell,
        })
    }

    /// Adds a process that is about to be stopped.
    pub(crate) fn add(&mut self, pid: u32) {
        // It has been killed if it does not read; the next start then ends the process.
        let _ = writeln!(self.pids, "{pid}");
    }
}
