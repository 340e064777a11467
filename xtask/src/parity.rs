//! `cargo xtask parity`: compares our binary with recordings of OpenCode (requirement A3).

use std::fs;
use std::path::{Path, PathBuf};

use crate::sh::{self, Arguments, check, command, work};
use crate::{Result, failed, setup, usage};

/// Permitted differences by scenario, with the reason. Any other difference fails, and so does an unused exception.
const GATES: &str = "tests/parity/differences.json";

/// The output of a comparison: the figures of each scenario, and which failed.
const FIGURES: &str = "figures.json";

#[derive(Debug, Default)]
struct Options {
    reference: bool,
    /// Use the installed `opencode` as OpenCode.
    live: bool,
    only: Option<String>,
    bin: Option<PathBuf>,
    side_by_side: Option<String>,
    show: Option<String>,
    /// Output of `--show` and `--side-by-side`, as flags of compare.py.
    kinds: Vec<String>,
    verbose: bool,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut arguments = Arguments::new(arguments);
        while let Some(argument) = arguments.next() {
            match argument {
                "--reference" => options.reference = true,
                "--live" => options.live = true,
                "--show" => options.show = Some(arguments.value(argument)?.to_owned()),
                "--hooks" | "--model" | "--events" | "--whole" => {
                    options.kinds.push(argument.to_owned());
                }
                "--only" => options.only = Some(arguments.value(argument)?.to_owned()),
                "--bin" => options.bin = Some(absolute(arguments.value(argument)?)?),
                "--side-by-side" => {
                    options.side_by_side = Some(arguments.value(argument)?.to_owned())
                }
                "-v" | "--verbose" => options.verbose = true,
                other => return usage(format!("parity takes no `{other}`")),
            }
        }
        // One scenario is inspected: the others need not run.
        if options.only.is_none() && options.show.as_deref() != Some("all") {
            options.only.clone_from(&options.show);
        }
        Ok(options)
    }
}

/// Runs the scenarios and compares them; each has its gate.
pub(crate) fn run(arguments: &[String]) -> Result {
    let options = Options::parse(arguments)?;
    check(command("python3").args(["-m", "unittest", "-q", "tests/parity/test_gates.py"]))?;
    let tools = setup::tools()?;
    let ours = options.bin.clone().map_or_else(release_binary, Ok)?;
    let gold = if options.reference || options.live {
        let reference = if options.live {
            installed()?
        } else {
            setup::reference()?
        };
        record("reference", &reference, &options, &[])?
    } else {
        sh::root().join("tests/parity/gold")
    };
    let bun = format!("OUTRIGGER_BUN={}", setup::bun(&tools)?.display());
    let recording = record("ours", &ours, &options, &["--env", &bun])?;
    replay(&ours)?;
    let first = compare(&gold, &recording, &options);
    let Some(failed) = first.as_ref().err().and_then(|_| failed_scenarios()) else {
        return first;
    };
    // The order of concurrent events may vary. As with the tests (.config/nextest.toml), the second attempt counts, and the
    // first is printed.
    println!("parity: {failed}: recorded once more");
    let again = ["--env", &bun, "--only", &failed];
    run_scenarios("ours", &ours, &again)?;
    compare(&gold, &recording, &options)
}

/// Returns the scenarios that failed in the last comparison, if they are few: a real defect breaks many.
fn failed_scenarios() -> Option<String> {
    const MAX_RETRIED: usize = 4;
    let figures = fs::read(work("parity").join(FIGURES)).ok()?;
    let figures: serde_json::Value = serde_json::from_slice(&figures).ok()?;
    let failed: Vec<&str> = figures["failed"]
        .as_array()?
        .iter()
        .filter_map(serde_json::Value::as_str)
        .collect();
    (1..=MAX_RETRIED)
        .contains(&failed.len())
        .then(|| failed.join(","))
}

/// Returns the `opencode` on `PATH`. A version other than that of the recordings is reported: it may differ for good reason.
fn installed() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join("opencode"))
        .find(|program| program.is_file());
    let Some(found) = found else {
        return failed(
            "there is no `opencode` on PATH; install it, or use --reference, which fetches it from npm",
        );
    };
    let version = sh::output(command(&found).arg("--version"))?;
    let recorded = setup::reference_version();
    if version.trim() != recorded {
        println!(
            "parity: {} is version {}; the recordings are of {recorded}",
            found.display(),
            version.trim(),
        );
    }
    Ok(found)
}

/// Replays the stored log of every run through the kernel: the same inputs must yield the recorded effects.
fn replay(ours: &Path) -> Result {
    let home = work("parity").join("home-ours");
    check(
        command(ours)
            .args(["session", "verify", "--all"])
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_CACHE_HOME", home.join(".cache")),
    )
}

/// Returns the release binary, built if it is out of date.
///
/// # Errors
/// It does not compile.
pub(crate) fn release_binary() -> Result<PathBuf> {
    check(&mut sh::cargo(&[
        "build",
        "--release",
        "--package",
        "outrigger-cli",
        "--bin",
        "outrigger",
    ]))?;
    Ok(target_folder()?.join("release/outrigger"))
}

/// Returns cargo's target folder.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let text = sh::output(&mut sh::cargo(&[
        "metadata",
        "--format-version",
        "1",
        "--no-deps",
    ]))?;
    let metadata: serde_json::Value =
        serde_json::from_str(&text).or_else(|error| failed(format!("cargo metadata: {error}")))?;
    metadata["target_directory"].as_str().map_or_else(
        || failed("cargo metadata names no target directory"),
        |path| Ok(path.into()),
    )
}

/// Resolves a path of the user relative to the folder in which the task was called.
///
/// # Errors
/// There is no such file.
pub(crate) fn absolute(path: &str) -> Result<PathBuf> {
    fs::canonicalize(path).or_else(|error| failed(format!("{path}: {error}")))
}

/// Runs the scenarios with one program and returns the folder of recordings.
fn record(name: &str, binary: &Path, options: &Options, more: &[&str]) -> Result<PathBuf> {
    let (out, home) = folders(name);
    for folder in [&out, &home] {
        if folder.exists() {
            fs::remove_dir_all(folder)
                .or_else(|error| failed(format!("{}: {error}", folder.display())))?;
        }
    }
    println!("parity: {name} is {}", binary.display());
    let only = options.only.iter().flat_map(|only| ["--only", only]);
    let more: Vec<&str> = more.iter().copied().chain(only).collect();
    run_scenarios(name, binary, &more)?;
    Ok(out)
}

/// Returns the folder of a program's recordings, and its home.
fn folders(name: &str) -> (PathBuf, PathBuf) {
    let parity = work("parity");
    (parity.join(name), parity.join(format!("home-{name}")))
}

fn run_scenarios(name: &str, binary: &Path, more: &[&str]) -> Result {
    let (out, home) = folders(name);
    let mut python = command("python3");
    python
        .arg("tests/parity/run.py")
        .arg("--bin")
        .arg(binary)
        .arg("--home")
        .arg(home)
        .arg("--out")
        .arg(out);
    check(python.args(more))
}

fn compare(gold: &Path, ours: &Path, options: &Options) -> Result {
    let mut python = command("python3");
    python
        .arg("tests/parity/compare.py")
        .arg(gold)
        .arg(ours)
        .args(["--gates", GATES])
        .arg("--json")
        .arg(work("parity").join(FIGURES));
    if let Some(only) = &options.only {
        python.args(["--only", only]);
    }
    let fresh = options.reference || options.live;
    if let Some(names) = &options.show {
        python.args(["--show", names]);
    } else if let Some(names) = options.side_by_side.as_deref().or(fresh.then_some("all")) {
        python.args(["--side-by-side", names]);
    }
    python.args(&options.kinds);
    if options.verbose {
        python.arg("--verbose");
    }
    check(&mut python)
}
