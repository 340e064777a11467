//! `cargo xtask test`: everything that has to hold before a change lands, as one command.

use std::time::Instant;

use crate::sh::{cargo, check};
use crate::{Result, clients, parity, setup, sh, tidy, usage};

/// A stage's name, and what it does.
type Stage = (&'static str, fn() -> Result);

/// In this order: what is quick and fails often comes first.
const STAGES: [Stage; 8] = [
    ("setup", || setup::run(&[])),
    ("fmt", || check(&mut cargo(&["fmt", "--all", "--check"]))),
    ("tidy", || tidy::run(&[])),
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
    ("tests", tests),
    ("release", || parity::release_binary().map(drop)),
    ("parity", || parity::run(&[])),
    ("clients", || clients::run(&[])),
];

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
    let mut times = Vec::new();
    for (name, stage) in STAGES
        .iter()
        .filter(|(stage, _)| arguments.is_empty() || arguments.iter().any(|name| name == stage))
    {
        println!("==> {name}");
        let started = Instant::now();
        stage().inspect_err(|_| {
            println!(
                "==> {name} failed after {:.0} s",
                started.elapsed().as_secs_f64()
            )
        })?;
        times.push(format!("{name} {:.0} s", started.elapsed().as_secs_f64()));
    }
    println!("==> all stages passed: {}", times.join(", "));
    Ok(())
}

/// The workspace's tests; nextest does not run the examples in doc comments, so those come first.
fn tests() -> Result {
    let bun = setup::bun(&setup::tools()?)?;
    let nextest = sh::output(&mut cargo(&["nextest", "--version"])).is_ok();
    let commands: &[&[&str]] = if nextest {
        &[
            &["test", "--workspace", "--doc", "--quiet"],
            &[
                "nextest",
                "run",
                "--workspace",
                "--no-fail-fast",
                "--status-level",
                "slow",
                "--final-status-level",
                "fail",
            ],
        ]
    } else {
        &[&["test", "--workspace", "--no-fail-fast"]]
    };
    for arguments in commands {
        check(cargo(arguments).env("OUTRIGGER_BUN", &bun))?;
    }
    Ok(())
}
