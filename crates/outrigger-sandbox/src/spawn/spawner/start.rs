//! One start on the spawning thread: the child is prepared, forked, and waited for until it has executed the
//! program.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use seccompiler::BpfProgram;

use super::NotStarted;
use crate::error::SandboxError;
use crate::fs::absent::Absent;
use crate::fs::real_paths::RealPaths;
use crate::fs::which::{is_executable, which};
use crate::namespaces::init;
use crate::namespaces::init::Program;
use crate::namespaces::unshare::Namespaces;
use crate::namespaces::view::View;
use crate::namespaces::{support, view};
use crate::policy::Policy;
use crate::policy::level::Level;
use crate::processes::tag;
use crate::seccomp::calls::{self, FilterOptions};
use crate::seccomp::connects;
use crate::spawn::child::Started;
use crate::spawn::process::Process;
use crate::spawn::setup;
use crate::spawn::setup::{CHANNEL_FD, RETRY, Setup};
use crate::spawn::spec::{Spec, Stdio};
use crate::spawn::terminal;

/// How often a start is retried if another thread took file descriptor 3 in the meantime.
const ATTEMPTS: usize = 8;
/// The first process of a namespace.
const INIT: libc::pid_t = 1;

/// Runs on the spawning thread.
pub(super) fn start(spec: &Spec, real: &mut RealPaths) -> Result<Started, NotStarted> {
    check_cwd(spec)?;
    let program = find(spec)?;
    attempts(spec, &program, real)?.map_err(|source| {
        let moved = source.raw_os_error() == Some(view::MOVED);
        let error = SandboxError::Spawn { program, source };
        if moved {
            NotStarted::Moved(error)
        } else {
            NotStarted::Failed(error)
        }
    })
}

/// Retries a start. The outer error is final.
fn attempts(
    spec: &Spec,
    program: &Path,
    real: &mut RealPaths,
) -> Result<io::Result<Started>, SandboxError> {
    for _ in 1..ATTEMPTS {
        match try_start(spec, program, real)? {
            Err(error) if error.raw_os_error() == Some(RETRY) => setup::reserve_channel_fd(),
            other => return Ok(other),
        }
    }
    try_start(spec, program, real)
}

/// Tries a start once. The outer error is final, the inner one is that of fork, setup or exec.
fn try_start(
    spec: &Spec,
    program: &Path,
    real: &mut RealPaths,
) -> Result<io::Result<Started>, SandboxError> {
    let ruleset = match &spec.policy {
        Some(policy) => policy
            .ruleset(program, real)
            .map_err(|source| SandboxError::Policy {
                program: program.to_owned(),
                source: Box::new(source),
            })?,
        None => None,
    };
    let level = spec.policy.as_ref().map(Policy::level);
    let prepared = beyond_files(spec, real);
    Ok(prepared.and_then(|prepared| fork(spec, program, ruleset.as_ref(), level, prepared)))
}

/// The view and the filter of system calls of a process.
type Prepared = (Option<View>, Option<BpfProgram>);

/// Prepares the parts of a policy that Landlock does not enforce, as far as the kernel supports them.
fn beyond_files(spec: &Spec, real: &mut RealPaths) -> io::Result<Prepared> {
    let Some(policy) = &spec.policy else {
        return Ok((None, None));
    };
    let view = if support::has_views() {
        Some(View::of(policy, &spec.cwd, real)?)
    } else {
        None
    };
    let filter = if calls::is_possible() {
        Some(calls::filter(FilterOptions {
            calls: policy.calls,
            landlock_rules_tcp: policy.connect_tcp.is_some() || policy.loopback.is_some(),
            // If the host decides about connections, it tells the process's own services from others.
            host_rules_unix_sockets: policy.loopback.is_some() && connects::is_possible(),
            notifies_connects: policy.is_asked_about() && connects::is_possible(),
            // Without a PID namespace the process can name the host.
            host_pid: (!support::has_numbers()).then(std::process::id),
        })?)
    } else {
        None
    };
    Ok((view, filter))
}

/// Returns the rules for connecting and listening, if these are restricted and the kernel can leave the decision to
/// us.
fn connect_rules(spec: &Spec) -> Option<connects::Rules> {
    let policy = spec.policy.as_ref()?;
    (policy.is_asked_about() && connects::is_possible()).then(|| connects::Rules {
        connect: policy.connect_tcp.clone(),
        bind: policy.bind_tcp.clone(),
        loopback: policy.loopback.clone(),
        proxy_redirect: spec.proxy_redirect.clone(),
        unix_sockets: policy.calls.is_none_or(|calls| calls.unix_sockets),
        abstract_sockets: policy.reach_out,
        reserved: policy.reserved.clone(),
    })
}

fn fork(
    spec: &Spec,
    program: &Path,
    ruleset: Option<&OwnedFd>,
    level: Option<Level>,
    (view, filter): Prepared,
) -> io::Result<Started> {
    let (ends, theirs) = pairs(spec)?;
    let is_command = spec.policy.as_ref().is_some_and(Policy::is_of_command);
    let tag = tag::fresh(is_command);
    let rules = connect_rules(spec);
    let pair = rules.as_ref().map(|_| connects::pair()).transpose()?;
    let namespaces = view.as_ref().map(|_| Namespaces::needed());
    let numbers = namespaces.is_some() && support::has_numbers();
    let setup = Setup {
        parent: if numbers {
            INIT
        } else {
            std::process::id().cast_signed()
        },
        enters: namespaces.clone().filter(|_| !numbers),
        data: spec.limits.data,
        nofile: spec.limits.nofile,
        files: crate::processes::open_files::of_children(),
        tag,
        channel: theirs
            .channel
            .as_ref()
            .map(|end| (end.as_raw_fd(), setup::file_id(CHANNEL_FD))),
        terminal: theirs.terminal.is_some(),
        late: view.as_ref().map(|it| it.late(numbers)).unwrap_or_default(),
        no_new_privs: spec.no_new_privs,
        confined: spec.policy.is_some(),
        ruleset: ruleset.map(|ruleset| ruleset.as_raw_fd()),
        view,
        filter,
        connects: pair.as_ref().map(|(_, end)| end.as_raw_fd()),
        reserves: rules.as_ref().is_some_and(|it| !it.reserved.is_empty()),
    };
    let (process, [stdin, stdout, stderr]) = match namespaces.filter(|_| numbers) {
        Some(namespaces) => in_namespaces(spec, program, &setup, &namespaces, theirs.terminal)?,
        None => beside_host(spec, program, setup, theirs.terminal)?,
    };
    drop(theirs.channel);
    if let (Some((ours, _)), Some(rules)) = (&pair, rules) {
        // The process's first connection waits until this exists.
        connects::watch(connects::receive(ours)?, rules)?;
    }
    Ok(Started {
        process,
        stdin,
        stdout,
        stderr,
        channel: ends.channel,
        terminal: ends.terminal,
        level,
        absent: Absent::default(),
        hidden: None,
    })
}

/// One side of the channel and of the terminal, if requested.
#[derive(Default)]
struct Ends {
    channel: Option<UnixStream>,
    terminal: Option<OwnedFd>,
}

/// Creates the channel and the terminal: the host's ends, and the process's.
fn pairs(spec: &Spec) -> io::Result<(Ends, Ends)> {
    let (mut ours, mut theirs) = (Ends::default(), Ends::default());
    if spec.channel {
        setup::reserve_channel_fd();
        let (host, process) = UnixStream::pair()?;
        (ours.channel, theirs.channel) = (Some(host), Some(process));
    }
    if let Some(size) = spec.terminal {
        let (host, process) = terminal::pair(size)?;
        (ours.terminal, theirs.terminal) = (Some(host), Some(process));
    }
    Ok((ours, theirs))
}

/// The host's ends of standard input, output and error.
type Streams = [Option<OwnedFd>; 3];

/// Starts it below its own init.
fn in_namespaces(
    spec: &Spec,
    program: &Path,
    setup: &Setup,
    namespaces: &Namespaces,
    terminal: Option<OwnedFd>,
) -> io::Result<(Process, Streams)> {
    let text = Program::new(program, spec.program.as_os_str(), &spec.args, &spec.env)?;
    let (ours, theirs) = streams(spec, terminal)?;
    let (pid, report) = init::start(&init::Start {
        program: &text,
        setup,
        streams: theirs.each_ref().map(|it| it.as_raw_fd()),
        namespaces,
    })?;
    Ok((Process::adopt_init(pid, report)?, ours))
}

/// Starts it as a child of the host itself.
fn beside_host(
    spec: &Spec,
    program: &Path,
    setup: Setup,
    terminal: Option<OwnedFd>,
) -> io::Result<(Process, Streams)> {
    let tag = setup.tag;
    let mut child = command(spec, program, setup, terminal)?.spawn()?;
    let streams = [
        child.stdin.take().map(OwnedFd::from),
        child.stdout.take().map(OwnedFd::from),
        child.stderr.take().map(OwnedFd::from),
    ];
    let process = Process::adopt(child.id(), tag)?;
    Ok((process.confined(spec.policy.is_some()), streams))
}

#[expect(
    clippy::disallowed_methods,
    reason = "invariant 4: this is the one place"
)]
#[expect(
    unsafe_code,
    reason = "pre_exec: parent-death signal, limits and Landlock are set by the child itself"
)]
fn command(
    spec: &Spec,
    program: &Path,
    setup: Setup,
    terminal: Option<OwnedFd>,
) -> io::Result<Command> {
    let mut command = Command::new(program);
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd);
    match terminal {
        Some(end) => command
            .stdin(end.try_clone()?)
            .stdout(end.try_clone()?)
            .stderr(end),
        None => command
            .stdin(stdio(spec.stdin))
            .stdout(stdio(spec.stdout))
            .stderr(stdio(spec.stderr)),
    };
    if program != spec.program {
        // A program found on `PATH` gets the name it was called by, as in a shell.
        command.arg0(&spec.program);
    }
    // SAFETY: `Setup::apply` makes async-signal-safe calls only, on what was prepared; the descriptors behind it are
    // kept open by the caller until `spawn` has returned.
    unsafe {
        command.pre_exec(move || setup.apply());
    }
    Ok(command)
}

/// Creates the host's ends of its streams, and the process's.
fn streams(spec: &Spec, terminal: Option<OwnedFd>) -> io::Result<(Streams, [OwnedFd; 3])> {
    if let Some(end) = terminal {
        let ends = [end.try_clone()?, end.try_clone()?, end];
        return Ok(([None, None, None], ends));
    }
    let open = |stdio: Stdio, reads: bool| -> io::Result<(Option<OwnedFd>, OwnedFd)> {
        match stdio {
            Stdio::Null => {
                let mut null = std::fs::OpenOptions::new();
                let null = null.read(reads).write(!reads).open("/dev/null")?;
                Ok((None, null.into()))
            }
            Stdio::Pipe => {
                let (reader, writer) = std::io::pipe()?;
                Ok(if reads {
                    (Some(writer.into()), reader.into())
                } else {
                    (Some(reader.into()), writer.into())
                })
            }
        }
    };
    let (stdin, read) = open(spec.stdin, true)?;
    let (stdout, write) = open(spec.stdout, false)?;
    let (stderr, errors) = open(spec.stderr, false)?;
    Ok(([stdin, stdout, stderr], [read, write, errors]))
}

fn stdio(stdio: Stdio) -> std::process::Stdio {
    match stdio {
        Stdio::Null => std::process::Stdio::null(),
        Stdio::Pipe => std::process::Stdio::piped(),
    }
}

fn check_cwd(spec: &Spec) -> Result<(), SandboxError> {
    let cwd = |source| SandboxError::Cwd {
        program: spec.program.clone(),
        cwd: spec.cwd.clone(),
        source,
    };
    let meta = std::fs::metadata(&spec.cwd).map_err(cwd)?;
    if meta.is_dir() {
        Ok(())
    } else {
        Err(cwd(io::ErrorKind::NotADirectory.into()))
    }
}

/// Returns the program's absolute path, to distinguish "not found" from every other failure of exec.
pub(super) fn find(spec: &Spec) -> Result<PathBuf, SandboxError> {
    let not_found = |search: &OsStr| SandboxError::NotFound {
        program: spec.program.clone(),
        search: search.to_owned(),
    };
    if spec.program.as_os_str().as_encoded_bytes().contains(&b'/') {
        let file = spec.cwd.join(&spec.program);
        // A file that exists but is not executable is left to exec, whose error (EACCES) has a better message.
        return if is_executable(&file) || file.is_file() {
            Ok(file)
        } else {
            Err(not_found(spec.cwd.as_os_str()))
        };
    }
    let path = spec.var_value("PATH").unwrap_or_default();
    which(&spec.program, path).ok_or_else(|| not_found(path))
}
