//! Starting an agent: configuration, store, plugins, models and tools, in that order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use outrigger_config::{Loaded, OpenCodeConfig};
use outrigger_models::Models;
use outrigger_plugins::{Plugins, Progress};
use outrigger_protocol::tool::ToolSpec;
use outrigger_sandbox::Spawner;
use outrigger_store::{OpenReport, Store};
use outrigger_tools::{FnTool, ToolError, ToolRuntime};
use serde_json::{Value, json};

use crate::agents;
use crate::ask::{Answering, Questions};
use crate::bridge::Bridge;
use crate::bus::Bus;
use crate::command::BUNDLED;
use crate::error::AgentError;
use crate::ids::now;
use crate::inner::{Agent, CommandInfo, Inner};
use crate::project::Place;
use crate::session::Sessions;

/// Where things are kept. OpenCode's own folders are only read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The user's home.
    pub home: PathBuf,
    /// `$XDG_CONFIG_HOME`; OpenCode's configuration is in `opencode` under it, ours in `outrigger`.
    pub config: PathBuf,
    /// Our data: the store, locks, output that was cut, the plugins' private homes.
    pub data: PathBuf,
    /// Our cache: installed plugins.
    pub cache: PathBuf,
}

impl Folders {
    /// The XDG folders of this environment.
    #[must_use]
    pub fn from_env(env: &BTreeMap<String, String>) -> Self {
        let absolute = |name: &str| env.get(name).filter(|v| v.starts_with('/')).map(PathBuf::from);
        let home = absolute("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let xdg = |name: &str, fallback: &str| absolute(name).unwrap_or_else(|| home.join(fallback));
        Self {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share").join("outrigger"),
            cache: xdg("XDG_CACHE_HOME", ".cache").join("outrigger"),
            home,
        }
    }

    /// The store's file.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.data.join("outrigger.db")
    }
}

/// What an agent is started with.
pub struct Boot {
    /// Project folder.
    pub directory: PathBuf,
    /// Environment, read once.
    pub env: BTreeMap<String, String>,
    /// Where things are kept.
    pub folders: Folders,
    /// No external plugins.
    pub pure: bool,
    /// Who answers permission questions.
    pub answering: Answering,
    /// Told how far each plugin is, from whatever thread is at it.
    pub progress: Arc<dyn Fn(Progress) + Send + Sync>,
    /// Changes the loaded configuration before anything is made from it (the demo puts its provider in).
    pub adjust: Option<Box<dyn FnOnce(&mut Loaded) + Send>>,
}

impl Boot {
    /// The usual start in a folder.
    #[must_use]
    pub fn new(directory: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            folders: Folders::from_env(&env),
            directory,
            env,
            pure: false,
            answering: Answering::default(),
            progress: Arc::new(|_| {}),
            adjust: None,
        }
    }

    /// Reads the configuration only.
    ///
    /// # Errors
    /// Those of the configuration.
    pub fn load(&self, place: &Place) -> Result<Loaded, AgentError> {
        let mut options = outrigger_config::LoadOptions::new(
            place.directory.clone(),
            place.worktree.clone(),
            self.folders.home.clone(),
            self.env.clone(),
        );
        options.xdg_config.clone_from(&self.folders.config);
        options.pure = self.pure;
        Ok(outrigger_config::load(&options)?)
    }
}

/// Opens the store in its folder.
pub(crate) fn open_store(folders: &Folders) -> Result<(Store, OpenReport), AgentError> {
    std::fs::create_dir_all(&folders.data)
        .map_err(|e| AgentError::Folder { path: folders.data.display().to_string(), reason: e.to_string() })?;
    Ok(Store::open(&folders.store())?)
}

impl Agent {
    /// Starts an agent. Plugins that fail are listed with their cause and cost nothing else.
    ///
    /// # Errors
    /// A configuration or store that cannot be used. Never a plugin.
    pub async fn boot(mut boot: Boot) -> Result<Self, AgentError> {
        let place = Place::find(&boot.directory);
        let mut config = boot.load(&place)?;
        if let Some(adjust) = boot.adjust.take() {
            adjust(&mut config);
        }
        for problem in &config.problems {
            tracing::warn!("[config] {problem}");
        }
        let (store, report) = open_store(&boot.folders)?;
        tracing::debug!("[store] {report:?}");
        let spawner = Spawner::new()?;
        let bridge = Arc::new(Bridge::default());
        let project = place.project(&spawner, now()).await;
        let plugins = Plugins::load(plugin_options(&boot, &config, &place, &project, &spawner, &bridge)).await;
        let value = plugins.configure(config.value.clone()).await;
        if value != config.value {
            let (read, problems) = OpenCodeConfig::from_value_leniently(value.clone(), &boot.folders.home);
            for problem in problems {
                tracing::warn!("[config] {problem}");
            }
            config.config = read;
            config.value = value;
        }
        let models = Models::new(model_options(&boot, &config, &place))?;
        let artifacts = boot.folders.data.join("tool-output");
        let (skills, problems) = outrigger_config::skills::discover(&config.skill_search());
        for problem in problems {
            tracing::debug!("[skills] {problem}");
        }
        let runtime = ToolRuntime::bundled();
        let inner = Inner {
            agents: all_agents(&config, &boot.folders, &artifacts, &skills),
            commands: all_commands(&config),
            place,
            project,
            folders: boot.folders,
            skills,
            store,
            bus: Bus::default(),
            spawner,
            models,
            runtime,
            artifacts,
            answering: boot.answering,
            questions: Questions::default(),
            approvals: Mutex::default(),
            sessions: Sessions::default(),
            running: Mutex::default(),
            background: Mutex::default(),
            sdk: Arc::new(OnceLock::new()),
            telling: tokio::sync::Mutex::new(()),
            plugins,
            config,
        };
        let inner = Arc::new(inner);
        bridge.connect(&inner);
        register_plugin_tools(&inner);
        Ok(Self { inner })
    }
}

fn plugin_options(
    boot: &Boot,
    config: &Loaded,
    place: &Place,
    project: &outrigger_protocol::session::Project,
    spawner: &Spawner,
    bridge: &Arc<Bridge>,
) -> outrigger_plugins::LoadOptions {
    outrigger_plugins::LoadOptions {
        specs: config.plugins.clone(),
        settings: config.settings.clone(),
        directory: place.directory.clone(),
        worktree: place.worktree.clone(),
        project: json!(project),
        home: boot.folders.home.clone(),
        config_home: boot.folders.config.clone(),
        data: boot.folders.data.clone(),
        cache: boot.folders.cache.clone(),
        env: boot.env.clone(),
        spawner: spawner.clone(),
        handler: Arc::clone(bridge) as Arc<dyn outrigger_plugins::HostHandler>,
        progress: Arc::clone(&boot.progress),
        now,
    }
}

fn model_options(boot: &Boot, config: &Loaded, place: &Place) -> outrigger_models::ModelsOptions {
    outrigger_models::ModelsOptions {
        providers: config.config.provider.clone(),
        env: boot.env.clone(),
        directory: place.directory.clone(),
        ..outrigger_models::ModelsOptions::default()
    }
}

fn all_agents(
    config: &Loaded,
    folders: &Folders,
    artifacts: &Path,
    skills: &[outrigger_config::skills::Skill],
) -> BTreeMap<String, agents::AgentInfo> {
    let temp = std::env::temp_dir();
    let mut allowed: Vec<&Path> = vec![artifacts, &temp];
    allowed.extend(config.config_dirs.iter().map(PathBuf::as_path));
    allowed.extend(skills.iter().map(|skill| skill.dir.as_path()));
    let _ = folders;
    agents::all(&config.config.agent, &config.config.permission, &allowed)
}

fn all_commands(config: &Loaded) -> BTreeMap<String, CommandInfo> {
    let bundled = BUNDLED.iter().map(|(name, description, template)| CommandInfo {
        name: (*name).to_owned(),
        description: Some((*description).to_owned()),
        template: (*template).to_owned(),
        agent: None,
        model: None,
    });
    let configured = config.config.command.iter().map(|entry| CommandInfo {
        name: entry.name.clone(),
        description: entry.description.clone(),
        template: entry.template.clone(),
        agent: entry.agent.clone(),
        model: entry.model.clone(),
    });
    bundled.chain(configured).map(|command| (command.name.clone(), command)).collect()
}

/// Tools of plugins go through the same runtime as all others; one with a bundled tool's name replaces it.
fn register_plugin_tools(inner: &Arc<Inner>) {
    for tool in inner.plugins.tools() {
        let spec: ToolSpec = tool.spec.clone();
        let owner = Arc::downgrade(inner);
        let run = move |input: Value, ctx: outrigger_tools::ToolContext| {
            let (tool, owner) = (tool.clone(), owner.clone());
            async move {
                let messages = match owner.upgrade() {
                    Some(inner) => inner.store.messages(&ctx.call.session_id).unwrap_or_default(),
                    None => Vec::new(),
                };
                let context = json!({
                    "sessionID": ctx.call.session_id, "messageID": ctx.call.message_id, "callID": ctx.call.call_id,
                    "agent": ctx.call.agent, "directory": ctx.directory, "worktree": ctx.worktree,
                    "extra": {}, "messages": messages,
                });
                let context = context.as_object().cloned().unwrap_or_default();
                let host = crate::bridge::PluginCall::new(ctx.clone());
                let running = tool.run(input, context, Arc::new(host));
                tokio::select! {
                    answer = running => answer.map_err(|error| ToolError::failed(error.to_string())),
                    () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
                }
            }
        };
        if let Err(error) = inner.runtime.register(Arc::new(FnTool::new(spec, run))) {
            tracing::warn!("[plugin] {error}");
        }
    }
}
