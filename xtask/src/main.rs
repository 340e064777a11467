//! Tasks of the repository, as `cargo xtask NAME`: building, checking and measuring Outrigger, in Rust so that
//! every contributor can run them. Nothing here is part of the product.

mod bench;
mod ci;
mod clients;
mod dist;
mod extension;
mod fuzz;
mod generate;
mod parity;
mod picture;
mod plugins;
mod sandboxes;
mod setup;
mod sh;
mod soak;
mod tidy;
mod web;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask NAME [options]

  setup                      installs what the tests need: npm packages into .work/tools; Debian packages when root
  test [STAGE..]             everything CI runs: setup fmt clippy tidy tests release parity (only STAGE.. when named);
                             says at the end which tests were skipped and why. Where npm's registry answers, a skipped
                             test of a published plugin is a failure
  ci                         the same as test
  generate                   writes the files that are made from the code or from a table (docs/hooks.md, docs/bypass/*.md, docs/requirements.md)
  matrix                     writes docs/plugin-matrix.csv anew: what published plugins use (needs npm)
  models FILE DAY            writes the table of well known models that the program carries, from a copy of
                             https://models.dev/api.json and the day that it is of
  tidy                       the checks of the repository's own rules
  fmt-docs                   breaks the paragraphs of pages that have lines of more than 120 columns
  parity [--reference | --live] [--only A,B] [--bin PATH] [-v]
         [--show NAMES | --side-by-side NAMES] [--hooks] [--model] [--events] [--whole]
                             runs the scenarios of tests/parity with the release binary and holds them against the
                             committed recordings; what differs has to stand in tests/parity/differences.json;
                             --reference: against a fresh run of OpenCode, --live: of the opencode on PATH; --show runs these scenarios alone and prints where hooks, model
                             requests and events differ, --side-by-side prints them whole, in two columns
  clients [--reference] [--record] [--bin PATH] [-v]
                             calls every method of OpenCode's published client against our server and holds the answers
                             against the committed recording; --reference: against a fresh run of OpenCode;
                             --record: makes the recording anew
  bench turn [--runs N] [--home prepared|empty] [--bin PATH] [--check] [--json FILE]
                             one turn with one tool call, ours and OpenCode: time, CPU, memory
  bench serve [--runs N] [--bin PATH] [--check] [--json FILE]
                             a running server, ours and OpenCode: time until ready, memory, first and second turn
  bench browser [--kinds A,B] [--seeds N] [--tools A,B] [--minutes N] [--bin PROGRAM] [--check]
  bench scale [--runs N] [--messages 10,1000,…] [--sessions 10,10000] [--crowd N] [--clients N] [--files N] [--only PARTS]
              [--alone] [--bin PATH] [--check] [--json FILE]
                             what a long history and many sessions cost: adding a message, a turn, the first turn after a
                             start, lists and pages
  bench tui [--runs N] [--alone] [--bin PATH] [--check] [--json FILE]
  bench messages [--runs N] [--messages N] [--clients N] [--rate N] [--seconds N] [--bin PATH] [--check] [--json FILE]
                             the terminal interface, ours and OpenCode's: first frame, idle, streamed words
  bench hooks [--only hook|transform|curve|host|traces|recovery] [--check] [--json FILE]
                             a hook call beside a bare socket; a large history handed to a plugin in each way there is;
                             the first call behind a hang (`bench recovery` for that alone)
  bench runtime              a tool call through the whole runtime beside a bare function call, a check of the guard, and
                             what `bench audit` measures
  bench audit                what a record of the audit costs, in a batch and waited for
  bench build [--release] [--dist]
                             the build from nothing and after a change of single crates: time, CPU, what was compiled
  dist [--bin PATH] [--out DIR] [--key PATH] [--check]
                             release artifacts, in .work/dist: tarball, .deb, npm packages, SHA256SUMS and its signature by an
                             SSH key; --bin: of this program instead of a build with the dist profile; --check: installs and
                             runs each in a system that has nothing else (needs root, mmdebstrap)
  soak [--minutes N] [--sessions N] [--folders N] [--chance P] [--bin PATH] [--json FILE]
       [--write docs/soak.md]
                             sessions on one server with a plugin that misbehaves at random: no growth of memory and
                             descriptors, no orphan, every turn finished (30 minutes; not part of `test`)
  fuzz-shell [--minutes N] [--seed N]
                             lines of a generator under real shells, traced: what they execute, write and read and the
                             reader of command lines did not name is printed (10 minutes; needs strace)
  plugins [--bin PATH] [--only NAME] [--grant LINE] [--json FILE]
                             one turn with each plugin of the second table of docs/plugins-tried.md, as npm has it: whether it
                             loads, whether the calls run, which grants are named (needs npm; not part of `test`)
  picture [--bin PATH]       makes docs/demo.svg, the picture of the README, from `outrigger demo` in tmux
  web [--check] [--browser BIN [--screens]]
                             the page: npm ci, types, lint, unit tests, build into web/dist, which the next cargo build puts into the
                             program; --check: without the build; --browser: tries the page of this program in Chromium
                             (--screens: and keeps pictures in docs/screens)
  extension [--kernel] [--browser]
                             the browser extension into extension/dist: its kernel as WebAssembly (by rustup's target or Debian's
                             rustc-web), whose answers are held against the native ones; --kernel: that alone; --browser: tries
                             it in Chromium
  sandboxes [--bin PATH] [--only NAMES] [--write] [-v]
                             the same shell commands in the sandboxes of Outrigger, Codex and Claude Code, judged by their
                             effect; --write: into docs/sandboxes.md (needs npm, bubblewrap, socat; not part of `test`)

Exit code: 0 done; 1 a check, a test or a threshold failed; 2 wrong use.
";

/// An error, for the user at the terminal.
#[derive(Debug)]
enum Error {
    /// The command line is invalid.
    Usage(String),
    /// A check, a test or an installation failed.
    Failed(String),
}

type Result<T = ()> = std::result::Result<T, Error>;

fn failed<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Failed(message.into()))
}

fn usage<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::Usage(message.into()))
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Failed(message)) => {
            eprintln!("xtask: {message}");
            ExitCode::from(1)
        }
        Err(Error::Usage(message)) => {
            eprintln!("xtask: {message}\n\n{HELP}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &[String]) -> Result {
    let Some((name, rest)) = arguments.split_first() else {
        return usage("which task?");
    };
    match name.as_str() {
        "setup" => setup::run(rest),
        "test" | "ci" => ci::run(rest),
        "generate" => generate::run(rest),
        "matrix" => matrix(rest),
        "tidy" => tidy::run(rest),
        "fmt-docs" => tidy::format_pages(rest),
        "models" => generate::models::run(rest),
        "parity" => parity::run(rest),
        "plugins" => plugins::run(rest),
        "picture" => picture::run(rest),
        "bench" => bench::run(rest),
        "dist" => dist::run(rest),
        "soak" => soak::run(rest),
        "fuzz-shell" => fuzz::shell(rest),
        "clients" => clients::run(rest),
        "sandboxes" => sandboxes::run(rest),
        "web" => web::run(rest),
        "extension" => extension::run(rest),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => usage(format!("there is no task `{other}`")),
    }
}

/// Lets the test that checks the matrix write it instead.
fn matrix(arguments: &[String]) -> Result {
    if let Some(word) = arguments.first() {
        return usage(format!("matrix takes no `{word}`"));
    }
    let mut test = sh::cargo(&[
        "nextest",
        "run",
        "--package",
        "outrigger-cli",
        "every_published_plugin",
    ]);
    sh::check(test.env("OUTRIGGER_WRITE_MATRIX", "1"))
}
