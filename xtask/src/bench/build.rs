//! `cargo xtask bench build`: build times from scratch, and after a change of one crate.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Instant, SystemTime};

use crate::sh::{self, Arguments, cargo, command};
use crate::{Result, failed, usage};

/// Crates that are touched before a build, from the most to the least depended on.
const TOUCHED: [&str; 5] = ["protocol", "kernel", "plugins", "agent", "cli"];
/// Crates of the plugin host, which a change of the agent must not rebuild.
const PLUGIN_HOST: [&str; 9] = [
    "plugin-status",
    "plugin-package",
    "plugin-trust",
    "plugin-registry",
    "js",
    "plugin-supervisor",
    "claude-hooks",
    "plugin-hooks",
    "plugins",
];
/// Clock ticks per second, the unit of Linux for the CPU time of children.
const TICKS: f64 = 100.0;

/// Prints wall and CPU time of each build, and how many crates it compiled.
///
/// # Errors
/// A failed build; a change of the agent that rebuilds the plugin host.
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
                let ours = build(profile, &format!("{name} touched"), &folder)?;
                let is_of_host = |name: &String| PLUGIN_HOST.contains(&name.as_str());
                if name == "agent" && ours.iter().any(is_of_host) {
                    return failed(format!(
                        "a change of the agent rebuilds the plugin host: {}",
                        ours.join(", ")
                    ));
                }
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

/// Builds the program, and returns which of our crates were compiled, by their name after `outrigger-`.
fn build(profile: &str, what: &str, folder: &Path) -> Result<Vec<String>> {
    let (started, cpu) = (Instant::now(), cpu_of_children());
    let mut cargo = cargo(&["build", "--package", "outrigger-cli", "--profile", profile]);
    // As a user builds: CI's settings would make a first build faster and later ones slower.
    for name in ["CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG"] {
        cargo.env_remove(name);
    }
    let output = cargo
        .env("CARGO_TARGET_DIR", folder)
        .output()
        .or_else(|error| failed(format!("cannot start cargo: {error}")))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return failed(format!("the build failed:\n{log}"));
    }
    let compiled = compiled(&log);
    let ours: Vec<String> = compiled
        .iter()
        .filter_map(|name| name.strip_prefix("outrigger-").map(str::to_owned))
        .collect();
    println!(
        "{profile:8} {what:16} {:6.1} s, {:6.1} s of CPU, {} of our crates, {} of others",
        started.elapsed().as_secs_f64(),
        cpu_of_children() - cpu,
        ours.len(),
        compiled.len() - ours.len(),
    );
    Ok(ours)
}

/// Returns the names of the packages that cargo says it compiled.
fn compiled(log: &str) -> Vec<&str> {
    log.lines()
        .filter_map(|line| line.trim().strip_prefix("Compiling "))
        .filter_map(|package| package.split(' ').next())
        .collect()
}

/// Returns the CPU time of reaped children and their descendants, in seconds.
fn cpu_of_children() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let fields = after_name.split(' ').skip(13).take(2);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_cargo_names_what_was_compiled() {
        let log = "   Compiling serde v1.0.0\n   Compiling outrigger-js v0.1.0 (/p/crates/outrigger-js)\n    Finished `dev`";
        assert_eq!(compiled(log), ["serde", "outrigger-js"]);
        let root = sh::root();
        for name in TOUCHED.iter().chain(&PLUGIN_HOST) {
            assert!(
                root.join(format!("crates/outrigger-{name}/Cargo.toml"))
                    .is_file(),
                "{name}"
            );
        }
    }
}
