//! `cargo xtask bench`: measures our performance and compares it with OpenCode's (or, for hooks, with a bare socket) in the same run.

mod browser;
mod build;

use std::path::PathBuf;

use crate::sh::{self, Arguments, check, command};
use crate::{Result, parity, setup, usage};

/// Runs `bench turn`, `bench serve`, `bench scale`, `bench browser`, `bench hooks`, `bench audit`, `bench tui`, `bench messages`, `bench
/// runtime`, `bench build` and `bench recovery`: see tests/bench/README.md.
pub(crate) fn run(arguments: &[String]) -> Result {
    let mut arguments = Arguments::new(arguments);
    match arguments.next() {
        Some("turn") => beside_opencode(&mut arguments, false),
        Some("serve") => beside_opencode(&mut arguments, true),
        Some("hooks") => hooks(&mut arguments, None),
        Some("recovery") => hooks(&mut arguments, Some("recovery")),
        Some("audit") => bench_target("outrigger-store", "audit"),
        Some("runtime") => {
            bench_target("outrigger-tools", "runtime")?;
            bench_target("outrigger-agent", "commands")?;
            bench_target("outrigger-store", "audit")
        }
        Some("browser") => browser::run(&mut arguments),
        Some("build") => build::run(&mut arguments),
        Some("scale") => scale(&mut arguments),
        Some("tui") => interface(&mut arguments),
        Some("messages") => messages(&mut arguments),
        Some(other) => usage(format!("there is no benchmark `{other}`")),
        None => usage("which benchmark?"),
    }
}

fn bench_target(package: &str, bench: &str) -> Result {
    check(&mut sh::cargo(&[
        "bench",
        "--package",
        package,
        "--bench",
        bench,
    ]))
}

/// Measures a turn, or with `serve` a running server, ours and OpenCode's.
fn beside_opencode(arguments: &mut Arguments<'_>, serve: bool) -> Result {
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg(if serve {
        "tests/bench/serve.py"
    } else {
        "tests/bench/turn.py"
    });
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--home" if serve => return usage("bench serve takes no `--home`".to_owned()),
            "--runs" | "--home" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench takes no `{other}`")),
        }
    }
    let tools = setup::tools()?;
    let reference = setup::reference()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    python
        .arg("--ours")
        .arg(ours)
        .arg("--reference")
        .arg(reference);
    if serve {
        python
            .arg("--sdk")
            .arg(tools.join("node_modules/@opencode-ai/sdk"));
    } else {
        python.arg("--bun").arg(setup::bun(&tools)?);
    }
    check(&mut python)
}

/// Measures long histories, many sessions, concurrent turns, clients and files, compared with OpenCode.
fn scale(arguments: &mut Arguments<'_>) -> Result {
    let mut binary: Option<PathBuf> = None;
    let mut alone = false;
    let mut python = command("python3");
    python.arg("tests/bench/scale.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--alone" => alone = true,
            "--runs" | "--messages" | "--sessions" | "--crowd" | "--clients" | "--files"
            | "--only" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench scale takes no `{other}`")),
        }
    }
    python.arg("--fill").arg(store_filler()?);
    if !alone {
        python.arg("--reference").arg(setup::reference()?);
    }
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    check(python.arg("--ours").arg(ours))
}

/// Measures merging on one core, a late client of a long conversation, and many clients of a stream.
fn messages(arguments: &mut Arguments<'_>) -> Result {
    let mut binary: Option<PathBuf> = None;
    let mut python = command("python3");
    python.arg("tests/bench/messages.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--runs" | "--messages" | "--clients" | "--rate" | "--seconds" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench messages takes no `{other}`")),
        }
    }
    check(&mut sh::cargo(&[
        "bench",
        "--package",
        "outrigger-kernel",
        "--bench",
        "merge",
    ]))?;
    let fill = store_filler()?;
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    check(python.arg("--ours").arg(ours).arg("--fill").arg(fill))
}

/// Returns the program that writes long histories and many sessions to a store.
fn store_filler() -> Result<PathBuf> {
    check(&mut sh::cargo(&[
        "build",
        "--package",
        "outrigger-store",
        "--example",
        "fill",
    ]))?;
    Ok(parity::target_folder()?.join("debug/examples/fill"))
}

/// Measures the terminal interface: first frame, idle, streaming, compared with OpenCode's.
fn interface(arguments: &mut Arguments<'_>) -> Result {
    let mut binary: Option<PathBuf> = None;
    let mut alone = false;
    let mut python = command("python3");
    python.arg("tests/bench/tui.py");
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => binary = Some(parity::absolute(arguments.value(argument)?)?),
            "--alone" => alone = true,
            "--runs" | "--json" => {
                python.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                python.arg(argument);
            }
            other => return usage(format!("bench tui takes no `{other}`")),
        }
    }
    if !alone {
        python.arg("--reference").arg(setup::reference()?);
    }
    python.arg("--fill").arg(store_filler()?);
    let ours = binary.map_or_else(parity::release_binary, Ok)?;
    check(python.arg("--ours").arg(ours))
}

/// Runs the benchmark of outrigger-plugins, which uses the host's own code with a real plugin process.
fn hooks(arguments: &mut Arguments<'_>, only: Option<&str>) -> Result {
    let mut cargo = sh::cargo(&[
        "bench",
        "--package",
        "outrigger-plugins",
        "--bench",
        "hooks",
        "--",
    ]);
    if let Some(only) = only {
        cargo.args(["--only", only]);
    }
    while let Some(argument) = arguments.next() {
        match argument {
            "--json" => {
                let file = std::path::absolute(arguments.value(argument)?)
                    .or_else(|error| crate::failed(format!("--json: {error}")))?;
                cargo.arg(argument).arg(file);
            }
            "--only" => {
                cargo.arg(argument).arg(arguments.value(argument)?);
            }
            "--check" => {
                cargo.arg(argument);
            }
            other => return usage(format!("bench hooks takes no `{other}`")),
        }
    }
    if std::env::var_os("OUTRIGGER_BUN").is_none() {
        cargo.env("OUTRIGGER_BUN", setup::bun(&setup::tools()?)?);
    }
    check(&mut cargo)
}
