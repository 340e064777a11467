//! The bundled tools. Names, parameters, permissions and output texts are OpenCode's, since models and plugins know these;
//! descriptions are our own.

mod bash;
mod declared;
mod described;
pub(crate) mod files;
mod html;
mod invalid;
mod lsp;
pub mod optional;
mod python;
mod question;
mod session;
mod skill;
mod table;
mod webfetch;
mod websearch;

pub use bash::{PROXIES, shell_environment, shell_program};
pub use websearch::SearchService;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use outrigger_protocol::tool::ToolSpec;
use serde_json::{Value, json};

use crate::error::ToolError;
use crate::host::{AgentEntry, SkillEntry};
use crate::runtime::ToolRuntime;
use crate::tool::Tool;

/// The source of the bundled tools.
pub(crate) const SOURCE: &str = "builtin";

/// Returns whether a bundled tool has this name, registered or not.
#[must_use]
pub fn is_bundled(name: &str) -> bool {
    static NAMES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let runtime = ToolRuntime::new();
        let options = Options {
            lsp: true,
            search: Some(SearchService {
                url: String::new(),
                key: None,
            }),
            ..Options::default()
        };
        if let Err(error) = register_all(&runtime, &options) {
            tracing::error!("{error}");
        }
        runtime.specs().into_iter().map(|spec| spec.name).collect()
    });
    NAMES.contains(name)
}

/// Settings of the bundled tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Shell of the `bash` tool; default: `$SHELL` if its `-c` works like that of `sh`, otherwise bash, otherwise sh.
    pub shell: Option<std::path::PathBuf>,
    /// Default timeout of a shell command (OpenCode's two minutes).
    pub shell_timeout: Duration,
    /// Names of further variables that shell commands see; a trailing `*` matches any rest.
    pub shell_env: Vec<String>,
    /// A folder in which tmux servers of plugins have their sockets. While one exists, `tmux` in a command finds it, as
    /// plugins have the model look at their terminals (requirement B7, `interactive_bash`).
    pub tmux: Option<std::path::PathBuf>,
    /// Names of bundled tools that are disabled because the bundled plugin that contributes them does not run (D3).
    pub off: Vec<String>,
    /// Registers the tool `lsp` (in OpenCode only with `OPENCODE_EXPERIMENTAL_LSP_TOOL`).
    pub lsp: bool,
    /// The service behind the tool `websearch`; without one the tool is not registered.
    pub search: Option<SearchService>,
}

impl Options {
    /// Returns the timeout that a call sets, or the default.
    fn timeout_of(&self, input: &Value) -> Duration {
        number(input, "timeout").map_or(self.shell_timeout, Duration::from_millis)
    }

    /// Returns the deadline of a call that ends on its own at its timeout and reports what was printed until then.
    fn deadline_of(&self, input: &Value) -> Duration {
        self.timeout_of(input)
            .saturating_add(Duration::from_secs(10))
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shell: None,
            shell_timeout: Duration::from_secs(120),
            shell_env: Vec::new(),
            tmux: None,
            off: Vec::new(),
            lsp: false,
            search: None,
        }
    }
}

/// Names of the bundled tools.
pub const NAMES: [&str; 17] = [
    "invalid",
    "question",
    "bash",
    "read",
    "glob",
    "grep",
    "edit",
    "write",
    "task",
    "webfetch",
    "websearch",
    "todowrite",
    "skill",
    "apply_patch",
    "lsp",
    "table",
    "python",
];

/// Registers the bundled tools in OpenCode's order.
///
/// # Errors
/// [`ToolError::BadSchema`], which would be a bug in this crate.
pub fn register_all(runtime: &ToolRuntime, options: &Options) -> Result<(), ToolError> {
    let tools: [Arc<dyn Tool>; 11] = [
        Arc::new(invalid::invalid()),
        Arc::new(question::Question::new()),
        Arc::new(bash::Bash::new(options.clone())),
        Arc::new(files::read::Read::new()),
        Arc::new(files::find::Glob::new()),
        Arc::new(files::find::Grep::new()),
        Arc::new(files::edit::Edit::new()),
        Arc::new(files::write::Write::new()),
        Arc::new(session::Task::new()),
        Arc::new(webfetch::WebFetch::new()),
        Arc::new(session::TodoWrite::new()),
    ];
    let more: [Arc<dyn Tool>; 2] = [
        Arc::new(skill::Skill::new()),
        Arc::new(files::patch::ApplyPatch::new()),
    ];
    let search = options
        .search
        .clone()
        .map(|it| Arc::new(websearch::WebSearch::new(it)) as Arc<dyn Tool>);
    let lsp = options
        .lsp
        .then(|| Arc::new(lsp::Language::new()) as Arc<dyn Tool>);
    let optional: [Arc<dyn Tool>; 2] = [
        Arc::new(table::TableTool::new()),
        Arc::new(python::Python::new(options.clone())),
    ];
    tools
        .into_iter()
        .chain(search)
        .chain(more)
        .chain(lsp)
        .chain(optional)
        .filter(|tool| !options.off.contains(&tool.spec().name))
        .try_for_each(|tool| {
            let (declared, rooted) = declared::of(&tool.spec().name);
            runtime.register_bundled(tool, declared, rooted)
        })
}

/// Returns the description of a tool for the model: those of `task` and `skill` list the choices.
#[must_use]
pub fn describe(spec: &ToolSpec, agents: &[AgentEntry], skills: &[SkillEntry]) -> String {
    let lines: Vec<String> = match (spec.source.as_str(), spec.name.as_str()) {
        ("builtin", "task") => agents
            .iter()
            .filter(|agent| agent.subagent)
            .map(|agent| format!("- {}: {}", agent.name, agent.description))
            .collect(),
        ("builtin", "skill") => skills
            .iter()
            .map(|skill| format!("- {}: {}", skill.name, skill.description))
            .collect(),
        _ => return spec.description.clone(),
    };
    let what = if spec.name == "task" {
        "Agents"
    } else {
        "Skills"
    };
    if lines.is_empty() {
        return format!("{}\n\n{what}: none at present.", spec.description);
    }
    format!("{}\n\n{what}:\n{}", spec.description, lines.join("\n"))
}

/// Returns whether a model with this name (that of the provider's API) is offered a bundled tool. GPT models that are trained
/// on patches change files with `apply_patch`, all others with `edit` and `write` (OpenCode's rule).
#[must_use]
pub fn suits(spec: &ToolSpec, model: &str) -> bool {
    let patches = model.contains("gpt-") && !model.contains("oss") && !model.contains("gpt-4");
    match (spec.source.as_str(), spec.name.as_str()) {
        ("builtin", "apply_patch") => patches,
        // By name alone, as in OpenCode: this also applies to a plugin's replacement.
        (_, "edit" | "write") => !patches,
        _ => true,
    }
}

// Creates the specification of a bundled tool. `properties` and `required` are those of OpenCode's schema.
fn spec(name: &str, description: &str, mut properties: Value, required: &[&str]) -> ToolSpec {
    described::describe(name, &mut properties);
    ToolSpec {
        name: name.to_owned(),
        description: description.trim().to_owned(),
        input_schema: json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": properties,
            "required": required,
        }),
        read_only: false,
        hidden: false,
        source: SOURCE.to_owned(),
    }
}

// Marks a tool that changes nothing.
fn reading(mut spec: ToolSpec) -> ToolSpec {
    spec.read_only = true;
    spec
}

// The largest integer that OpenCode's schemas allow.
const MAX_SAFE: i64 = 9_007_199_254_740_991;

fn text<'a>(input: &'a Value, key: &str) -> &'a str {
    input.get(key).and_then(Value::as_str).unwrap_or("")
}

// Reads an integer; models also write `5.0`.
fn number(input: &Value, key: &str) -> Option<u64> {
    let value = input.get(key)?;
    value.as_u64().or_else(|| {
        let n = value.as_f64()?;
        (n >= 0.0 && n.fract() == 0.0 && n <= MAX_SAFE as f64).then_some(n as u64)
    })
}
