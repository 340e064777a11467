//! `cargo xtask bench build`: build times from scratch, and after a change of one crate.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Instant, SystemTime};

use crate::sh::{self, Arguments, cargo, command};
use crate::{Result, failed, usage};

/// Crates that are touched before a build, from the most to the least depended on.
const TOUCHED: [&str; 5] = ["protocol", "kernel", "plugins", "agent", "cli"];
/// Clock ticks per second, the unit of Linux for the CPU time of children.
const TICKS: f64 = 100.0;

/// Prints wall and CPU time of each build, and which of our crates it compiled.
pub(super) fn run(arguments: &mut Arguments<'_>) -> Result {
    let mut profiles = vec!["dev"];
    while let Some(argument) = arguments.next() {
        match argument {
            "--release" => profiles.push("release"),
            "--dist" => profiles.push("dist"),
            other => return usage(format!("bench build takes no `{other}`")),
        }
    }
    // A separate folder: the builds in `target` are unchanged.
    let folder = sh::work("bench-build");
    for profile in profiles {
        let _ = fs::remove_dir_all(&folder);
        build(profile, "from nothing", &folder)?;
        if profile == "dev" {
            for name in TOUCHED {
                touch(&sh::root().join(format!("crates/outrigger-{name}/src/lib.rs")))
                    .or_else(|_| {
                        touch(&sh::root().join(format!("crates/outrigger-{name}/src/main.rs")))
                    })
                    .or_else(|error| failed(format!("outrigger-{name}: {error}")))?;
                build(profile, &format!("{name} touched"), &folder)?;
            }
        }
        size(profile, &folder)?;
    }
    fs::remove_dir_all(&folder).or_else(|error| failed(format!("{}: {error}", folder.display())))
}

fn touch(file: &Path) -> std::io::Result<()> {
    let file = File::options().append(true).open(file)?;
    file.set_modified(SystemTime::now())
}

fn build(profile: &str, what: &str, folder: &Path) -> Result {
    let (started, cpu) = (Instant::now(), cpu_of_children());
    let mut cargo = cargo(&["build", "--package", "outrigger-cli", "--profile", profile]);
    let output = cargo.env("CARGO_TARGET_DIR", folder).output();
    let output = output.or_else(|error| failed(format!("cargo cannot be started: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return failed(format!("the build failed:\n{said}"));
    }
    let compiled = |line: &str| Some(line.trim().strip_prefix("Compiling ")?.to_owned());
    let compiled: Vec<String> = said.lines().filter_map(compiled).collect();
    let ours = compiled.iter().filter(|it| it.starts_with("outrigger-"));
    println!(
        "{profile:8} {what:16} {:6.1} s, {:6.1} s of CPU, {} of our crates, {} of others",
        started.elapsed().as_secs_f64(),
        cpu_of_children() - cpu,
        ours.clone().count(),
        compiled.len() - ours.count(),
    );
    Ok(())
}

/// Returns the CPU time of reaped children and their descendants, in seconds.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields = behind_name.split(' ').skip(13).take(2);
    let ticks: f64 = fields.filter_map(|it| it.parse::<f64>().ok()).sum();
    ticks / TICKS
}

fn size(profile: &str, folder: &Path) -> Result {
    let name = if profile == "dev" { "debug" } else { profile };
    let program = folder.join(name).join("outrigger");
    let bytes = fs::metadata(&program)
        .or_else(|error| failed(format!("{}: {error}", program.display())))?
        .len();
    let version = sh::output(command(&program).arg("--version"))?;
    let megabytes = bytes / 100_000;
    println!(
        "{profile:8} {} is {}.{} MB",
        version.trim(),
        megabytes / 10,
        megabytes % 10
    );
    Ok(())
}
