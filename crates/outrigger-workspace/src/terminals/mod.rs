//! Terminals of clients: `GET /pty` and its subroutes.
//!
//! A terminal is the user's shell, not the model's: there are no permission questions, since the user who opens it would be
//! asked. It ends with the agent. Its output is kept, up to a limit, for later clients.

mod buffer;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outrigger_sandbox::{Child, SandboxError, Size, Spawner, Spec, Terminal};
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};

use self::buffer::{Buffer, Decoder};
use outrigger_stdx::sync::lock;

/// Maximum number of running terminals; more indicate a client out of control.
const MAX_OPEN: usize = 64;
/// Maximum number of output pieces that a slow client may lag behind.
const OUTPUT_QUEUE: usize = 1024;
/// How long output is still read after the shell has ended while a descendant has the terminal open.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Lifetime of a ticket (OpenCode's figure).
const TICKET_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum number of unused tickets.
const MAX_TICKETS: usize = 256;
/// Shells that are started as login shells, as in OpenCode.
const LOGIN_SHELLS: &[&str] = &["bash", "dash", "fish", "ksh", "sh", "zsh"];

/// A terminal, as in `GET /pty`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PtyInfo {
    /// Identifier, `pty_…`.
    pub id: String,
    /// Display title.
    pub title: String,
    /// Program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// `running`; a terminated one is no longer listed.
    pub status: &'static str,
    /// Process number.
    pub pid: u32,
}

/// A client's parameters of a new terminal.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NewPty {
    /// Program; default: the user's shell.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Working directory; default: the agent's.
    pub cwd: Option<PathBuf>,
    /// Display title.
    pub title: Option<String>,
    /// Further variables.
    pub env: Option<BTreeMap<String, String>>,
}

/// Why there is no terminal.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// A plugin's `shell.env` hook refused.
    #[error("a plugin refused the terminal: {0}")]
    Blocked(String),
    /// Too many run.
    #[error("{MAX_OPEN} terminals run already; close one")]
    TooMany,
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] SandboxError),
    /// It was started without its terminal, or a size or text was not accepted.
    #[error("the terminal failed: {0}")]
    Io(#[from] std::io::Error),
}

/// A client's view of a terminal.
#[derive(Debug)]
pub struct Attached {
    /// Earlier output, from where the client requested.
    pub replay: String,
    /// The current position, in UTF-16 units from the start, as clients count.
    pub cursor: u64,
    output: broadcast::Receiver<Arc<str>>,
    terminal: Arc<Terminal>,
}

impl Attached {
    /// Returns the next output; `None` at its end.
    ///
    /// # Errors
    /// The client is so far behind that output was lost: it must reconnect with its cursor.
    pub async fn next(&mut self) -> Result<Option<Arc<str>>, Behind> {
        match self.output.recv().await {
            Ok(text) => Ok(Some(text)),
            Err(broadcast::error::RecvError::Closed) => Ok(None),
            Err(broadcast::error::RecvError::Lagged(_)) => Err(Behind),
        }
    }

    /// Returns a handle to type into the terminal, also while its output is awaited.
    #[must_use]
    pub fn keyboard(&self) -> Keyboard {
        Keyboard(Arc::clone(&self.terminal))
    }
}

/// A client did not keep up with the output.
#[derive(Debug, PartialEq, Eq)]
pub struct Behind;

/// Types into a terminal.
#[derive(Clone, Debug)]
pub struct Keyboard(Arc<Terminal>);

impl Keyboard {
    /// Types a text. Waits while the program does not read.
    ///
    /// # Errors
    /// The terminal is gone.
    pub async fn write(&self, text: &[u8]) -> Result<(), PtyError> {
        Ok(self.0.write_all(text).await?)
    }
}

/// The terminals of an agent.
#[derive(Debug, Default)]
pub struct Ptys {
    open: Mutex<BTreeMap<String, Arc<Pty>>>,
    tickets: Mutex<Vec<Ticket>>,
}

#[derive(Debug)]
struct Ticket {
    text: String,
    pty: String,
    until: Instant,
}

#[derive(Debug)]
struct Pty {
    info: Mutex<PtyInfo>,
    terminal: Arc<Terminal>,
    screen: Mutex<Screen>,
    stop: watch::Sender<bool>,
}

/// The two change together: a client that connects later does not get twice what is in the buffer.
#[derive(Debug)]
struct Screen {
    buffer: Buffer,
    /// `None` after the program has ended.
    output: Option<broadcast::Sender<Arc<str>>>,
}

impl Pty {
    fn show(&self, text: String) {
        if text.is_empty() {
            return;
        }
        let mut screen = lock(&self.screen);
        screen.buffer.push(&text);
        if let Some(output) = &screen.output {
            // No attached client is not an error.
            let _ = output.send(text.into());
        }
    }
}

impl Ptys {
    fn get(&self, id: &str) -> Option<Arc<Pty>> {
        lock(&self.open).get(id).cloned()
    }

    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Ends all of them.
    pub fn close(&self) {
        for (_, pty) in std::mem::take(&mut *lock(&self.open)) {
            pty.stop.send_replace(true);
        }
    }
}

impl Ptys {
    /// Returns the running terminals, oldest first.
    #[must_use]
    pub fn list(&self) -> Vec<PtyInfo> {
        let open = lock(&self.open);
        open.values().map(|pty| lock(&pty.info).clone()).collect()
    }

    /// Returns one of them.
    #[must_use]
    pub fn info(&self, id: &str) -> Option<PtyInfo> {
        self.get(id).map(|pty| lock(&pty.info).clone())
    }

    /// Fails if too many run.
    ///
    /// # Errors
    /// [`PtyError::TooMany`].
    pub fn check_room(&self) -> Result<(), PtyError> {
        if lock(&self.open).len() >= MAX_OPEN {
            return Err(PtyError::TooMany);
        }
        Ok(())
    }

    /// Starts a program in a terminal and lists it under `id`. [`Started::follow`] must run for its output to be read.
    ///
    /// # Errors
    /// [`PtyError`]; then no process is left.
    pub async fn start(
        &self,
        spawner: &Spawner,
        start: StartPty,
        id: String,
    ) -> Result<Started, PtyError> {
        let StartPty {
            command,
            mut args,
            cwd,
            title,
            env,
        } = start;
        let name = command.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| LOGIN_SHELLS.contains(&name)) {
            args.push("-l".to_owned());
        }
        let spec = Spec::new(&command)
            .args(&args)
            .cwd(&cwd)
            .vars(env)
            .terminal(Size::default())
            .allow_new_privs()
            .never_frozen()
            .label("terminal");
        let mut child = spawner.spawn(spec).await?;
        let terminal = child.terminal.take().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "there is no terminal")
        })?;
        let tail = id.get(id.len().saturating_sub(4)..).unwrap_or(&id);
        let info = PtyInfo {
            title: title
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| format!("Terminal {tail}")),
            command: command.to_string_lossy().into_owned(),
            args,
            cwd,
            status: "running",
            pid: child.pid(),
            id,
        };
        let (stop, stopped) = watch::channel(false);
        let pty = Arc::new(Pty {
            info: Mutex::new(info.clone()),
            terminal: Arc::new(terminal),
            screen: Mutex::new(Screen {
                buffer: Buffer::default(),
                output: Some(broadcast::Sender::new(OUTPUT_QUEUE)),
            }),
            stop,
        });
        lock(&self.open).insert(info.id.clone(), Arc::clone(&pty));
        Ok(Started {
            info,
            pty,
            child,
            stopped,
        })
    }

    /// Changes title or size; `None` if there is no such terminal.
    ///
    /// # Errors
    /// [`PtyError::Io`] if the size was not accepted.
    pub fn update(
        &self,
        id: &str,
        title: Option<String>,
        size: Option<Size>,
    ) -> Result<Option<PtyInfo>, PtyError> {
        let Some(pty) = self.get(id) else {
            return Ok(None);
        };
        if let Some(size) = size {
            pty.terminal.resize(size)?;
        }
        let mut info = lock(&pty.info);
        if let Some(title) = title.filter(|title| !title.is_empty()) {
            info.title = title;
        }
        Ok(Some(info.clone()))
    }

    /// Ends a terminal with all that runs in it; returns `false` if there is no such terminal.
    pub fn remove(&self, id: &str) -> bool {
        let Some(pty) = lock(&self.open).remove(id) else {
            return false;
        };
        pty.stop.send_replace(true);
        true
    }

    /// Removes a terminated one from the list.
    pub fn forget(&self, id: &str) {
        lock(&self.open).remove(id);
    }

    /// Attaches to a terminal. `from` is the first output wanted, in UTF-16 units from the start; default: all that is kept.
    /// `None` if there is no such terminal.
    #[must_use]
    pub fn attach(&self, id: &str, from: PtyFrom) -> Option<Attached> {
        let pty = self.get(id)?;
        let screen = lock(&pty.screen);
        let output = screen.output.as_ref()?.subscribe();
        let cursor = screen.buffer.end();
        let replay = match from {
            PtyFrom::Now => String::new(),
            PtyFrom::Kept => screen.buffer.since(0).to_owned(),
            PtyFrom::At(cursor) => screen.buffer.since(cursor).to_owned(),
        };
        Some(Attached {
            replay,
            cursor,
            output,
            terminal: Arc::clone(&pty.terminal),
        })
    }

    /// Returns a ticket that allows attaching to this terminal once, within a minute; `None` if there is no such terminal, or the
    /// system has no randomness.
    #[must_use]
    pub fn ticket(&self, id: &str) -> Option<(String, Duration)> {
        self.get(id)?;
        let text = outrigger_stdx::random::token::<24>().ok()?;
        let mut tickets = lock(&self.tickets);
        let now = Instant::now();
        tickets.retain(|ticket| ticket.until > now);
        if tickets.len() >= MAX_TICKETS {
            tickets.remove(0);
        }
        tickets.push(Ticket {
            text: text.clone(),
            pty: id.to_owned(),
            until: now + TICKET_TIMEOUT,
        });
        Some((text, TICKET_TIMEOUT))
    }

    /// Uses a ticket; returns `false` if it is not valid for this terminal.
    #[must_use]
    pub fn use_ticket(&self, id: &str, text: &str) -> bool {
        let now = Instant::now();
        let mut tickets = lock(&self.tickets);
        let found = tickets
            .iter()
            .position(|t| t.until > now && t.pty == id && same(&t.text, text));
        found.map(|at| tickets.remove(at)).is_some()
    }
}

/// The start parameters of a terminal.
#[derive(Debug)]
pub struct StartPty {
    /// Program.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its working directory.
    pub cwd: PathBuf,
    /// Display title; derived from the identifier if it is missing or empty.
    pub title: Option<String>,
    /// Its complete environment.
    pub env: Vec<(OsString, OsString)>,
}

/// A terminal that was just started: [`Started::follow`] reads its output.
#[derive(Debug)]
pub struct Started {
    /// Its list entry.
    pub info: PtyInfo,
    pty: Arc<Pty>,
    child: Child,
    stopped: watch::Receiver<bool>,
}

impl Started {
    /// Reads the program's output until it ends or is stopped. Returns its exit code as in shells (128 plus the number of the
    /// signal), `None` if it was stopped. The child is dropped before, and with it what still runs in the terminal.
    pub async fn follow(self) -> Option<i32> {
        let Self {
            pty,
            mut child,
            mut stopped,
            ..
        } = self;
        let mut decoder = Decoder::default();
        let mut buffer = vec![0; 8192];
        let mut open = true;
        let exit = loop {
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => break None,
                read = pty.terminal.read(&mut buffer), if open => match read {
                    Ok(count) if count > 0 => pty.show(decoder.push(buffer.get(..count).unwrap_or_default())),
                    _ => open = false,
                },
                exit = child.wait() => break exit.ok(),
            }
        };
        if exit.is_some() && open {
            let rest = async {
                while let Ok(count @ 1..) = pty.terminal.read(&mut buffer).await {
                    pty.show(decoder.push(buffer.get(..count).unwrap_or_default()));
                }
            };
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, rest).await;
        }
        pty.show(decoder.end());
        drop(child);
        lock(&pty.screen).output = None;
        let exit = exit?;
        let code = exit.code.or(exit.signal.map(|signal| 128 + signal));
        Some(code.unwrap_or(0))
    }
}

/// Compares secrets in constant time.
fn same(a: &str, b: &str) -> bool {
    let differ = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differ) == 0
}

/// The first output that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtyFrom {
    /// All that is kept.
    Kept,
    /// From this position on.
    At(u64),
    /// Only new output.
    Now,
}
