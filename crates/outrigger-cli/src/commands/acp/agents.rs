//! The agents of this process, one for each folder that the editor names.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use outrigger_acp::{Host, Opened};
use outrigger_agent::{Agent, Answering, Boot, FolderQuestion, Shared};
use outrigger_client::{ClientError, Connection};
use outrigger_plugins::Stage;
use outrigger_stdx::sync::lock;
use tokio::sync::OnceCell;

use crate::args::Global;
use crate::consent::summary;
use crate::failure::Failure;

/// The agents. Cheap to clone.
#[derive(Clone)]
pub(super) struct Agents(Arc<AgentsState>);

struct AgentsState {
    global: Global,
    own: PathBuf,
    /// Opened by the first agent.
    shared: Mutex<Option<Shared>>,
    folders: Mutex<HashMap<PathBuf, AgentCell>>,
}

/// Concurrent requests wait for the start of a folder's agent.
type AgentCell = Arc<OnceCell<(Agent, Opened)>>;

impl Agents {
    pub(super) fn new(global: &Global) -> Result<Self, Failure> {
        Ok(Self(Arc::new(AgentsState {
            own: crate::boot::directory(global)?,
            global: global.clone(),
            shared: Mutex::default(),
            folders: Mutex::default(),
        })))
    }

    /// Shuts all of them down.
    pub(super) async fn shutdown(&self) {
        let places = std::mem::take(&mut *lock(&self.0.folders));
        let agents = places.values().filter_map(|it| it.get());
        futures_util::future::join_all(agents.map(|(agent, _)| agent.shutdown())).await;
        lock(&self.0.shared).take();
    }
}

impl AgentsState {
    fn place(&self, folder: PathBuf) -> AgentCell {
        Arc::clone(lock(&self.folders).entry(folder).or_default())
    }

    /// Returns the start parameters of `run`, except that questions go to the editor. Questions before there is a session cannot
    /// be asked; they become messages.
    fn boot(
        &self,
        folder: PathBuf,
        notices: &Arc<Mutex<Vec<String>>>,
    ) -> Result<Boot, ClientError> {
        let mut env = crate::boot::environment();
        // `--trust` refers to the folder in which the program was started; another folder needs its own trust.
        if folder == self.own {
            env = crate::boot::trusting(&self.global, env)
        } else {
            drop(env.remove(outrigger_agent::TRUST_PROJECT))
        }
        let mut boot = Boot::new(folder, env);
        boot.pure = self.global.pure;
        boot.strict = self.global.strict_plugins.then_some(true);
        boot.answering = Answering::Ask;
        boot.shared = Some(self.shared(&boot)?);
        let said = Arc::clone(notices);
        boot.trust_folder = Some(Arc::new(move |asked| {
            lock(&said).push(untrusted(&asked));
            Box::pin(std::future::ready(false))
        }));
        let said = Arc::clone(notices);
        boot.progress = Arc::new(move |progress| {
            let is_out = matches!(progress.stage, Stage::Failed | Stage::Off) || progress.mention;
            if is_out {
                let why = progress.cause.map(|it| it.message).unwrap_or_default();
                lock(&said).push(format!(
                    "plugin {} {}: {why}",
                    progress.plugin, progress.stage
                ));
            }
        });
        Ok(boot)
    }

    fn shared(&self, boot: &Boot) -> Result<Shared, ClientError> {
        let mut shared = lock(&self.shared);
        if let Some(shared) = &*shared {
            return Ok(shared.clone());
        }
        let opened = Shared::open(&boot.folders)?;
        Ok(shared.insert(opened).clone())
    }

    async fn start(&self, folder: PathBuf) -> Result<(Agent, Opened), ClientError> {
        let notices = Arc::default();
        let agent = Agent::boot(self.boot(folder, &notices)?).await?;
        let connection = Connection::Local(outrigger_server::serve_plugins(&agent));
        let mut notices = std::mem::take(&mut *lock(&notices));
        let active = agent.plugins().into_iter();
        for plugin in active.filter(|plugin| plugin.stage == Stage::Active) {
            let warnings = plugin.warnings.iter();
            notices.extend(warnings.map(|it| format!("plugin {}: {it}", plugin.id)));
        }
        for notice in &notices {
            tracing::warn!("[acp] {notice}");
        }
        let opened = Opened {
            connection,
            notices,
        };
        Ok((agent, opened))
    }
}

impl Host for Agents {
    fn open(&self, folder: PathBuf) -> BoxFuture<'static, Result<Opened, ClientError>> {
        let agents = Arc::clone(&self.0);
        Box::pin(async move {
            let place = agents.place(folder.clone());
            let started = place.get_or_try_init(|| agents.start(folder)).await?;
            Ok(started.1.clone())
        })
    }

    fn folder(&self) -> PathBuf {
        self.0.own.clone()
    }
}

/// Describes in one line which settings of a folder are ignored.
fn untrusted(asked: &FolderQuestion) -> String {
    format!(
        "{}, and are skipped: {}. Look at them and allow them with `outrigger trust` in a terminal, then start this agent again",
        asked.head,
        summary(asked)
    )
}
