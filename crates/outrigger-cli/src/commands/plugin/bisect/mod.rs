//! `outrigger plugin bisect`: finds the plugin, or the combination of plugins, that breaks a command.
//!
//! The command is run with some of the plugins disabled by a variable that every Outrigger in it obeys ([`LEFT_OUT`]).

mod search;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use outrigger_agent::{AgentError, Boot, ProjectLocation};
use outrigger_config::{LEFT_OUT, PluginSpec};
use outrigger_sandbox::ledger::Ledger;
use outrigger_sandbox::{Output, Spawner, Spec};

use self::search::{Trials, Verdict, without};
use crate::args::{BisectArgs, Global};
use crate::exit;
use crate::failure::Failure;
use crate::terminal::{Paint, err, out};

/// Bytes kept of each stream of the command, to show how it failed.
const KEPT: usize = 64 << 10;
/// Lines of them that are shown.
const SHOWN: usize = 12;
/// Exit code with which a command reports an undecided result, as for `git bisect run`.
const CANNOT_TELL: i32 = 125;

/// A plugin that may be the culprit.
struct Candidate {
    name: String,
    key: String,
    spec: PluginSpec,
}

/// Runs the command; 0 if a culprit was found.
pub(crate) async fn bisect(global: &Global, args: BisectArgs) -> Result<u8, Failure> {
    let boot = super::listing::listing(global)?;
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
    let candidates = candidates(config.tool_files.iter().chain(&config.plugins));
    if candidates.is_empty() {
        return Err(Failure::new(
            "bisect.no_plugins",
            "no plugin is configured here, so none can be the culprit",
            Some(
                "`outrigger plugin list` shows what is configured; --dir names another folder"
                    .into(),
            ),
        ));
    }
    let bench = Bench {
        spawner: spawner(&boot)?,
        boot: &boot,
        args: &args,
        candidates: &candidates,
        paint: Paint::for_stderr(),
    };
    let mut number = 0;
    let mut trials = Trials::default();
    let mut trial = async |set: &[usize]| {
        number += 1;
        bench.run(number, set).await
    };
    let all: Vec<usize> = (0..candidates.len()).collect();
    clear_cut(&mut trials, &all, &mut trial).await?;
    let mut culprits = Vec::new();
    let mut rest = all;
    // After one cause is removed there may be another.
    while trials.of(&rest, &mut trial).await? == Verdict::Bad {
        let culprit = trials.smallest(rest.clone(), &mut trial).await?;
        rest = without(&rest, &culprit);
        culprits.push(culprit);
    }
    out(&report(&candidates, &culprits, trials.unclear()));
    Ok(0)
}

/// Ends the search if there is nothing to find.
async fn clear_cut(
    trials: &mut Trials,
    all: &[usize],
    trial: &mut impl AsyncFnMut(&[usize]) -> Result<Verdict, Failure>,
) -> Result<(), Failure> {
    let nothing = |code: &str, message: &str, hint: &str| {
        Err(Failure::new(code, message, Some(hint.to_owned())).exiting(exit::FAILED))
    };
    match trials.of(all, trial).await? {
        Verdict::Bad => {}
        Verdict::Good => {
            return nothing(
                "bisect.good_with_all",
                "the command succeeds with all plugins enabled",
                "if it fails only sometimes, let it run several times and exit with 1 when one run fails",
            );
        }
        Verdict::Skip => {
            return nothing(
                "bisect.cannot_tell",
                "the command exited with 125 (skip) with all plugins enabled",
                "it must fail with another exit code when all plugins are enabled",
            );
        }
    }
    match trials.of(&[], trial).await? {
        Verdict::Good => Ok(()),
        Verdict::Bad => nothing(
            "bisect.bad_with_none",
            "the command also fails without plugins, so no plugin is the cause",
            "run it with --pure to see why; for a command that works in another folder, use --dir",
        ),
        Verdict::Skip => nothing(
            "bisect.cannot_tell",
            "the command exited with 125 (skip) without plugins",
            "it must succeed without plugins",
        ),
    }
}

/// Returns a spawner: processes left by a killed bisect are ended by the next start.
fn spawner(boot: &Boot) -> Result<Spawner, Failure> {
    let made = Spawner::new().and_then(|spawner| {
        Ok(spawner.with_ledger(Ledger::open(boot.folders.data.join("processes"))?))
    });
    Ok(made.map_err(AgentError::from)?)
}

fn candidates<'p>(plugins: impl Iterator<Item = &'p PluginSpec>) -> Vec<Candidate> {
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    plugins
        .map(|spec| {
            let name = outrigger_plugins::name_of(spec);
            // Distinguishes plugins of the same name as the list of plugins does.
            let alike = known.entry(name.clone()).or_default();
            *alike += 1;
            Candidate {
                name: if *alike > 1 {
                    format!("{name}#{alike}")
                } else {
                    name
                },
                key: spec.key(),
                spec: spec.clone(),
            }
        })
        .collect()
}

/// The setup of the trials.
struct Bench<'a> {
    spawner: Spawner,
    boot: &'a Boot,
    args: &'a BisectArgs,
    candidates: &'a [Candidate],
    paint: Paint,
}

impl Bench<'_> {
    /// Runs the command with only these plugins.
    async fn run(&self, number: usize, set: &[usize]) -> Result<Verdict, Failure> {
        let left_out: Vec<&str> = self
            .candidates
            .iter()
            .enumerate()
            .filter(|(index, _)| !set.contains(index))
            .map(|(_, plugin)| plugin.key.as_str())
            .collect();
        let (program, args) = self.args.command.split_first().ok_or_else(|| {
            Failure::usage(
                "which command?",
                Some("outrigger plugin bisect -- COMMAND".into()),
            )
        })?;
        let spec = Spec::new(program)
            .args(args)
            .cwd(&self.boot.directory)
            .vars(&self.boot.env)
            .var(LEFT_OUT, serde_json::json!(left_out).to_string())
            .allow_new_privs()
            .label("bisect");
        let timeout = Duration::from_secs(self.args.timeout);
        err(&format!(
            "run {number:<3} with {:<40} ",
            names(self.candidates, set)
        ));
        let output = outrigger_sandbox::run(&self.spawner, spec, timeout, KEPT).await;
        let output = output.map_err(|error| {
            err("not run\n");
            AgentError::from(error)
        })?;
        let (verdict, why) = judged(&output, self.args.timeout);
        let word = match verdict {
            Verdict::Good => self.paint.good("good"),
            Verdict::Skip => self.paint.dim("skip"),
            Verdict::Bad => format!("{} ({why})", self.paint.bad("bad")),
        };
        err(&format!("{word}\n"));
        if self.args.show || (number == 1 && verdict == Verdict::Bad) {
            err(&self.paint.dim(&last_lines(&output)));
        }
        Ok(verdict)
    }
}

fn judged(output: &Output, seconds: u64) -> (Verdict, String) {
    match output.exit.code {
        _ if output.timed_out => (Verdict::Bad, format!("not done after {seconds} s")),
        Some(0) => (Verdict::Good, String::new()),
        Some(CANNOT_TELL) => (Verdict::Skip, String::new()),
        _ => (Verdict::Bad, output.exit.to_string()),
    }
}

/// Returns the end of a run's output, indented.
fn last_lines(output: &Output) -> String {
    let text = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let lines: Vec<&str> = text.iter().flat_map(|text| text.lines()).collect();
    let skipped = lines.len().saturating_sub(SHOWN);
    lines
        .into_iter()
        .skip(skipped)
        .fold(String::new(), |text, line| text + "      | " + line + "\n")
}

fn names(candidates: &[Candidate], set: &[usize]) -> String {
    let names: Vec<&str> = set
        .iter()
        .filter_map(|index| candidates.get(*index))
        .map(|plugin| plugin.name.as_str())
        .collect();
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    }
}

fn report(candidates: &[Candidate], culprits: &[Vec<usize>], unclear: bool) -> String {
    let mut text = String::new();
    for (number, culprit) in culprits.iter().enumerate() {
        let who = names(candidates, culprit);
        let again = if number == 0 {
            ""
        } else {
            "It still fails without that: "
        };
        let _ = match culprit.as_slice() {
            [_] => writeln!(text, "{again}{who} breaks the command."),
            _ => writeln!(
                text,
                "{again}{who} break the command together; disabling any one of them fixes it."
            ),
        };
        for plugin in culprit.iter().filter_map(|index| candidates.get(*index)) {
            let file = shown(&plugin.spec.declared_in);
            let _ = writeln!(
                text,
                "  {}  from {} in {file}",
                plugin.name, plugin.spec.spec
            );
        }
    }
    let one_of_each = culprits
        .iter()
        .filter_map(|set| candidates.get(*set.first()?));
    let tables: Vec<String> = one_of_each
        .map(|plugin| format!("[plugins.\"{}\"]", plugin.name))
        .collect();
    let _ = writeln!(
        text,
        "To go on without: `disabled = true` under {} in outrigger.toml.",
        tables.join(" and ")
    );
    if unclear {
        text.push_str("Some runs were skipped (exit code 125), so the set may be too large.\n");
    }
    text
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
