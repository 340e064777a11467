//! One answer for a file on every path: every tool and every route that shows a file, by every form of rule and every name of
//! the file, and the same for commands in the sandbox.
//!
//! The expectation does not come from the code: each file contains a unique text that no call names. If a rule denies the file,
//! the text must be in no answer; for a file without a rule it must be in all of them.

mod changes;
mod forms;
mod probes;
mod processes;
mod routes;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use outrigger_agent::Answering;
use serde_json::{Value, json};

use crate::harness::Harness;
use crate::support::git;
use forms::{Form, Location, OF_FILES, OF_FOLDERS, Victim};
use outrigger_test_support::model::{Mock, done, turn};
use probes::Probe;

/// If set, only some forms of rules are tried: one for each place, for links, and for each probe.
pub(crate) const FEW: &str = "OUTRIGGER_IT_FEW_FORMS";

/// The number of calls in one turn.
const CALLS: usize = 250;

/// Files that the sandbox of commands hides by itself are not tested here.
const SETTINGS: &str = "
[tools]
sandbox = \"full\"
[plugins.core-table]
enabled = true
[plugins.core-python]
enabled = true
";

/// A rule under test.
#[derive(Clone, Copy)]
struct Case {
    permission: &'static str,
    action: &'static str,
    forms: &'static [Form],
}

/// An agent with a file for every form, and some files without a rule.
struct Matrix {
    harness: Harness,
    victims: Vec<Victim>,
    case: Case,
    turns: Cell<usize>,
}

impl Matrix {
    async fn new(case: Case) -> Self {
        Self::build(case, false).await
    }

    /// Creates one with settings that name its files as instructions. Each request of a model reads and checks all of these, so
    /// that only what is about them uses it.
    async fn with_instructions(case: Case) -> Self {
        Self::build(case, true).await
    }

    async fn build(case: Case, has_instructions: bool) -> Self {
        let root = tempfile::Builder::new()
            .prefix("outrigger-matrix-")
            .tempdir()
            .unwrap();
        let base = root.path().canonicalize().unwrap();
        let forms = case.forms.iter().filter(|form| {
            let few = [
                "relative",
                "any folder",
                "hard link",
                "outside, relative",
                "home, star",
                "star",
            ];
            !is_few() || few.contains(&form.what)
        });
        let of_rule = forms.clone().map(|form| (form, false));
        let free = forms.filter(|form| {
            matches!(
                form.what,
                "relative" | "folder, deep" | "star" | "outside, relative" | "home, star"
            )
        });
        let all = of_rule.chain(free.map(|form| (form, true))).enumerate();
        let victims: Vec<Victim> = all
            .map(|(n, (form, is_free))| Victim::make(&base, n + 10, form, is_free))
            .collect();
        let mut rules = serde_json::Map::from_iter([("*".to_owned(), json!("allow"))]);
        let patterns = victims.iter().filter_map(|it| it.pattern.clone());
        rules.extend(patterns.map(|pattern| (pattern, json!(case.action))));
        let mut permission = json!({ "*": "allow", "external_directory": "allow" });
        permission[case.permission] = rules.into();
        let instructions: Vec<&str> = victims
            .iter()
            .flat_map(|it| it.names.iter())
            .filter(|(kind, _)| {
                has_instructions
                    && matches!(*kind, "relative" | "link" | "linked folder" | "hard link")
            })
            .map(|(_, name)| name.as_str())
            .collect();
        let config = json!({
            "permission": permission, "instructions": instructions, "command": { "look": { "template": "see $ARGUMENTS" } },
        });
        let (nobody, lsp) = (
            Answering::Refuse,
            [
                ("OPENCODE_EXPERIMENTAL_LSP_TOOL", "1"),
                ("OPENCODE_ENABLE_EXA", "1"),
            ],
        );
        let harness =
            Harness::in_place(root, Mock::new([done()]), config, nobody, &lsp, |project| {
                let settings = project.join("../home/.config/outrigger");
                std::fs::create_dir_all(&settings).unwrap();
                std::fs::write(settings.join("outrigger.toml"), SETTINGS).unwrap();
                repository(project);
            })
            .await;
        Self {
            harness,
            victims,
            case,
            turns: Cell::new(0),
        }
    }

    /// Returns the tools' answers to these calls, by number.
    async fn call(&self, calls: Vec<Value>) -> BTreeMap<usize, String> {
        let mut answers = BTreeMap::new();
        let tagged = calls.into_iter().enumerate().map(|(n, mut call)| {
            call["id"] = json!(format!("n{n}"));
            call
        });
        // Models with `apply_patch` get no other tool that changes files.
        let (patches, others): (Vec<Value>, Vec<Value>) =
            tagged.partition(|call| call["name"] == "apply_patch");
        self.call_as("m1", &others, &mut answers).await;
        self.call_as("gpt-5", &patches, &mut answers).await;
        answers
    }

    async fn call_as(&self, model: &str, calls: &[Value], answers: &mut BTreeMap<usize, String>) {
        for chunk in calls.chunks(CALLS) {
            let first = answers.len();
            let mark = format!("part {} of the matrix", self.turns.get());
            self.turns.set(self.turns.get() + 1);
            self.harness.mock.when(&mark, turn(chunk.to_vec()));
            let session = self.harness.session().await;
            let text = [json!({ "type": "text", "text": mark })];
            let model = json!({ "providerID": "mock", "modelID": model });
            let prompt = json!({ "parts": text, "model": model });
            let path = format!("/session/{session}/message");
            self.harness.ok("POST", &path, prompt).await;
            for part in self.harness.parts(&session, "tool").await {
                let id = part["callID"].as_str().unwrap();
                let Some(n) = id.strip_prefix('n').and_then(|n| n.parse().ok()) else {
                    panic!("{part}");
                };
                let mut state = part["state"].clone();
                state["input"] = Value::Null;
                answers.insert(n, state.to_string());
            }
            assert_eq!(answers.len(), first + chunk.len(), "{mark}");
        }
    }

    fn denies(&self) -> bool {
        self.case.action == "deny"
    }

    /// Checks whether the rules prevent reading it.
    fn keeps(&self, victim: &Victim) -> bool {
        self.case.permission != "edit" && victim.pattern.is_some()
    }
}

pub(crate) fn is_few() -> bool {
    std::env::var_os(FEW).is_some()
}

/// Creates a repository in which everything is committed.
fn repository(project: &Path) {
    git(project, &["init", "-q", "-b", "main"]);
    git(project, &["add", "-A"]);
    git(project, &["commit", "-qm", "first"]);
}

/// All faults found, since they seldom come alone.
#[derive(Default)]
struct Faults(Vec<String>, usize);

impl Faults {
    /// Compares one answer with the expectation.
    fn hold(&mut self, victim: &Victim, by: &str, is_kept: bool, answer: &str) {
        self.1 += 1;
        let tells = answer.contains(&victim.canary());
        if tells == is_kept {
            let wrong = if tells { "is shown" } else { "is not shown" };
            let rule = victim.pattern.as_deref().unwrap_or("no rule");
            let what = victim.what;
            self.0
                .push(format!("{what} ({rule}) by {by} {wrong}: {answer:.400}"));
        }
    }

    /// The name of a denied file is shown only to callers that named it themselves.
    fn hold_name(&mut self, victim: &Victim, by: &str, is_kept: bool, answer: &str) {
        self.1 += 1;
        let tells = answer.contains(&victim.file);
        if tells && is_kept || !tells && victim.pattern.is_none() {
            let what = victim.what;
            self.0
                .push(format!("{what}: its name by {by}: {answer:.400}"));
        }
    }

    /// Checks an answer that need not show files for denied ones; with `names`, their names must not be in it either.
    fn hold_absent(&mut self, victim: &Victim, by: &str, is_kept: bool, names: bool, answer: &str) {
        self.1 += 1;
        let is_named = names && victim.file_names().any(|name| answer.contains(&name));
        if is_kept && (answer.contains(&victim.canary()) || is_named) {
            let what = victim.what;
            let wrong = if is_named { "is named" } else { "is shown" };
            self.0
                .push(format!("{what} by {by} {wrong}: {answer:.400}"));
        }
    }

    /// Checks whether a file is unchanged if a rule requires it, and changed otherwise. Restores it.
    fn hold_content(&mut self, victim: &Victim, by: &str, is_kept: bool) {
        self.1 += 1;
        let text = std::fs::read_to_string(&victim.path).unwrap_or_default();
        if (text == victim.text()) != is_kept {
            let wrong = if is_kept { "changed" } else { "did not change" };
            let rule = victim.pattern.as_deref().unwrap_or("no rule");
            let what = victim.what;
            self.0.push(format!("{by} {wrong} {what} ({rule}): {text}"));
        }
        std::fs::write(&victim.path, victim.text()).unwrap();
    }

    fn none(self, least: usize) {
        let (faults, held) = (self.0, self.1);
        let least = if is_few() { least / 10 } else { least };
        assert!(
            faults.is_empty(),
            "{} of {held}:\n{}",
            faults.len(),
            faults.join("\n")
        );
        assert!(held >= least, "{held} answers were looked at");
    }
}

async fn read_by_everybody(case: Case, least: usize) {
    let matrix = Matrix::new(case).await;
    let case_has_project = matrix
        .victims
        .iter()
        .any(|it| it.place == Location::Project);
    let mut faults = Faults::default();
    probes::every_tool_is_known(&matrix.harness).await;
    for probe in [
        Probe::Tools,
        Probe::Names,
        Probe::Routes,
        Probe::Prompts,
        Probe::Commands,
        Probe::Git,
        Probe::Patches,
        Probe::Differences,
    ] {
        probe.run(&matrix, &mut faults).await;
    }
    probes::instructions(case, &mut faults).await;
    // If no file of the project is denied, there is no patch to send.
    if case_has_project {
        routes::all_were_tried(&matrix, &mut faults);
    }
    faults.none(least);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_deny_rules_hide_files_from_every_route() {
    let (permission, action, forms) = ("read", "deny", OF_FILES);
    read_by_everybody(
        Case {
            permission,
            action,
            forms,
        },
        2000,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_external_directory_denies_nobody_tells() {
    let (permission, action, forms) = ("external_directory", "deny", OF_FOLDERS);
    read_by_everybody(
        Case {
            permission,
            action,
            forms,
        },
        500,
    )
    .await;
}

/// Without anyone to ask, a file with an `ask` rule is shown by no tool and added to no prompt. A client, and a command in the
/// sandbox, need no approval.
#[tokio::test(flavor = "multi_thread")]
async fn no_tool_shows_what_needs_approval() {
    for (permission, forms, least) in [
        ("read", OF_FILES, 700),
        ("external_directory", OF_FOLDERS, 200),
    ] {
        let action = "ask";
        let case = Case {
            permission,
            action,
            forms,
        };
        let matrix = Matrix::new(case).await;
        let mut faults = Faults::default();
        for probe in [Probe::Tools, Probe::Prompts] {
            probe.run(&matrix, &mut faults).await;
        }
        probes::instructions(case, &mut faults).await;
        faults.none(least);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_edit_denies_nobody_changes() {
    let (permission, action, forms) = ("edit", "deny", OF_FILES);
    let matrix = Matrix::new(Case {
        permission,
        action,
        forms,
    })
    .await;
    let mut faults = Faults::default();
    changes::by_commands(&matrix, &mut faults).await;
    changes::by_tools(&matrix, &mut faults).await;
    changes::by_clients(&matrix, &mut faults).await;
    faults.none(150);
}
