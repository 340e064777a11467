//! Where and in which sandbox MCP servers start. Those of the project's settings run in the command sandbox, as they were trusted.
//! Those of the user run as the user, but not in an untrusted folder, since `npx`, `python -m` and the like run what they find in their
//! working directory. A user's server that runs files which commands can write is in their sandbox: no check before its start can cover
//! what such a file becomes before it is read, or what it imports later.

mod outside;
mod working_folder;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outrigger_config::Loaded;
use outrigger_config::claude::ClaudeServer;
use outrigger_config::settings::{Profile, Sandbox};
use outrigger_mcp::{Launch, LaunchRefusal, LaunchRequest, Launcher, Placement};
use outrigger_permissions::helper_sandbox::HelperSandbox;
use outrigger_permissions::project_programs::ProjectPrograms;
use outrigger_sandbox::{Spawner, host_path, which};
use outrigger_stdx::sync::lock;
use outrigger_workspace::{Folders, ProjectLocation};
use serde_json::{Value, json};

use self::outside::Outside;
use crate::AllowedServers;

/// Key of an entry that a project's skill contributes.
const OF_PROJECT: &str = "outrigger:of_project";
/// npm's cache folder.
const NPM_CACHE: &str = "npm_config_cache";
/// How to trust a folder.
const TRUST: &str = "review the folder, then run `outrigger trust`";

/// Marks the entry of a server that a project's skill contributes.
pub(crate) fn of_project(mut entry: Value) -> Value {
    if let Value::Object(fields) = &mut entry {
        fields.insert(OF_PROJECT.to_owned(), json!(true));
    }
    entry
}

/// The spawners of servers.
#[derive(Clone, Debug)]
pub struct Spawners {
    /// As the user; denied files are masked, and contributions of plugins are in their sandboxes.
    pub open: Spawner,
    /// The command sandbox.
    pub sandbox: Arc<HelperSandbox>,
    /// In the command sandbox, with its `workspace-write` profile.
    pub workspace_write: Spawner,
    /// In the command sandbox, with its `read-only` profile.
    pub read_only: Spawner,
}

impl Spawners {
    fn of(&self, profile: Profile) -> Spawner {
        match profile {
            Profile::Full => self.open.clone(),
            Profile::WorkspaceWrite => self.workspace_write.clone(),
            Profile::ReadOnly => self.read_only.clone(),
        }
    }
}

/// Decides for the servers of an agent.
#[derive(Debug)]
pub struct ServerLauncher {
    spawners: Spawners,
    programs: Arc<ProjectPrograms>,
    /// The configuration from files.
    config: Loaded,
    location: ProjectLocation,
    folders: Folders,
    /// The project's files that the user's servers run, as of their first start.
    first: Mutex<BTreeMap<String, Vec<String>>>,
    /// Whether a user's server runs files that commands can write: once true, it stays true, even if a command removes them before a
    /// check.
    written: Mutex<BTreeMap<String, bool>>,
}

/// Where a server of the user's starts in a folder that a person trusts.
enum Start {
    /// In the project, or the folder that its entry names.
    There(Profile),
    /// In an empty private folder, as the user.
    Aside,
}

impl Start {
    /// Returns the profile that it starts with; `set` if it starts elsewhere.
    fn profile_or(&self, set: Profile) -> Profile {
        match self {
            Self::There(profile) => *profile,
            Self::Aside => set,
        }
    }
}

/// Who wants a server.
enum Origin {
    /// The user, or a client on behalf of the user.
    User,
    /// The project's settings, with the names of the entries that require trust.
    Project(Vec<String>),
    /// The project's `.mcp.json`.
    Claude(Box<ClaudeServer>),
    Plugin,
}

impl ServerLauncher {
    /// Creates a launcher for this configuration, before plugins changed it.
    #[must_use]
    pub fn new(
        config: &Loaded,
        location: &ProjectLocation,
        folders: &Folders,
        programs: Arc<ProjectPrograms>,
        spawners: Spawners,
    ) -> Arc<Self> {
        Arc::new(Self {
            spawners,
            programs,
            config: config.clone(),
            location: location.clone(),
            folders: folders.clone(),
            first: Mutex::default(),
            written: Mutex::default(),
        })
    }

    /// Returns whether files of the project define the server, or change the user's entry.
    #[must_use]
    pub fn is_of_project(&self, server: &str) -> bool {
        let all = &self.config.config.mcp;
        let users = self.config.users.as_ref().map_or(all, |it| &it.mcp);
        let of_claude = || {
            let (servers, _) = self.config.claude_servers();
            servers.iter().any(|it| it.name == server)
        };
        match (all.get(server), users.get(server)) {
            (Some(entry), users) => users != Some(entry),
            (None, Some(_)) => false,
            (None, None) => of_claude(),
        }
    }

    fn origin(&self, request: &LaunchRequest) -> Origin {
        let (name, entry) = (&request.server, &request.entry);
        if self
            .spawners
            .open
            .has_sandbox_override(&format!("mcp:{name}"))
        {
            return Origin::Plugin;
        }
        let of_servers = || vec![format!("/mcpServers/{name}")];
        if entry.get(OF_PROJECT).is_some() {
            return Origin::Project(of_servers());
        }
        let all = &self.config.config.mcp;
        let users = self.config.users.as_ref().map_or(all, |it| &it.mcp);
        if users.get(name) == Some(entry) {
            return Origin::User;
        }
        if all.get(name) == Some(entry) {
            return Origin::Project(vec![format!("/mcp/{name}")]);
        }
        let (servers, _) = self.config.claude_servers();
        let mut servers = servers.into_iter();
        servers
            .find(|it| it.name == *name && it.entry.as_ref() == Ok(entry))
            .map_or(Origin::User, |it| Origin::Claude(Box::new(it)))
    }

    /// Returns the profile from the user's settings, or the default for this kind of server.
    fn profile(&self, request: &LaunchRequest, origin: &Origin) -> Profile {
        let name = &request.server;
        let settings = &self.config.settings;
        let of_commands = settings.tools.sandbox;
        let set = settings
            .tool_execution
            .mcp
            .get(name)
            .and_then(|it| it.sandbox);
        match (set, origin) {
            (Some(set), _) => {
                let mut policies = self.config.policies.iter();
                if policies.any(|it| it.policy.sandbox.tools.is_some()) {
                    set.max(of_commands)
                } else {
                    set
                }
            }
            (None, Origin::Project(_) | Origin::Claude(_)) => of_commands,
            (None, Origin::User) if self.is_written(request) => of_commands,
            (None, Origin::User | Origin::Plugin) => Profile::Full,
        }
    }

    /// Returns whether a user's server runs files that commands can write, as found at its last start.
    fn is_written(&self, request: &LaunchRequest) -> bool {
        let key = ProjectPrograms::server_key(&request.server, &request.entry);
        let known = lock(&self.written).get(&key).copied();
        known.unwrap_or_else(|| self.look(request))
    }

    /// Checks whether a user's server runs files that commands can write.
    fn look(&self, request: &LaunchRequest) -> bool {
        let found = self.program(request);
        let entry = &request.entry;
        let is_written = self.programs.written_by_commands(entry, found.as_deref());
        self.settle(request, is_written.is_some())
    }

    /// Returns the program of a user's server. If it was outside the folders that commands can write at its first start here, it stays
    /// the same, even if they put another one before it in `PATH`. Reads the disk.
    fn program(&self, request: &LaunchRequest) -> Option<PathBuf> {
        let word = request.command.first()?;
        let path = path_of(&request.env);
        let found = which(word, path)?;
        if word.contains('/') {
            return Some(found);
        }
        let is_outside = !host_path::is_passed_over(&found);
        let was_outside = self.is_first_outside(request, is_outside);
        let outside = || host_path::which_of_host(word, path);
        let stays = was_outside && !is_outside;
        stays.then(outside).flatten().or(Some(found))
    }

    /// Returns whether the program was outside at the first start since the folder was trusted; `now` is used if this is the first.
    fn is_first_outside(&self, request: &LaunchRequest, now: bool) -> bool {
        let name = ProjectPrograms::server_key(&request.server, &request.entry);
        let name = format!("{name} PATH");
        let now = vec![now.to_string()];
        let known = self.programs.settle_server(&name, &now).unwrap_or_else(|| {
            let mut first = lock(&self.first);
            first.entry(name).or_insert(now).clone()
        });
        known == ["true"]
    }

    /// Returns the `PATH` of a user's server that is started in the project: the user's if its program is there. For others that start
    /// as the user, excludes folders that commands can write.
    fn search_path(&self, request: &LaunchRequest, profile: Profile) -> OsString {
        let path = path_of(&request.env);
        let program = self.program(request);
        match program.is_some_and(|it| host_path::is_passed_over(&it)) {
            true => path.to_owned(),
            false if profile == Profile::Full => host_path::without(path),
            false => host_path::last(path),
        }
    }

    fn settle(&self, request: &LaunchRequest, is_written: bool) -> bool {
        let key = ProjectPrograms::server_key(&request.server, &request.entry);
        let mut all = lock(&self.written);
        let known = all.entry(key).or_default();
        *known |= is_written;
        *known
    }

    /// One of the user's that loads code by names from its working folder does not do so as the user where commands and plugins may put
    /// such a file. No look at what is there decides: they may do so at any time. Reads the disk.
    fn start_of_users(&self, request: &LaunchRequest, profile: Profile) -> Start {
        let settings = &self.config.settings;
        let program = self.program(request);
        let is_searched =
            || working_folder::is_searched(&request.command, &request.env, program.as_deref());
        if profile != Profile::Full || self.is_written(request) || !is_searched() {
            return Start::There(profile);
        }
        let own = settings.tool_execution.mcp.get(&request.server);
        let is_set = own.is_some_and(|it| it.sandbox.is_some());
        let there = if is_set {
            profile
        } else {
            settings.tools.sandbox
        };
        if request.cwd.is_some() {
            return Start::There(if self.programs.may_be_written(&self.started_in(request)) {
                there
            } else {
                profile
            });
        }
        if Outside::of_trusted(self, request).names_project() {
            Start::There(there)
        } else {
            Start::Aside
        }
    }

    fn started_in(&self, request: &LaunchRequest) -> PathBuf {
        let directory = &self.location.directory;
        request
            .cwd
            .as_ref()
            .map(|cwd| directory.join(cwd))
            .unwrap_or_else(|| directory.clone())
    }

    /// Starts it in the project, as OpenCode does.
    fn in_project(&self, request: &LaunchRequest, profile: Profile) -> Launch {
        let mut env = request.env.clone();
        let has_cache = |(name, _): &(OsString, OsString)| name.eq_ignore_ascii_case(NPM_CACHE);
        let is_sandboxed = profile != Profile::Full && self.config.settings.sandbox != Sandbox::Off;
        if is_sandboxed && !env.iter().any(has_cache) {
            let cache = self.spawners.sandbox.npm_cache();
            env.extend(cache.map(|it| (NPM_CACHE.into(), it.into())));
        }
        Launch {
            spawner: self.spawners.of(profile),
            command: request.command.clone(),
            cwd: self.started_in(request),
            env,
            held: None,
        }
    }

    /// Checks a user's server in a trusted folder: the project's files that it runs must be those of its first start there.
    fn check_users(&self, request: &LaunchRequest) -> Result<(), LaunchRefusal> {
        let now = self.config.files_run_by(&request.entry);
        // Identified by the user's entry: another command is another server.
        let name = ProjectPrograms::server_key(&request.server, &request.entry);
        let known = self.programs.settle_server(&name, &now).unwrap_or_else(|| {
            let mut first = lock(&self.first);
            first.entry(name).or_insert_with(|| now.clone()).clone()
        });
        let mut files = known.iter().filter_map(|it| it.rsplit_once(' '));
        if files.any(|(file, _)| Loaded::is_program(Path::new(file))) {
            self.settle(request, true);
        }
        let changed = now.iter().find(|it| !known.contains(it));
        let Some(changed) = changed else {
            return Ok(());
        };
        let file = changed
            .rsplit_once(' ')
            .map_or(changed.as_str(), |(file, _)| file);
        let file = Path::new(file);
        let file = file.strip_prefix(&self.location.directory).unwrap_or(file);
        Err(refusal(
            format!(
                "{} has changed since the server was first started here",
                file.display()
            ),
            TRUST,
        ))
    }

    fn check_project(&self, origin: &Origin) -> Result<(), LaunchRefusal> {
        let what = match origin {
            Origin::Project(what) => what.clone(),
            Origin::Claude(server) => {
                // It is approved itself, with its current content.
                if AllowedServers::new(&self.folders).holds(server) {
                    return Ok(());
                }
                if !self.config.lets_server(server) {
                    let allow = format!("`outrigger mcp allow {}` allows it as it is", server.name);
                    return Err(refusal(
                        "what it runs has changed since it was allowed".to_owned(),
                        &allow,
                    ));
                }
                vec![format!("/mcpServers/{}", server.name)]
            }
            Origin::User | Origin::Plugin => return Ok(()),
        };
        match self.programs.change(&what) {
            Some(reason) => Err(refusal(reason, TRUST)),
            None => Ok(()),
        }
    }
}

fn path_of(env: &[(OsString, OsString)]) -> &OsStr {
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    path.map_or(OsStr::new(""), |(_, path)| path)
}

fn refusal(reason: String, hint: &str) -> LaunchRefusal {
    LaunchRefusal {
        reason,
        hint: hint.to_owned(),
    }
}

impl Launcher for ServerLauncher {
    fn launch(&self, request: &LaunchRequest) -> Result<Launch, LaunchRefusal> {
        let origin = self.origin(request);
        match origin {
            Origin::User => {
                self.look(request);
                if !self.programs.is_trusted() {
                    let outside = Outside::new(self, request);
                    return outside.launch(self.spawners.of(self.profile(request, &origin)));
                }
                self.check_users(request)?;
                let profile = self.profile(request, &origin);
                let profile = match self.start_of_users(request, profile) {
                    Start::There(profile) => profile,
                    Start::Aside => {
                        let aside = Outside::of_trusted(self, request);
                        return aside.launch(self.spawners.of(profile));
                    }
                };
                let mut launch = self.in_project(request, profile);
                let path = self.search_path(request, profile);
                launch.env.push(("PATH".into(), path));
                Ok(launch)
            }
            Origin::Project(_) | Origin::Claude(_) => {
                self.check_project(&origin)?;
                Ok(self.in_project(request, self.profile(request, &origin)))
            }
            Origin::Plugin => Ok(self.in_project(request, self.profile(request, &origin))),
        }
    }

    fn placement(&self, request: &LaunchRequest) -> Option<Placement> {
        let origin = self.origin(request);
        let name = &request.server;
        let set = self.profile(request, &origin);
        let is_users = matches!(origin, Origin::User) && self.programs.is_trusted();
        let start = is_users.then(|| self.start_of_users(request, set));
        let profile = start.as_ref().map_or(set, |start| start.profile_or(set));
        let (sandbox, remedy) = sandbox_of(name, profile);
        let started_in = self.started_in(request);
        let folder = started_in.display().to_string();
        let placement = |folder: String, reason: &str, remedy| Placement {
            folder,
            sandbox: sandbox.to_owned(),
            reason: reason.to_owned(),
            remedy,
        };
        Some(match origin {
            Origin::Plugin => Placement {
                sandbox: "in the sandbox of its plugin".to_owned(),
                ..placement(folder, "a plugin contributes it", None)
            },
            Origin::Project(_) | Origin::Claude(_) => {
                placement(folder, "the project's settings request it", remedy)
            }
            Origin::User if matches!(start, Some(Start::Aside)) => placement(
                "an empty folder".to_owned(),
                "your settings request it, and it would load code by name from the project, which commands can change",
                Some(format!(
                    "it starts in an empty folder, since commands can change this one; `\"cwd\": \".\"` in its \
                     entry starts it in the project in the sandbox of commands, with `[mcp.{name}] sandbox = \
                     \"full\"` without a sandbox"
                )),
            ),
            Origin::User if set != profile => placement(
                folder,
                "your settings request it, and it loads code by name from a folder that commands can change",
                remedy,
            ),
            Origin::User if self.programs.is_trusted() => {
                let reason = if remedy.is_some() && self.is_written(request) {
                    "your settings request it, and commands can change what it runs"
                } else {
                    "your settings request it"
                };
                placement(folder, reason, remedy)
            }
            Origin::User if request.cwd.is_some() && !self.programs.holds(&started_in) => {
                placement(folder, "your settings request it there", remedy)
            }
            Origin::User => {
                let trust = "it starts in an empty folder, since this one is not trusted; `outrigger trust` starts it in the project";
                let remedy: Vec<String> = remedy.into_iter().chain([trust.to_owned()]).collect();
                placement(
                    "an empty folder".to_owned(),
                    "your settings request it, and the folder is not trusted",
                    Some(remedy.join("; ")),
                )
            }
        })
    }
}

/// Returns what is said of the sandbox of a server with this profile, and how to leave it.
fn sandbox_of(server: &str, profile: Profile) -> (&'static str, Option<String>) {
    let sandbox = match profile {
        Profile::Full => return ("as you", None),
        Profile::ReadOnly => "in the sandbox of commands (read-only)",
        _ => "in the sandbox of commands (workspace-write)",
    };
    let remedy = format!(
        "`[mcp.{server}] sandbox = \"full\"` in your own outrigger.toml starts it outside of the sandbox of commands"
    );
    (sandbox, Some(remedy))
}
