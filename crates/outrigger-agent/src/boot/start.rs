//! Starting an agent: configuration, store, plugins, models and tools, in that order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outrigger_config::Loaded;
use outrigger_config::settings::{Install, Sandbox};
use outrigger_mcp_tools::SkillServers;
use outrigger_mcp_tools::skill_servers::GRACE;
use outrigger_models::Models;
use outrigger_permissions::agents;
use outrigger_permissions::deny_policy::DenyPolicy;
use outrigger_permissions::pinned_rules::UserRules;
use outrigger_plugins::{Installer, PluginError, PluginSettings, Plugins, Snapshot};
use outrigger_sandbox::{OwnBoxes, Spawner};
use outrigger_tools::ToolRuntime;
use outrigger_workspace::Folders;
use outrigger_workspace::Place;
use serde_json::json;

use crate::boot::options::{Boot, Shared, describe};
use crate::bus::Bus;
use crate::error::AgentError;
use crate::ids::now;
use crate::plugin_api::host_bridge::Bridge;
use crate::state::deferred_events::DeferredEvents;
use crate::state::logins::WaitingLogins;
use crate::state::message_changes::MessageChanges;
use crate::state::notifications::Notifications;
use crate::state::questions::{Questions, UserQuestions};
use crate::state::session_locks::SessionLocks;
use crate::state::turns::Turns;
use crate::state::waiting::WaitingPrompts;
use crate::state::{Agent, Inner};
use outrigger_prompt::command::CommandInfo;
use outrigger_prompt::template::BUNDLED;

impl Agent {
    /// Starts an agent. Plugins that fail are listed with their cause and cost nothing else.
    ///
    /// # Errors
    /// A configuration or store that cannot be used. Never a plugin.
    pub async fn boot(mut boot: Boot) -> Result<Self, AgentError> {
        let place = Place::find(&boot.directory);
        let config = boot.load(&place)?;
        let mut config = outrigger_permissions::folder_trust::settle(
            &boot,
            boot.trust_folder.as_ref(),
            &place,
            config,
        )
        .await?;
        if let Some(told) = outrigger_permissions::folder_trust::told(&config) {
            tracing::warn!("[config] {told}");
        }
        for problem in &config.problems {
            tracing::warn!("[config] {problem}");
        }
        outrigger_net::forbid(&config.settings.forbid.hosts);
        crate::boot::flags::record(&config);
        let Shared { store, spawner } = match boot.shared.take() {
            Some(shared) => shared,
            None => Shared::open(&boot.folders)?,
        };
        outrigger_permissions::reserved_paths::make(&boot.folders);
        outrigger_audit::prepare(&store, &config, &boot.env);
        let spawner = outrigger_audit::recorded(&store, spawner);
        let spawner = DenyPolicy::of(&config, &place).kept_by(spawner);
        let workspace_trust =
            outrigger_permissions::workspace_trust::WorkspaceTrust::begin(&boot, &config, &place)
                .await?;
        let bridge = Arc::new(Bridge::default());
        let home = (config.settings.sandbox != Sandbox::Off).then_some(&*boot.folders.home);
        let project = place.project(&spawner, &store, home, now()).await;
        let project = crate::session::projects::remember(&store, project).await;
        let admitted =
            crate::plugin_api::plugin_admission::decide(&store, &mut config, &boot.folders);
        if let (Some(workspace_trust), false) =
            (&workspace_trust, admitted.to_load(&config).0.is_empty())
        {
            workspace_trust.will_run().await?;
        }
        let boxes = OwnBoxes::default();
        let boxed = outrigger_permissions::sandbox_policy::spawner(
            &spawner,
            &config,
            &place,
            &boot.folders,
            workspace_trust.as_ref(),
        );
        let boxed = boxed.with_boxes(boxes.clone());
        let mcp = crate::tools::mcp::start(&boot, &config, &place, &boxed);
        outrigger_permissions::home_files::check(&boot.folders, &config.settings.tools.secrets);
        let commands_spawner = crate::tools::tool_hosts::spawner(&spawner, &config, &store);
        let (notice, notices) = crate::boot::notices::channel();
        let progress =
            outrigger_permissions::folder_trust::told_once(&config, Arc::clone(&boot.progress));
        let progress = outrigger_audit::progress(&store, progress);
        for displaced in crate::plugin_api::plugin_admission::displaced(&admitted) {
            progress(displaced);
        }
        let plugins = Plugins::load(outrigger_plugins::LoadOptions {
            notice: outrigger_audit::notice(&store, notice),
            progress,
            commands: crate::plugin_api::command_hooks::of(
                &boot,
                &config,
                &bridge,
                commands_spawner.clone(),
            ),
            ..plugin_options(
                &boot, &config, &admitted, &place, &project, &spawner, &bridge,
            )
        })
        .await;
        if let Err(error) = crate::boot::strict::check(&boot, &config, &plugins) {
            plugins.dispose(Duration::from_secs(5)).await;
            mcp.shutdown(GRACE).await;
            if let Some(workspace_trust) = &workspace_trust {
                workspace_trust.end().await;
            }
            return Err(error);
        }
        // Plugins change the configuration without seeing the keys in it (invariant 10).
        let user_rules = UserRules::of(&config.config);
        let given = config.redacted();
        let users_providers = config.config.provider.clone();
        let (mut value, configured) = plugins.configure(given.clone()).await;
        outrigger_contributions::sandbox_contributions(
            &plugins, &given, &mut value, &place, &boxes,
        )
        .await;
        for pointer in outrigger_config::restore(&mut value, &config.value) {
            tracing::warn!(
                "[config] a plugin changed where {pointer} is sent, or copied it: the key is left out"
            );
        }
        let speakers = outrigger_contributions::providers::speakers(&plugins, &given, &value);
        if value != config.value {
            let (read, problems) = config.reread(value.clone());
            for problem in problems {
                tracing::warn!("[config] {problem}");
            }
            config.config = read;
            config.value = value;
            user_rules.hold(&mut config.config);
            crate::plugin_api::plugin_admission::hold(&admitted, &mut config);
        }
        let (servers, mcp_waiting) = outrigger_mcp_tools::with_claude(&config, &boot.folders);
        mcp.limit_calls(crate::tools::mcp::call_timeout(&config));
        mcp.configure(&servers);
        // One line says what is left out of a folder that is not trusted.
        for (name, why) in mcp_waiting.iter().filter(|_| !config.left_out) {
            tracing::warn!("[mcp:{name}] is not started: {why}");
        }
        let mut model_options = model_options(&boot, &config);
        model_options.users = users_providers;
        model_options.proxies =
            outrigger_contributions::providers::providers(&config.config.provider, &boxes);
        let models = Models::new(model_options);
        for (provider, plugin) in speakers {
            let speaker = crate::plugin_api::providers::auth::speaker(&plugins, &plugin);
            models.overlay(&provider, |overlay| overlay.speaker = Some(speaker));
        }
        let artifacts = boot.folders.data.join("tool-output");
        let brought = plugins.skill_folders();
        let skills =
            outrigger_skills::find(&config, &config.config, &boot.folders, &boxes, brought).await;
        let runtime = ToolRuntime::new();
        let tools = &config.settings.tools;
        let options = outrigger_tools::builtin::Options {
            shell: config.config.shell.as_ref().map(PathBuf::from),
            shell_timeout: Duration::from_millis(tools.bash_timeout_ms),
            tmux: Some(outrigger_plugins::tmux_dir(
                &boot.folders.data,
                &place.directory,
            )),
            lsp: crate::tools::lsp::tool_is_on(&boot.env),
            off: admitted
                .tools_off()
                .into_iter()
                .map(str::to_owned)
                .collect(),
            ..Default::default()
        };
        outrigger_tools::builtin::register_all(&runtime, &options)
            .map_err(|e| AgentError::Tools(e.to_string()))?;
        let snapshots = outrigger_workspace::snapshot::Snapshots::new(
            &place,
            &project.id,
            &boot.folders.data,
            &spawner,
            config.value.get("snapshot") != Some(&json!(false)),
            outrigger_permissions::sandbox_policy::Withheld::of(&config, &place, &boot.folders)
                .map(|withheld| -> outrigger_workspace::snapshot::WithheldFn {
                    Arc::new(move |path| withheld.holds(path))
                }),
        );
        let env = crate::tools::lsp::environment(&boot);
        let formatters_spawner = crate::tools::tool_hosts::spawner(&boxed, &config, &store);
        let inner = Arc::new_cyclic(|this| Inner {
            this: this.clone(),
            user_rules,
            boxes,
            lsp: crate::tools::lsp::new(&config, &place, &boxed, &env),
            formatters: outrigger_workspace::formatters::Formatters::new(
                config.config.formatter.as_ref(),
                &place,
                &formatters_spawner,
                env,
            ),
            snapshots,
            workspace_trust,
            shell: options,
            waiting: WaitingPrompts::default(),
            agents: all_agents(&config, &artifacts, &skills),
            commands: all_commands(&config, &skills, &boot.folders),
            anchor: outrigger_sandbox::Anchor::hold(&place.directory)
                .ok()
                .map(Arc::new),
            access: outrigger_permissions::access::Access::new(&place, &boot.folders.home)
                .with_startup(outrigger_permissions::access::startup::Outside::new(
                    &boot.folders,
                    outrigger_permissions::command_sandbox::programs(&config),
                )),
            place,
            project,
            folders: boot.folders,
            skills,
            store,
            bus: Bus::new(boot.sink.take()),
            commands_spawner,
            spawner,
            models,
            runtime,
            artifacts,
            temporary: outrigger_permissions::command_sandbox::Temporary::default(),
            loopback: outrigger_permissions::command_sandbox::loopback(&config),
            answering: boot.answering,
            questions: Questions::default(),
            ptys: outrigger_workspace::terminals::Ptys::default(),
            user_questions: UserQuestions::default(),
            told_instructions: Mutex::default(),
            left_out: Mutex::default(),
            session_locks: SessionLocks::default(),
            turns: Turns::default(),
            message_changes: MessageChanges::default(),
            waiting_logins: WaitingLogins::default(),
            background: crate::boot::background::Background::default(),
            notifications: Notifications::default(),
            sdk: Mutex::default(),
            telling: tokio::sync::Mutex::new(()),
            providers: tokio::sync::OnceCell::new(),
            logins: Mutex::default(),
            plugins,
            mcp,
            mcp_waiting,
            skill_servers: SkillServers::default(),
            deferred: DeferredEvents::default(),
            admitted,
            plugin_calls: bridge.calls(),
            config,
        });
        bridge.connect(&inner);
        inner.hooks_ran(configured);
        crate::plugin_api::plugin_tools::register(&inner);
        crate::tools::mcp::bind(&inner).await;
        crate::plugin_api::capability_grants::narrow(&inner);
        crate::plugin_api::contract_routes::bind(&inner, &boot.env);
        crate::tools::lsp::bind(&inner);
        crate::boot::notices::bind(&inner, notices);
        crate::boot::notices::failed(&inner);
        let stored = inner.models.credentials().all();
        let stored = stored
            .values()
            .map(|it| serde_json::to_value(&it.credential).unwrap_or_default());
        outrigger_audit::hide_credentials(&inner.store, stored);
        outrigger_audit::grants(&inner.store, &inner.config, &inner.plugins.list());
        Ok(Self { inner })
    }
}

fn plugin_options(
    boot: &Boot,
    config: &Loaded,
    admitted: &Snapshot,
    place: &Place,
    project: &outrigger_protocol::session::Project,
    spawner: &Spawner,
    bridge: &Arc<Bridge>,
) -> outrigger_plugins::LoadOptions {
    let (plugins, skipped) = admitted.to_load(config);
    outrigger_plugins::LoadOptions {
        plugins,
        skipped,
        admits: Some(crate::plugin_api::plugin_admission::again(boot, place)),
        bundled: admitted.running_bundled(),
        settings: PluginSettings {
            policies: config.policies.clone(),
            ..PluginSettings::from(&config.settings)
        },
        directory: place.directory.clone(),
        worktree: worktree(place),
        project: json!(project),
        server_url: outrigger_plugins::SERVER_URL.to_owned(),
        covers: {
            let access = outrigger_permissions::access::Access::new(place, &boot.folders.home);
            let rules = config.config.permission.clone();
            let folders = boot.folders.clone();
            let forbidden = DenyPolicy::of(config, place);
            Arc::new(move || {
                outrigger_permissions::sandbox_policy::kept(
                    &access.rules(&[&rules]),
                    &folders,
                    &forbidden,
                )
            })
        },
        spawner: spawner.clone(),
        runtimes: boot.runtimes(),
        data: boot.folders.data.clone(),
        cache: boot.folders.cache.clone(),
        user_config: Some(boot.folders.config.join("opencode")),
        install_modules: boot.install_modules && config.settings.js.install != Install::Never,
        commands: None,
        consent: boot.consent.clone(),
        trust: boot.trust.clone(),
        let_count: outrigger_permissions::folder_trust::let_count(config),
        handler: Arc::clone(bridge) as Arc<dyn outrigger_js::HostHandler>,
        progress: Arc::clone(&boot.progress),
        notice: Arc::new(|_| {}),
        now,
    }
}

/// As OpenCode has it: `/` outside version control.
pub(crate) fn worktree(place: &Place) -> PathBuf {
    if place.git {
        place.worktree.clone()
    } else {
        PathBuf::from("/")
    }
}

pub(crate) fn model_options(boot: &Boot, config: &Loaded) -> outrigger_models::ModelsOptions {
    outrigger_models::ModelsOptions {
        providers: config.config.provider.clone(),
        env: boot.env.clone(),
        cache_file: boot
            .folders
            .cache
            .parent()
            .map(|cache| cache.join(outrigger_permissions::reserved_paths::MODELS)),
        model: config.config.model.clone(),
        small_model: config.config.small_model.clone(),
        disabled: config.config.disabled_providers.clone(),
        enabled: config.config.enabled_providers.clone(),
        credentials: boot.credentials(),
        ..outrigger_models::ModelsOptions::default()
    }
}

fn all_agents(
    config: &Loaded,
    artifacts: &Path,
    skills: &[outrigger_config::skills::Skill],
) -> BTreeMap<String, agents::AgentInfo> {
    let mut allowed: Vec<&Path> = vec![artifacts];
    allowed.extend(config.config_dirs.iter().map(PathBuf::as_path));
    allowed.extend(skills.iter().map(|skill| skill.dir.as_path()));
    agents::all(&config.config.agent, &config.config.permission, &allowed)
}

fn all_commands(
    config: &Loaded,
    skills: &[outrigger_config::skills::Skill],
    folders: &Folders,
) -> BTreeMap<String, CommandInfo> {
    let bundled = BUNDLED
        .iter()
        .map(|(name, description, template)| CommandInfo {
            name: (*name).to_owned(),
            description: Some((*description).to_owned()),
            template: (*template).to_owned(),
            ..CommandInfo::default()
        });
    let info = |entry: &outrigger_config::CommandEntry| CommandInfo {
        name: entry.name.clone(),
        description: entry.description.clone(),
        template: entry.template.clone(),
        agent: entry.agent.clone(),
        model: entry.model.clone(),
        subtask: entry.subtask,
        ..CommandInfo::default()
    };
    let (of_claude, problems) = config.claude_commands();
    for problem in problems {
        tracing::warn!("[config] {problem}");
    }
    let configured = config.config.command.iter().map(info);
    let mut all: BTreeMap<String, CommandInfo> = bundled
        .chain(of_claude.iter().map(info))
        .chain(configured)
        .map(|command| (command.name.clone(), command))
        .collect();
    for command in skills
        .iter()
        .map(|skill| outrigger_skills::command(skill, config, folders))
    {
        all.entry(command.name.clone()).or_insert(command);
    }
    all
}

/// The policies of the machine that hold in a folder.
///
/// # Errors
/// A configuration that cannot be read.
pub fn policies(boot: &Boot) -> Result<Vec<outrigger_config::PolicyFile>, AgentError> {
    Ok(boot.load(&Place::find(&boot.directory))?.policies)
}

/// Installs what plugins need of npm ahead of their first use, Bun included where there is none, and says what is there.
///
/// # Errors
/// Those of the installation.
pub async fn setup_plugins(boot: &Boot) -> Result<Vec<String>, PluginError> {
    let spawner = Spawner::new().map_err(|e| PluginError::NoRuntime {
        message: e.to_string(),
        hint: e.hint(),
    })?;
    let lookup = boot.runtimes();
    let installer = Installer::find_in(lookup.bun.as_deref(), &lookup.path);
    let modules =
        outrigger_plugins::setup(&boot.folders.data, installer.as_ref(), &spawner).await?;
    // A project whose configuration cannot be read is no reason against preparing the machine.
    let settings = boot
        .load(&Place::find(&boot.directory))
        .map(|config| config.settings)
        .unwrap_or_default();
    let settings = PluginSettings::from(&settings);
    let runtime = outrigger_plugins::setup_runtime(
        &settings,
        &lookup,
        &boot.folders.data,
        &spawner,
        &boot.progress,
    )
    .await?;
    Ok(vec![
        format!("SDK in {}", modules.root.display()),
        describe(&runtime),
    ])
}
