//! Command hooks of `.claude/settings.json` and similar files: which of them may run, and what they see of their sessions.
//! `outrigger-plugins` runs them.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_config::claude_hooks::{CommandHook, HookFile, HookScope};
use outrigger_config::{ConfigError, HookPrograms, Loaded};
use outrigger_permissions::allowed_hooks::AllowedHooks;
use outrigger_permissions::project_programs::ProjectPrograms;
use outrigger_plugins::{CommandFile, CommandHooks, CommandHost, SessionAbout};
use outrigger_protocol::history::History;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind, ToolState};
use outrigger_sandbox::{Policy, Spawner};
use serde_json::{Value, json};

use crate::boot::options::Boot;
use crate::permission::answering::Answering;
use crate::plugin_api::host_bridge::Bridge;

/// The files with command hooks of a project, with the project programs that the permitted ones execute.
pub(crate) struct FoundHooks {
    files: Vec<CommandFile>,
    programs: Vec<Programs>,
}

struct Programs {
    file: PathBuf,
    scope: HookScope,
    hook: CommandHook,
    executed: HookPrograms,
}

impl FoundHooks {
    /// Finds the files named in the settings. Reads the disk.
    pub(crate) fn find(boot: &Boot, config: &Loaded) -> Self {
        let (files, problems) = config.claude_hooks();
        for problem in problems {
            tracing::warn!("[hooks] {problem}");
        }
        let allowed = AllowedHooks::new(&boot.folders);
        let file = |hooks: HookFile| CommandFile {
            allowed: allowed.holds(&hooks) || config.lets_hooks(&hooks),
            is_pure: boot.pure,
            hooks,
        };
        let files: Vec<CommandFile> = files.into_iter().map(file).collect();
        let programs = |file: &HookFile| {
            let of_hook = |hook: &CommandHook| Programs {
                file: file.file.clone(),
                scope: file.scope,
                hook: hook.clone(),
                executed: config.hook_programs(file, hook),
            };
            file.hooks.iter().map(of_hook).collect::<Vec<_>>()
        };
        let run = files.iter().filter(|it| it.allowed);
        let programs = run.flat_map(|it| programs(&it.hooks)).collect();
        Self { files, programs }
    }

    /// Returns the project programs that they execute.
    pub(crate) fn executed(&self) -> impl Iterator<Item = &HookPrograms> {
        self.programs.iter().map(|it| &it.executed)
    }

    /// Returns the command hooks to load; `None` if there are none.
    pub(crate) fn load(
        self,
        boot: &Boot,
        bridge: &Arc<Bridge>,
        spawner: Spawner,
        projects: &Arc<ProjectPrograms>,
    ) -> Option<CommandHooks> {
        if self.files.is_empty() {
            return None;
        }
        let (programs, projects) = (self.programs, Arc::clone(projects));
        let mut environment = outrigger_tools::builtin::shell_environment(&[], None);
        if !projects.is_trusted() {
            for (_, path) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
                *path = outrigger_sandbox::host_path::without(path);
            }
        }
        Some(CommandHooks {
            files: self.files,
            environment,
            permission_mode: match boot.answering {
                Answering::Allow => "bypassPermissions",
                Answering::Ask | Answering::Refuse => "default",
            },
            host: Arc::clone(bridge) as Arc<dyn CommandHost>,
            spawner,
            changed: Arc::new(move |file, hook| {
                let mut of_file = programs.iter().filter(|it| it.file == file);
                let it = of_file.find(|it| it.hook == *hook)?;
                projects.hook_change(&it.executed, it.scope)
            }),
        })
    }
}

/// That no file which may hold a guard of this user's is passed over since it cannot be read.
///
/// # Errors
/// `config.hooks`.
pub(crate) fn check(boot: &Boot, config: &Loaded) -> Result<(), ConfigError> {
    let (files, _) = config.claude_hooks();
    let allowed = AllowedHooks::new(&boot.folders);
    // A file that was not accepted does not run, whatever it contains.
    let counts = |file: &HookFile| match file.scope {
        HookScope::User => true,
        HookScope::Project | HookScope::Local if config.projects_hooks_count() => true,
        _ => allowed.knows(&file.file),
    };
    let broken = files.iter().find_map(|file| {
        let what = file.unreadable.as_ref()?;
        (what.may_guard && counts(file)).then(|| ConfigError::Hooks {
            file: file.file.display().to_string(),
            why: what.why.clone(),
        })
    });
    broken.map_or(Ok(()), Err)
}

impl CommandHost for Bridge {
    /// Applies the sandbox of shell tool commands, under the rules of the configuration and of the session.
    fn confine<'a>(
        &'a self,
        session: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Policy>, String>> {
        Box::pin(async move {
            let Some(state) = self.state() else {
                return Err("the agent is not ready yet".to_owned());
            };
            let mut rules = state.config.config.permission.clone();
            if let Some(id) = session {
                let own = state.session_rules(&SessionId(id.to_owned()));
                rules.extend(own.map_err(|error| error.to_string())?);
            }
            let session = session.map(|id| SessionId(id.to_owned()));
            let sandboxed = state.confine(session.as_ref(), rules).await;
            sandboxed.map_err(|error| format!("no command is started: {error} ({})", error.hint()))
        })
    }

    fn session(&self, id: &str) -> SessionAbout {
        let Some(state) = self.state() else {
            return SessionAbout::default();
        };
        let id = SessionId(id.to_owned());
        let session = state.store.session(&id).ok().flatten();
        let history = state.history(&id).unwrap_or_default();
        let asked = history
            .iter()
            .rev()
            .filter_map(|message| message.stored())
            .find_map(|message| match &message.info {
                MessageInfo::User(message) => Some(message.agent.clone()),
                MessageInfo::Assistant(_) => None,
            });
        let (parent, agent) = session.map_or((None, None), |it| (it.parent_id, it.agent));
        SessionAbout {
            child: parent.is_some(),
            agent: asked.or(agent).unwrap_or_default(),
            begun: !history.is_empty(),
            compacts_by_itself: compacts_by_itself(&history),
            history,
        }
    }

    fn mcp_servers(&self) -> Vec<String> {
        let Some(state) = self.state() else {
            return Vec::new();
        };
        let servers = state.tools.mcp.status().into_iter();
        servers
            .map(|server| outrigger_mcp::sanitize(&server.name))
            .collect()
    }

    fn rule_asks(&self, question: &str) -> bool {
        self.state()
            .is_some_and(|state| state.permissions.questions.is_firm(question))
    }

    fn call(&self, session: &str, call: &str) -> Option<(String, Value)> {
        self.state()?.permissions.questions.call(session, call)
    }

    fn may_run(&self, line: &str, means: &dyn Fn(&str) -> bool) -> bool {
        outrigger_tools::line_may_run(line, means)
    }

    fn patched(&self, patch: &str) -> Option<Vec<(String, bool)>> {
        outrigger_tools::patched(patch)
    }

    fn transcript(&self, message: &MessageWithParts) -> String {
        lines(message).concat()
    }
}

fn input_of(state: &ToolState) -> &Value {
    match state {
        ToolState::Pending { input, .. }
        | ToolState::Running { input, .. }
        | ToolState::Completed { input, .. }
        | ToolState::Error { input, .. } => input,
    }
}

/// Formats a message as in Claude Code's transcripts: tool results become a line of the user.
fn lines(message: &MessageWithParts) -> Vec<String> {
    let (role, created) = match &message.info {
        MessageInfo::User(info) => ("user", info.time.created),
        MessageInfo::Assistant(info) => ("assistant", info.time.created),
    };
    let (mut said, mut results) = (Vec::new(), Vec::new());
    for part in &message.parts {
        match &part.kind {
            PartKind::Text(part) => said.push(json!({"type": "text", "text": part.text})),
            PartKind::Reasoning(part) => {
                said.push(json!({"type": "thinking", "thinking": part.text}));
            }
            PartKind::Tool(tool) => {
                let id = &tool.call_id;
                let input = input_of(&tool.state);
                said.push(json!({"type": "tool_use", "id": id, "name": outrigger_plugins::known_as(&tool.tool), "input": input}));
                let (text, failed) = match &tool.state {
                    ToolState::Completed { output, .. } => (output, false),
                    ToolState::Error { error, .. } => (error, true),
                    ToolState::Pending { .. } | ToolState::Running { .. } => continue,
                };
                results.push(json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}));
            }
            _ => {}
        }
    }
    let line = |role: &str, content: Vec<Value>| {
        let line = json!({
            "type": role,
            "sessionId": message.info.session_id(),
            "uuid": message.info.id(),
            "timestamp": jiff::Timestamp::from_millisecond(i64::try_from(created).unwrap_or(0)).unwrap_or_default().to_string(),
            "message": {"role": role, "content": content},
        });
        format!("{line}\n")
    };
    let mut lines = Vec::new();
    if !said.is_empty() {
        lines.push(line(role, said));
    }
    if !results.is_empty() {
        lines.push(line("user", results));
    }
    lines
}

/// Returns whether the last compaction of a session started automatically.
fn compacts_by_itself(history: &History) -> bool {
    let mut parts = history
        .iter()
        .rev()
        .filter_map(|message| message.stored())
        .flat_map(|message| message.parts.iter());
    let last = parts.find_map(|part| match &part.kind {
        PartKind::Compaction(compaction) => Some(compaction.get("auto") == Some(&true.into())),
        _ => None,
    });
    last.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    /// Tools that run commands or open files are covered by the guards of their Claude Code counterparts.
    #[test]
    fn every_bundled_tool_has_its_guards() {
        use outrigger_protocol::descriptor::Capability;
        use outrigger_tools::builtin::{Options, register_all};
        let runtime = outrigger_tools::ToolRuntime::new();
        let options = Options {
            lsp: true,
            ..Options::default()
        };
        register_all(&runtime, &options).unwrap();
        let mut held = 0;
        for descriptor in runtime.descriptors() {
            let names = outrigger_plugins::guarded_as(&descriptor.spec.name);
            for need in &descriptor.declared.capabilities {
                let guards: &[&str] = match need {
                    Capability::Exec => &["Bash"],
                    Capability::FsWrite => &["Write", "Edit"],
                    // Tools that change files also open them.
                    Capability::FsRead => &["Read", "Grep", "Glob", "LSP", "Edit"],
                    _ => continue,
                };
                held += 1;
                let name = &descriptor.spec.name;
                assert!(
                    names.iter().any(|name| guards.contains(name)),
                    "{name} needs {} and none of {guards:?} holds it: names.rs",
                    need.name()
                );
            }
        }
        assert!(held >= 10, "{held}");
    }
}
