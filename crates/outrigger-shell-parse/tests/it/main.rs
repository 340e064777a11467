//! Compares what shells really execute, write and read with what was parsed from their lines: a corpus, and generated lines. Programs
//! are recorded by `strace`; without it, or if the system forbids it, the tests are skipped with a note.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

mod compare;
mod generate;
mod trace;

use std::time::{Duration, Instant};

use compare::Shell;

/// The number of generated lines per shell in every test run; each takes about 15 ms.
const LINES: usize = 1200;
/// The longest time for them on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(90);
/// The same lines in every run; `OUTRIGGER_FUZZ_SEED` selects others.
const SEED: u64 = 1;

const CORPUS: &str = include_str!("corpus.txt");

/// Returns the lines of the corpus, with the usual meaning of `\n`, `\t` and `\\`.
fn corpus() -> Vec<String> {
    let lines = CORPUS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("##"));
    lines
        .map(|line| {
            let mut text = String::new();
            let mut escaped = false;
            for c in line.chars() {
                match (escaped, c) {
                    (false, '\\') => {
                        escaped = true;
                        continue;
                    }
                    (true, 'n') => text.push('\n'),
                    (true, 't') => text.push('\t'),
                    (_, c) => text.push(c),
                }
                escaped = false;
            }
            text
        })
        .collect()
}

/// Returns the shells of this machine.
fn shells() -> Vec<Shell> {
    let names = ["bash", "dash", "zsh"];
    let all: Vec<Shell> = names.into_iter().filter_map(Shell::new).collect();
    if all.is_empty() {
        outrigger_test_support::skip::skip(
            "no shell can be traced: strace is not there or not allowed",
        );
    }
    all
}

fn check(shell: &Shell, line: &str) -> bool {
    match shell.disagrees(line) {
        None => false,
        Some(why) => panic!("{}: {line:?}: {why}", shell.name),
    }
}

#[test]
fn shells_run_what_was_read_of_the_corpus() {
    for shell in shells() {
        for line in corpus() {
            check(&shell, &line);
        }
    }
}

#[test]
fn shells_run_what_was_read_of_generated_lines() {
    let seed = set("OUTRIGGER_FUZZ_SEED").unwrap_or(SEED);
    let compare = |shell: Shell| {
        let begun = Instant::now();
        let mut lines = generate::Lines::new(seed, corpus());
        let mut run = 0;
        while run < LINES && begun.elapsed() < MAX_TIME {
            let line = lines.next_line();
            if compare::may_be_run(&line) {
                check(&shell, &line);
                run += 1;
            }
        }
        if run < LINES {
            println!("{}: {run} of {LINES} lines in {MAX_TIME:?}", shell.name);
        }
        assert!(
            run >= LINES / 2,
            "{}: only {run} lines were run",
            shell.name
        );
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = shells()
            .into_iter()
            .map(|shell| scope.spawn(move || compare(shell)))
            .collect();
        let failed = threads.into_iter().filter_map(|it| it.join().err());
        assert_eq!(failed.count(), 0, "seed {seed}");
    });
}

/// A rule that denies is checked against what is found in a line that is not understood.
#[test]
fn bash_runs_nothing_that_is_hidden_in_lines_read_to_their_end() {
    let seed = set("OUTRIGGER_FUZZ_SEED").unwrap_or(SEED);
    let Some(bash) = shells().into_iter().find(|it| it.name == "bash") else {
        return;
    };
    let mut lines = generate::Lines::new(seed, corpus());
    let most = set("OUTRIGGER_FUZZ_LINES").unwrap_or(300);
    let generated = std::iter::repeat_with(|| lines.next_line());
    let lines = corpus().into_iter().chain(generated);
    let lines = lines.filter(|line| compare::is_read_to_its_end(line));
    let mut hidden = Vec::new();
    for line in lines.take(usize::try_from(most).unwrap()) {
        let why = bash.hides(&line);
        hidden.extend(why.map(|why| format!("{line:?}: {why}")));
    }
    assert!(hidden.is_empty(), "seed {seed}: {}", hidden.join("\n"));
}

/// Returns a number from the environment.
fn set(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// `cargo xtask fuzz-shell`: prints its findings and continues until `OUTRIGGER_FUZZ_MINUTES` have passed.
#[test]
#[ignore = "takes as long as it is given; run by `cargo xtask fuzz-shell`"]
fn fuzz() {
    let minutes = set("OUTRIGGER_FUZZ_MINUTES").unwrap_or(1);
    let seed = set("OUTRIGGER_FUZZ_SEED").unwrap_or(2);
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let shells = shells();
    let mut lines = generate::Lines::new(seed, corpus());
    let (mut made, mut run, mut found) = (0u64, 0u64, 0u64);
    while Instant::now() < end && !shells.is_empty() {
        let line = lines.next_line();
        made += 1;
        if !compare::may_be_run(&line) {
            continue;
        }
        for shell in &shells {
            run += 1;
            if let Some(why) = shell.disagrees(&line) {
                found += 1;
                println!("FOUND {} {line:?} {why}", shell.name);
            }
        }
    }
    let names: Vec<&str> = shells.iter().map(|it| it.name).collect();
    println!(
        "{names:?}, seed {seed}: {made} lines made, {run} runs of those that are understood, {found} disagreements"
    );
    assert_eq!(found, 0);
}
