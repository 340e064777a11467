//! Agents: the bundled ones and those of the configuration.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_config::{AgentEntry, AgentMode};
use outrigger_kernel::permission::evaluate;
use outrigger_protocol::Object;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::permission::{Action, Rule};
use outrigger_protocol::permission_names::{DOOM_LOOP, EXTERNAL_DIRECTORY};
use serde_json::{Value, json};

/// The title agent's instructions.
const TITLE: &str = "\
You name conversations. Answer with a title for the conversation below and nothing else: at most 50 characters, one line, no
quotation marks, no full stop, in the language of the user. Name the subject of the work, not the fact that there is a
conversation. Never answer the message itself and never use tools.";

/// The summary agent's instructions.
const SUMMARY: &str = "\
You summarise what was done in a conversation, in two or three sentences, in the first person and without mentioning tools.";

/// The compaction agent's instructions.
const COMPACTION: &str = "\
You write the notes with which another engineer goes on with this conversation, of which nothing else will be left. Say what
the user wants, what was done, in which files, what was decided and why, what is not finished, and what comes next. Keep exact
names, paths, commands and error texts.";

/// The explore agent's instructions.
const EXPLORE: &str = "\
You search codebases. Find what you are asked for with glob, grep and read, run searches side by side, and answer with the
absolute paths and lines where it stands and what you concluded. You cannot change files.";

/// An agent with everything that a turn needs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentInfo {
    /// Name.
    pub name: String,
    /// When to use it, for the agent that delegates.
    pub description: Option<String>,
    /// Who may select it.
    pub mode: AgentMode,
    /// Bundled with the program.
    pub native: bool,
    /// Not selectable by the user.
    pub hidden: bool,
    /// Its prompt, replacing the general one.
    pub prompt: Option<String>,
    /// Its model, replacing the configured one.
    pub model: Option<ModelRef>,
    /// Named set of options of that model.
    pub variant: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    pub top_p: Option<f64>,
    /// Maximum number of model requests in a turn.
    pub steps: Option<u32>,
    /// Provider options.
    pub options: Object,
    /// Rules, defaults first.
    pub permission: Vec<Rule>,
    /// The rules that plugins without the grant for wider ones set; `None` if they equal `permission`.
    pub wanted: Option<Vec<Rule>>,
    /// Position in lists that plugins request.
    pub order: Option<f64>,
    /// Color for clients.
    pub color: Option<String>,
}

impl AgentInfo {
    /// Returns whether it can answer the user directly.
    #[must_use]
    pub fn is_primary(&self) -> bool {
        self.mode != AgentMode::Subagent && !self.hidden
    }

    /// Returns it in the form of `GET /agent`.
    #[must_use]
    pub fn to_wire(&self) -> Value {
        let mut out = json!({
            "name": self.name, "mode": self.mode, "permission": self.permission, "options": self.options, "native": self.native,
        });
        let optional = [
            ("description", json!(self.description)),
            ("prompt", json!(self.prompt)),
            ("model", json!(self.model)),
            ("variant", json!(self.variant)),
            ("temperature", json!(self.temperature)),
            ("topP", json!(self.top_p)),
            ("steps", json!(self.steps)),
            ("color", json!(self.color)),
        ];
        if let Some(fields) = out.as_object_mut() {
            fields.extend(
                optional
                    .into_iter()
                    .filter(|(_, v)| !v.is_null())
                    .map(|(k, v)| (k.to_owned(), v)),
            );
            if !self.native {
                // OpenCode writes null for unset values of a configured agent.
                for key in ["variant", "temperature", "topP", "steps", "color", "hidden"] {
                    fields.entry(key).or_insert(Value::Null);
                }
            }
            if self.hidden {
                fields.insert("hidden".into(), json!(true));
            }
        }
        out
    }
}

fn rule(permission: &str, pattern: &str, action: Action) -> Rule {
    Rule {
        permission: permission.into(),
        pattern: pattern.into(),
        action,
    }
}

/// Returns the default rules, as in OpenCode except for files with keys in the user's settings folders.
fn defaults(places: Places<'_>) -> Vec<Rule> {
    let mut rules = vec![
        rule("*", "*", Action::Allow),
        rule(DOOM_LOOP, "*", Action::Ask),
        rule(EXTERNAL_DIRECTORY, "*", Action::Ask),
    ];
    rules.extend(places.allowed_folders.iter().map(|dir| {
        rule(
            EXTERNAL_DIRECTORY,
            &format!("{}/*", dir.display()),
            Action::Allow,
        )
    }));
    rules.extend([
        rule("question", "*", Action::Deny),
        rule("plan_enter", "*", Action::Deny),
        rule("plan_exit", "*", Action::Deny),
        rule("read", "*", Action::Allow),
    ]);
    for folder in places.settings_folders {
        let below = |name: &str| format!("{}/{name}", folder.display());
        rules.push(rule("read", &below("*"), Action::Ask));
        // Only a few: each is compared with all others if plugins or an untrusted project have rules.
        rules.push(rule("read", &below("*.md"), Action::Allow));
        rules.push(rule("read", &below("skill*/*"), Action::Allow));
    }
    rules.extend([
        rule("read", "*.env", Action::Ask),
        rule("read", "*.env.*", Action::Ask),
        last_default(),
    ]);
    rules
}

/// Returns the last of [`defaults`]: later rules are not defaults.
fn last_default() -> Rule {
    rule("read", "*.env.example", Action::Allow)
}

/// Returns whether a question comes from a rule that is not a default. The first layer is that of an agent.
pub fn asked_by_the_user(evaluate: impl FnOnce(&[&[Rule]]) -> Action, layers: &[&[Rule]]) -> bool {
    let Some((agent, behind)) = layers.split_first() else {
        return false;
    };
    let last = last_default();
    let defaults = agent.iter().position(|rule| *rule == last);
    let written = agent.get(defaults.map_or(0, |at| at + 1)..);
    let mut own: Vec<&[Rule]> = vec![written.unwrap_or_default()];
    own.extend(behind);
    // Without a matching rule it would be asked too, so a rule that allows everything comes first.
    let all = [rule("*", "*", Action::Allow)];
    own.insert(0, &all);
    evaluate(&own) == Action::Ask
}

/// Paths for the default rules.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places<'a> {
    /// Readable and writable folders outside the project (artifacts, temporary files, the config folders).
    pub allowed_folders: &'a [&'a Path],
    /// Folders of the user's settings, of which models may read only texts without approval.
    pub settings_folders: &'a [PathBuf],
    /// Patterns of project files that need approval to read: secrets of the home folder, if that is the project.
    pub secrets: &'a [String],
}

/// Returns all agents by name. `entries` is `agent` of the merged configuration, `global` its `permission`.
#[must_use]
pub fn all(
    entries: &[AgentEntry],
    global: &[Rule],
    places: Places<'_>,
) -> BTreeMap<String, AgentInfo> {
    let secrets = places.secrets.iter();
    let template = Template {
        base: defaults(places),
        secrets: secrets.map(|it| rule("read", it, Action::Ask)).collect(),
        global,
    };
    let bundled = template.bundled().into_iter();
    let mut agents: BTreeMap<String, AgentInfo> =
        bundled.map(|agent| (agent.name.clone(), agent)).collect();
    for entry in entries {
        if entry.disable {
            agents.remove(&entry.name);
            continue;
        }
        let agent = agents
            .entry(entry.name.clone())
            .or_insert_with(|| AgentInfo {
                native: false,
                ..template.agent(&entry.name, AgentMode::All, None, Vec::new())
            });
        apply(agent, entry);
    }
    agents
}

/// Common defaults of all agents.
struct Template<'a> {
    base: Vec<Rule>,
    secrets: Vec<Rule>,
    global: &'a [Rule],
}

impl Template<'_> {
    fn agent(
        &self,
        name: &str,
        mode: AgentMode,
        description: Option<&str>,
        own: Vec<Rule>,
    ) -> AgentInfo {
        // An agent that reads nothing does not get a question.
        let reads = evaluate("read", "any", &[&self.base, &own]) != Action::Deny;
        let secrets = if reads { self.secrets.as_slice() } else { &[] };
        AgentInfo {
            name: name.into(),
            mode,
            description: description.map(Into::into),
            native: true,
            permission: [&self.base, own.as_slice(), secrets, self.global].concat(),
            ..AgentInfo::default()
        }
    }

    /// Returns an agent that the program itself calls, without tools.
    fn hidden(&self, name: &str, prompt: &str) -> AgentInfo {
        AgentInfo {
            prompt: Some(prompt.into()),
            hidden: true,
            ..self.agent(
                name,
                AgentMode::Primary,
                None,
                vec![rule("*", "*", Action::Deny)],
            )
        }
    }

    /// Returns the agent that searches. It reads as others do, files with keys after a question; OpenCode's reads these unasked.
    fn explore(&self) -> AgentInfo {
        let base = self.base.iter().cloned();
        let (reads, others) = base.partition(|it| it.permission == "read");
        let template = Template {
            base: others,
            secrets: self.secrets.clone(),
            global: self.global,
        };
        let mut own = vec![rule("*", "*", Action::Deny)];
        own.extend(EXPLORE_TOOLS.map(|tool| rule(tool, "*", Action::Allow)));
        own.extend::<Vec<Rule>>(reads);
        let description =
            "Searches the codebase quickly and cannot change it. Say how thorough it shall be.";
        AgentInfo {
            prompt: Some(EXPLORE.into()),
            ..template.agent("explore", AgentMode::Subagent, Some(description), own)
        }
    }

    fn bundled(&self) -> [AgentInfo; 7] {
        let allow = |permission: &str| rule(permission, "*", Action::Allow);
        let deny = |permission: &str| rule(permission, "*", Action::Deny);
        [
            self.agent(
                "build",
                AgentMode::Primary,
                Some("The default agent: works with all tools that the permissions allow."),
                vec![allow("question"), allow("plan_enter")],
            ),
            self.agent(
                "plan",
                AgentMode::Primary,
                Some("Reads and plans; changes no files but its plans."),
                vec![
                    allow("question"),
                    allow("plan_exit"),
                    rule("task", "general", Action::Deny),
                    deny("edit"),
                    rule("edit", ".opencode/plans/*.md", Action::Allow),
                ],
            ),
            self.agent(
                "general",
                AgentMode::Subagent,
                Some("Works on its own on a question or a task of several steps. Several can run side by side."),
                vec![deny("todowrite")],
            ),
            self.explore(),
            self.hidden("compaction", COMPACTION),
            AgentInfo {
                temperature: Some(0.5),
                ..self.hidden("title", TITLE)
            },
            self.hidden("summary", SUMMARY),
        ]
    }
}

/// Tools of the agent that searches the codebase, besides `read`.
const EXPLORE_TOOLS: [&str; 6] = ["grep", "glob", "list", "bash", "webfetch", "websearch"];

fn apply(agent: &mut AgentInfo, entry: &AgentEntry) {
    fn replace<T: Clone>(place: &mut Option<T>, value: Option<&T>) {
        if let Some(value) = value {
            *place = Some(value.clone());
        }
    }
    replace(
        &mut agent.model,
        entry.model.as_deref().and_then(ModelRef::parse).as_ref(),
    );
    replace(&mut agent.variant, entry.variant.as_ref());
    replace(&mut agent.prompt, entry.prompt.as_ref());
    replace(&mut agent.description, entry.description.as_ref());
    replace(&mut agent.temperature, entry.temperature.as_ref());
    replace(&mut agent.top_p, entry.top_p.as_ref());
    replace(&mut agent.color, entry.color.as_ref());
    replace(&mut agent.order, entry.order.as_ref());
    replace(
        &mut agent.steps,
        entry.steps.and_then(|n| u32::try_from(n).ok()).as_ref(),
    );
    agent.mode = entry.mode.unwrap_or(agent.mode);
    agent.hidden = entry.hidden.unwrap_or(agent.hidden);
    agent.options.extend(entry.options.clone());
    // The older way to switch tools off.
    for (tool, on) in &entry.tools {
        let action = if *on { Action::Allow } else { Action::Deny };
        let permission = if matches!(tool.as_str(), "write" | "edit" | "patch" | "multiedit") {
            "edit"
        } else {
            tool
        };
        agent.permission.push(rule(permission, "*", action));
    }
    agent.permission.extend(entry.permission.iter().cloned());
}

/// Returns the agent for a prompt that names none: the configured default, else `build`, else the first primary one.
#[must_use]
pub fn default_name(
    agents: &BTreeMap<String, AgentInfo>,
    configured: Option<&str>,
) -> Option<String> {
    let usable = |name: &str| agents.get(name).is_some_and(AgentInfo::is_primary);
    configured
        .filter(|name| usable(name))
        .or_else(|| usable("build").then_some("build"))
        .map(str::to_owned)
        .or_else(|| {
            agents
                .values()
                .find(|agent| agent.is_primary())
                .map(|agent| agent.name.clone())
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_config::OpenCodeConfig;
    use outrigger_kernel::permission::is_disabled;

    fn agents(config: Value) -> BTreeMap<String, AgentInfo> {
        let config =
            OpenCodeConfig::from_value(json!({ "agent": config }), Path::new("/home/u")).unwrap();
        all(
            &config.agent,
            &[rule("bash", "*", Action::Ask)],
            Places {
                allowed_folders: &[Path::new("/tmp/out")],
                secrets: &["/home/u/.ssh".to_owned()],
                ..Places::default()
            },
        )
    }

    #[test]
    fn opencode_names_are_there() {
        let names: Vec<String> = agents(json!({})).into_keys().collect();
        assert_eq!(
            names,
            [
                "build",
                "compaction",
                "explore",
                "general",
                "plan",
                "summary",
                "title"
            ]
        );
    }

    #[test]
    fn who_explores_asks_before_it_reads_keys() {
        let explore = &agents(json!({}))["explore"];
        for (permission, pattern, wanted) in [
            ("read", "src/a.rs", Action::Allow),
            ("read", ".env", Action::Ask),
            ("read", "a/.env.local", Action::Ask),
            ("read", ".env.example", Action::Allow),
            ("grep", "x", Action::Allow),
            ("edit", "src/a.rs", Action::Deny),
        ] {
            let action = evaluate(permission, pattern, &[&explore.permission]);
            assert_eq!(action, wanted, "{permission} {pattern}");
        }
    }

    #[test]
    fn defaults_that_ask_are_nobodys_rules() {
        let agents = agents(json!({"careful": {"permission": {"read": {"secret": "ask"}}}}));
        let ask = |permission, pattern| rule(permission, pattern, Action::Ask);
        for (agent, permission, pattern, session, by_the_user) in [
            ("build", "external_directory", "/etc/x", None, false),
            ("build", "read", "a.env", None, false),
            ("build", "doom_loop", "bash", None, false),
            ("build", "bash", "ls", None, true),
            ("build", "write", "x", None, false),
            ("careful", "read", "secret", None, true),
            ("careful", "read", "a.env", None, false),
            // Set explicitly, although equal to the default.
            ("build", "read", "a.env", Some(ask("read", "*.env")), true),
            (
                "build",
                "bash",
                "ls",
                Some(rule("bash", "ls", Action::Allow)),
                false,
            ),
        ] {
            let session: Vec<Rule> = session.into_iter().collect();
            let layers: [&[Rule]; 2] = [&agents[agent].permission, &session];
            assert_eq!(
                asked_by_the_user(|own| evaluate(permission, pattern, own), &layers),
                by_the_user,
                "{agent} {permission} {pattern}"
            );
        }
    }

    #[test]
    fn rules_come_from_defaults_agent_and_configuration() {
        let agents = agents(
            json!({"review": {"mode":"subagent","tools":{"write":false},"prompt":"R","steps":3},"build":{"disable":true}}),
        );
        assert!(!agents.contains_key("build"));
        let review = agents.get("review").unwrap();
        assert_eq!(
            (review.steps, review.prompt.as_deref(), review.native),
            (Some(3), Some("R"), false)
        );
        assert!(is_disabled("edit", &[&review.permission]));
        assert_eq!(evaluate("bash", "ls", &[&review.permission]), Action::Ask);
        assert_eq!(
            evaluate("read", "a/.env", &[&review.permission]),
            Action::Ask
        );
        assert_eq!(
            evaluate("external_directory", "/tmp/out/x", &[&review.permission]),
            Action::Allow
        );
        assert_eq!(
            evaluate("external_directory", "/etc/x", &[&review.permission]),
            Action::Ask
        );
        assert!(
            is_disabled("write", &[&agents.get("plan").unwrap().permission])
                || evaluate("edit", "a.rs", &[&agents.get("plan").unwrap().permission])
                    == Action::Deny
        );
    }

    #[test]
    fn the_default_agent() {
        let all = agents(json!({"mine": {"mode":"primary"}, "sub": {"mode":"subagent"}}));
        for (configured, want) in [
            (None, "build"),
            (Some("mine"), "mine"),
            (Some("sub"), "build"),
            (Some("nope"), "build"),
        ] {
            assert_eq!(default_name(&all, configured).as_deref(), Some(want));
        }
    }
}
