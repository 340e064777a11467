//! `cargo xtask test`: everything that must hold before a change lands, as one command.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::sh::{cargo, check, command};
use crate::{Result, clients, dist, extension, failed, parity, setup, sh, tidy, usage, web};

/// A stage's name and function.
type Stage = (&'static str, fn() -> Result);

/// In this order: fast stages that fail often come first.
const STAGES: [Stage; 13] = [
    ("setup", setup::small),
    ("fmt", || check(&mut cargo(&["fmt", "--all", "--check"]))),
    ("tidy", || tidy::run(&[])),
    ("deny", deny),
    ("web", web::stage),
    ("clippy", || {
        check(&mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--",
            "--deny",
            "warnings",
        ]))
    }),
    ("release", || parity::release_binary().map(drop)),
    ("tests", tests),
    ("parity", || parity::run(&[])),
    ("clients", || clients::run(&[])),
    ("browser", web::browser_stage),
    (
        "extension",
        || match extension::stage(registry_answers())? {
            Some(skipped) => note_skipped(skipped),
            None => Ok(()),
        },
    ),
    ("dist", || {
        let binary = parity::release_binary()?.display().to_string();
        dist::run(&["--bin".to_owned(), binary, "--check".to_owned()])
    }),
];

/// Stages that run beside `tests`, each list in a process of its own, one after the other: they and the tests wait for other
/// processes half of the time. Two lists, since one takes longer than the tests, and the machine would then be idle half of the time.
const BESIDE_TESTS: [&[&str]; 2] = [&["parity", "clients", "browser"], &["extension", "dist"]];

/// Set in these processes: the file of skipped tests belongs to the first one.
const IS_BESIDE: &str = "OUTRIGGER_BESIDE_TESTS";

/// Packages whose dependencies, and those of their tests, together turn on every feature that the workspace does. `cargo test --doc`
/// of fewer would compile what the tests need a second time, with other features (a minute of CPU time).
const WITH_ALL_FEATURES: [&str; 3] = ["outrigger-acp", "outrigger-cli", "outrigger-executors"];

/// Free disk, in GiB, without which a first run does not start. It uses about 14 (builds 8, packages of npm 5), and a disk that
/// is full after half an hour fails in many places that do not say why.
const MIN_FREE_GIB: u64 = 16;

/// How long the tests wait for the agents of other vendors, which the stages before them had minutes for.
const AGENTS_TIMEOUT: Duration = Duration::from_secs(120);

/// Runs the stages, or those named; stops at the first that fails.
pub(crate) fn run(arguments: &[String]) -> Result {
    if let Some(unknown) = arguments
        .iter()
        .find(|name| STAGES.iter().all(|(stage, _)| stage != name))
    {
        let names: Vec<&str> = STAGES.iter().map(|(stage, _)| *stage).collect();
        return usage(format!(
            "there is no stage `{unknown}`; there are: {}",
            names.join(" ")
        ));
    }
    if arguments.is_empty() {
        check_free_disk()?;
    }
    let is_beside = std::env::var_os(IS_BESIDE).is_some();
    if !is_beside {
        // Drop the results of an earlier run, if there are any.
        let _ = fs::remove_file(skipped_file());
    }
    let is_chosen =
        |stage: &str| arguments.is_empty() || arguments.iter().any(|name| name == stage);
    let beside = is_chosen("tests").then(|| BESIDE_TESTS.concat());
    let stages = STAGES.iter().filter(|(stage, _)| {
        is_chosen(stage) && !beside.iter().flatten().any(|other| other == stage)
    });
    let mut times = Vec::new();
    let mut agents = None;
    for (name, stage) in stages {
        println!("==> {name}");
        let started = Instant::now();
        let mut others = Vec::new();
        match *name {
            "setup" => agents = Some(setup::Agents::begin()),
            "tests" => {
                if let Some(agents) = agents.take() {
                    agents.finish(Some(AGENTS_TIMEOUT));
                }
                others = Beside::start_all(is_chosen)?;
            }
            _ => {}
        }
        let result = stage().inspect_err(|_| {
            println!(
                "==> {name} failed after {:.0} s",
                started.elapsed().as_secs_f64()
            );
        });
        times.push(format!("{name} {:.0} s", started.elapsed().as_secs_f64()));
        // What the other processes found is printed even if this stage failed: it was measured anyway.
        let others: Vec<Result> = others.into_iter().map(Beside::finish).collect();
        others
            .into_iter()
            .fold(result, |all, other| all.and(other))?;
    }
    println!("==> all stages passed: {}", times.join(", "));
    if !is_beside {
        report_skipped();
    }
    Ok(())
}

/// Another process of this program, with stages that run beside the tests.
struct Beside {
    process: Child,
    log: PathBuf,
    started: Instant,
    stages: String,
}

impl Beside {
    /// Starts a process for each list of [`BESIDE_TESTS`] of which a stage is chosen.
    fn start_all(is_chosen: impl Fn(&str) -> bool) -> Result<Vec<Self>> {
        BESIDE_TESTS
            .iter()
            .map(|list| list.iter().copied().filter(|stage| is_chosen(stage)))
            .map(Iterator::collect::<Vec<&str>>)
            .filter(|stages| !stages.is_empty())
            .map(|stages| Self::start(&stages))
            .collect()
    }

    /// Starts it.
    fn start(stages: &[&str]) -> Result<Self> {
        // It shares the release program; two builds of it would wait for each other.
        parity::release_binary()?;
        let log = sh::work(&format!("beside-tests-{}.log", stages.join("-")));
        let start = || {
            let file = fs::File::create(&log)?;
            command(std::env::current_exe()?)
                .arg("test")
                .args(stages)
                .env(IS_BESIDE, "1")
                .stdout(file.try_clone()?)
                .stderr(file)
                .spawn()
        };
        let stages = stages.join(", ");
        let process = start().or_else(|error| failed(format!("cannot start {stages}: {error}")))?;
        println!("==> {stages}: beside the tests, printed after them");
        Ok(Self {
            process,
            log,
            started: Instant::now(),
            stages,
        })
    }

    /// Waits for its end and prints what it wrote.
    fn finish(mut self) -> Result {
        let status = self.process.wait();
        print!("{}", fs::read_to_string(&self.log).unwrap_or_default());
        match status {
            Ok(status) if status.success() => Ok(()),
            _ => failed(format!(
                "{} failed, {:.0} s after the tests began",
                self.stages,
                self.started.elapsed().as_secs_f64()
            )),
        }
    }
}

/// Checks that a first run has the disk that it needs; a later one finds most of it there.
fn check_free_disk() -> Result {
    // This program itself is in `target/debug` already.
    if sh::root().join("target/release/deps").is_dir() {
        return Ok(());
    }
    let listed = sh::output(command("df").args(["-P", "-k"]).arg(sh::root()));
    match listed.ok().and_then(|listed| free_gib(&listed)) {
        Some(free) if free < MIN_FREE_GIB => failed(format!(
            "{free} GiB of disk are free where the project is, and a first run needs {MIN_FREE_GIB}: free some and try again"
        )),
        _ => Ok(()),
    }
}

/// Reads the free space, in GiB, from the output of `df -P -k`.
fn free_gib(listed: &str) -> Option<u64> {
    let free = listed.lines().nth(1)?.split_whitespace().nth(3)?;
    Some(free.parse::<u64>().ok()? >> 20)
}

/// Checks licences, sources and versions of dependencies (`deny.toml`). Advisories need the network: hosted CI checks them.
fn deny() -> Result {
    if sh::output(&mut cargo(&["deny", "--version"])).is_err() {
        return note_skipped(
            "deny: licences and sources were not checked, hosted CI does: `cargo install --locked cargo-deny`",
        );
    }
    check(&mut cargo(&[
        "deny",
        "--offline",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// Returns the file in which tests record what they could not test (`outrigger_test_support::skip`).
fn skipped_file() -> PathBuf {
    sh::work("skipped.txt")
}

/// Records what a stage could not test.
pub(crate) fn note_skipped(line: &str) -> Result {
    let file = skipped_file();
    // In one write, beside the tests' own.
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&file)
        .and_then(|mut opened| opened.write_all(format!("{line}\n").as_bytes()))
        .or_else(|error| failed(format!("cannot write {}: {error}", file.display())))
}

/// Prints at the very end what was not tested, so that no pass is silent.
fn report_skipped() {
    let text = fs::read_to_string(skipped_file()).unwrap_or_default();
    println!("{}", skipped(&text));
}

// A test that is repeated as an unprivileged user writes its line again.
fn skipped(text: &str) -> String {
    let lines: BTreeSet<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let mut said = match lines.len() {
        0 => "==> no test was skipped".to_owned(),
        1 => "==> 1 test was skipped, or a part of it:".to_owned(),
        count => format!("==> {count} tests were skipped, or a part of them:"),
    };
    for line in lines {
        said.push_str("\n      ");
        said.push_str(line);
    }
    said
}

/// Returns whether npm reaches its registry: then no test of a published plugin may be skipped.
pub(crate) fn registry_answers() -> bool {
    let view = [
        "view",
        "npm",
        "version",
        "--prefer-online",
        "--fetch-retries=0",
        "--fetch-timeout=20000",
    ];
    sh::output(command("npm").args(view)).is_ok()
}

/// Returns the number of concurrent tests: they wait for processes half of the time, so two for each core.
fn threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores * 2).to_string()
}

/// Returns the crates whose doc comments have examples. For the others `cargo test --doc` would start `rustdoc` in vain.
fn crates_with_examples() -> Result<BTreeSet<String>> {
    let sources = sh::output(command("git").args([
        "grep",
        "-l",
        "^ *//[/!] ```",
        "--",
        "crates/*/src/*.rs",
    ]))?;
    let name = |path: &str| {
        let name = path.strip_prefix("crates/")?.split('/').next()?;
        let library = sh::root().join("crates").join(name).join("src/lib.rs");
        library.is_file().then(|| name.to_owned())
    };
    Ok(sources.lines().filter_map(name).collect())
}

/// Runs the workspace's tests; nextest does not run the examples in doc comments, so those come first. Those of the command run
/// its release build, which the later stages need anyway: most of the tests' time is the program's own, and it is faster.
fn tests() -> Result {
    let bun = setup::bun(&setup::tools()?)?;
    let program = parity::release_binary()?;
    let nextest = sh::output(&mut cargo(&["nextest", "--version"])).is_ok();
    let threads = threads();
    let mut examples = vec!["test", "--doc", "--quiet"];
    let crates = crates_with_examples()?;
    let crates = crates.iter().map(String::as_str);
    examples.extend(
        crates
            .chain(WITH_ALL_FEATURES)
            .flat_map(|name| ["--package", name]),
    );
    let commands: &[&[&str]] = if nextest {
        &[
            &examples,
            &[
                "nextest",
                "run",
                "--workspace",
                "--no-fail-fast",
                "--test-threads",
                &threads,
                "--status-level",
                "slow",
                "--final-status-level",
                "fail",
            ],
        ]
    } else {
        &[&["test", "--workspace", "--no-fail-fast"]]
    };
    let registry = registry_answers();
    if !registry {
        println!(
            "npm's registry does not answer: published plugins are tested as far as they are in .work/plugin-cache"
        );
    }
    for arguments in commands {
        let mut cargo = cargo(arguments);
        cargo
            .env("OUTRIGGER_BUN", &bun)
            .env("OUTRIGGER_TEST_BIN", &program)
            .env("OUTRIGGER_SKIPPED", skipped_file())
            .env("OUTRIGGER_NEED_NPM", if registry { "1" } else { "0" });
        check(&mut cargo).inspect_err(|_| report_skipped())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doc_tests_run_where_a_library_has_examples() {
        let names = crates_with_examples().unwrap();
        assert!(names.contains("outrigger-kernel"), "{names:?}");
        // Its library has none, and the command has no library.
        assert!(!names.contains("outrigger-agent"), "{names:?}");
        assert!(!names.contains("outrigger-cli"), "{names:?}");
    }

    #[test]
    fn free_disk_is_read_from_df() {
        let listed = "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/vda 264239104 89128960 7025459 93% /\n";
        assert_eq!(free_gib(listed), Some(6));
        assert_eq!(free_gib("df: no such file"), None);
    }

    #[test]
    fn what_was_skipped_is_counted_once_and_named() {
        assert_eq!(skipped(""), "==> no test was skipped");
        assert_eq!(
            skipped("a::b: no tmux\n"),
            "==> 1 test was skipped, or a part of it:\n      a::b: no tmux"
        );
        assert_eq!(
            skipped("c::d: no npm\na::b: no tmux\nc::d: no npm\n"),
            "==> 2 tests were skipped, or a part of them:\n      a::b: no tmux\n      c::d: no npm"
        );
    }
}
