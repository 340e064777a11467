//! Runs a short-lived process to its end under one deadline.

use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::error::SandboxError;
use crate::processes::process_time::{Instant, timeout_at};
use crate::spawn::child::Child;
use crate::spawn::exit::Exit;
use crate::spawn::spawner::Spawner;
use crate::spawn::spec::{Spec, Stdio};

/// How long the pipes are still read after the process has ended: something that it left running may hold them open forever.
/// What was written before the end is in the pipe already.
const GRACE: Duration = Duration::from_millis(200);
/// How long a killed process is waited for. One that hangs in the kernel takes longer and is left to the reaper.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// The head of a stream, and how long the stream was.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// The first bytes, up to the requested maximum.
    pub head: Vec<u8>,
    /// The number of all bytes received, kept or not.
    pub total: u64,
}

impl Captured {
    /// Keeps as much of `bytes` as fits within `limit`, and counts all.
    pub fn push(&mut self, bytes: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.head.len()).min(bytes.len());
        self.head
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.total = self.total.saturating_add(bytes.len() as u64);
    }

    /// Returns the number of bytes received but not kept.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.total.saturating_sub(self.head.len() as u64)
    }
}

/// The exit and output of a process that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// How it ended; signal 9 if the deadline passed.
    pub exit: Exit,
    /// The head of standard output.
    pub stdout: Vec<u8>,
    /// The head of standard error.
    pub stderr: Vec<u8>,
    /// Total bytes of standard output.
    pub stdout_total: u64,
    /// Total bytes of standard error.
    pub stderr_total: u64,
    /// One of the streams had more bytes than were kept.
    pub truncated: bool,
    /// The deadline passed, and the process was killed with everything it had started.
    pub timed_out: bool,
}

/// Starts a process, reads its output to the end and waits for it, all within `deadline`, in the time of processes
/// ([`crate::process_time`]). At the deadline the whole tree is
/// killed and the output so far is returned. Standard output and error are always piped; the first `max_output` bytes of each
/// are kept and the rest is counted. Dropping the future kills the tree.
///
/// # Errors
/// Those of [`Spawner::spawn`], and [`SandboxError::Deadline`] if not even the start completed in time.
pub async fn run(
    spawner: &Spawner,
    spec: Spec,
    deadline: Duration,
    max_output: usize,
) -> Result<Output, SandboxError> {
    run_with_input(spawner, spec, None, deadline, max_output).await
}

/// Like [`run`], with bytes for standard input, which is closed after them. A process that does not read its input is not an
/// error.
///
/// # Errors
/// As [`run`].
pub async fn run_with_input(
    spawner: &Spawner,
    mut spec: Spec,
    input: Option<Vec<u8>>,
    deadline: Duration,
    max_output: usize,
) -> Result<Output, SandboxError> {
    let end = Instant::now() + deadline;
    spec.stdin = if input.is_some() {
        Stdio::Pipe
    } else {
        Stdio::Null
    };
    spec.stdout = Stdio::Pipe;
    spec.stderr = Stdio::Pipe;
    let program = spec.program.clone();
    let mut child =
        timeout_at(end, spawner.spawn(spec))
            .await
            .map_err(|_| SandboxError::Deadline {
                program,
                deadline_ms: deadline.as_millis(),
            })??;

    let (mut stdout, mut stderr) = (Captured::default(), Captured::default());
    let stdin = child.stdin.take();
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let streams = async {
        tokio::join!(
            feed(stdin, input),
            capture(out, &mut stdout, max_output),
            capture(err, &mut stderr, max_output),
        );
    };
    let (exit, timed_out) = end_of(&mut child, streams, end).await?;
    Ok(Output {
        exit,
        truncated: stdout.dropped() > 0 || stderr.dropped() > 0,
        stdout_total: stdout.total,
        stderr_total: stderr.total,
        stdout: stdout.head,
        stderr: stderr.head,
        timed_out,
    })
}

/// Waits for the end of a process while its streams are served; kills it at `end`. Returns how it ended, and whether it was
/// killed. What it left in the streams is read for a moment longer.
async fn end_of(
    child: &mut Child,
    streams: impl Future<Output = ()>,
    end: Instant,
) -> Result<(Exit, bool), SandboxError> {
    let mut streams = pin!(streams);
    let mut is_open = true;
    let ended = timeout_at(end, async {
        loop {
            tokio::select! {
                exit = child.wait() => return exit,
                () = &mut streams, if is_open => is_open = false,
            }
        }
    });
    let answer = match ended.await {
        Ok(exit) => (exit?, false),
        Err(_) => {
            child.kill_tree();
            let killed = timeout(KILL_GRACE, child.wait()).await;
            (killed.unwrap_or(Ok(KILLED))?, true)
        }
    };
    if is_open {
        let _ = timeout(GRACE, &mut streams).await;
    }
    Ok(answer)
}

/// The result for a process that hangs in the kernel and does not die at once.
const KILLED: Exit = Exit {
    code: None,
    signal: Some(libc::SIGKILL),
};

async fn feed(stdin: Option<pipe::Sender>, input: Option<Vec<u8>>) {
    if let (Some(mut stdin), Some(input)) = (stdin, input) {
        // A process may end or close its input early; its exit code tells the rest.
        let _ = stdin.write_all(&input).await;
    }
}

async fn capture(stream: Option<impl AsyncRead + Unpin>, into: &mut Captured, limit: usize) {
    let Some(mut stream) = stream else { return };
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count) = stream.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        into.push(buffer.get(..count).unwrap_or_default(), limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_is_kept_and_the_rest_counted() {
        let cases: [(&[&str], usize, &str, u64); 5] = [
            (&[], 4, "", 0),
            (&["ab"], 4, "ab", 0),
            (&["ab", "cd"], 4, "abcd", 0),
            (&["ab", "cdef", "gh"], 4, "abcd", 4),
            (&["ab"], 0, "", 2),
        ];
        for (parts, limit, head, dropped) in cases {
            let mut captured = Captured::default();
            parts
                .iter()
                .for_each(|part| captured.push(part.as_bytes(), limit));
            assert_eq!(
                (captured.head.as_slice(), captured.dropped()),
                (head.as_bytes(), dropped),
                "{parts:?}"
            );
        }
    }
}
