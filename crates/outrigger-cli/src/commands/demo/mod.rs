//! `outrigger demo`: runs the code of `run` with recorded answers instead of a model, on a generated project.
//!
//! Independent of the user's setup: folders, configuration and variables are those of the demo.

mod program;
mod project;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_agent::{Agent, Boot, Folders};
use outrigger_client::{Connection, session};
use outrigger_plugins::{PluginStatus, Stage};
use outrigger_sandbox::Spawner;

use self::program::{Program, TestRun};
use self::project::Ground;
use crate::args::{DemoArgs, Global, RunArgs};
use crate::client::follow::{Answers, Follower};
use crate::client::view::Show;
use crate::commands::run::Prompt;
use crate::exit;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;
use crate::terminal::{Paint, out};

/// The prompt.
const PROMPT: &str = include_str!("../../../demo/prompt.txt");

/// Runs the command; it fails unless the project's test passes in the end or, with no runtime for it, the edit was made.
pub(crate) async fn demo(global: &Global, args: DemoArgs, signals: Signals) -> Result<u8, Failure> {
    let ground = Ground::prepare(args.keep.as_deref())?;
    let spawner = Spawner::new().map_err(outrigger_agent::AgentError::from)?;
    let program = Program::find(&spawner).await;
    let demo = Demo {
        paint: Paint::for_stdout(),
        ground,
        spawner,
        program,
    };
    demo.introduce();
    let before = demo.test("The test, before").await?;

    let line = Line::new();
    let ticking = line.run();
    let agent = Agent::boot(demo.boot(global, &line)).await?;
    let result = demo.turn(&agent, &line, &signals).await;
    agent.shutdown().await;
    drop(ticking);
    let code = result?;
    if code == exit::CANCELLED {
        return Ok(code);
    }

    let after = demo.test("The test, after").await?;
    out(&report::where_to_look(
        demo.paint,
        &demo.ground,
        args.keep.is_some(),
    ));
    let is_fixed = match (&before, &after) {
        (Some(before), Some(after)) => !before.passed && after.passed,
        _ => demo.ground.source() != project::SOURCE,
    };
    Ok(if is_fixed { code } else { exit::FAILED })
}

struct Demo {
    paint: Paint,
    ground: Ground,
    spawner: Spawner,
    program: Result<Program, String>,
}

impl Demo {
    fn introduce(&self) {
        let paint = self.paint;
        let title = paint
            .bold("A whole turn: the model's answers are recorded, all else is done here and now.");
        let project = self.ground.project();
        let program = match &self.program {
            Ok(program) => program.title.clone(),
            Err(why) => format!("{why}, so no plugin is loaded and no test run"),
        };
        out(&format!(
            "{title}\n\nProject     {}\n            {}\nJavaScript  {program}\n",
            project.display(),
            project::LISTING
        ));
    }

    /// Runs the project's test and shows it, if there is a runtime for it.
    async fn test(&self, heading: &str) -> Result<Option<TestRun>, Failure> {
        let Ok(program) = &self.program else {
            return Ok(None);
        };
        let run = program.test(&self.spawner, &self.ground).await?;
        out(&report::heading(self.paint, heading));
        out(&report::test_run(self.paint, program, &run));
        Ok(Some(run))
    }

    /// Returns the start parameters of `run`, in the demo's own folders.
    fn boot(&self, global: &Global, line: &Line) -> Boot {
        let env = self.environment();
        let mut boot = Boot::new(self.ground.project(), env);
        boot.pure = global.pure;
        boot.install_modules = false;
        // The project is the demo's own.
        if let Err(error) = outrigger_agent::trust_folder(&boot) {
            tracing::warn!("[demo] {error}");
        }
        let (line, is_known) = (line.clone(), self.program.is_err());
        boot.progress = Arc::new(move |progress| {
            // Without a runtime every plugin fails, which was reported already.
            if !(is_known && progress.stage == Stage::Failed) {
                line.plugin(progress);
            }
        });
        boot
    }

    /// Returns the harmless part of the user's environment, with every folder inside the demo's. No settings and no keys.
    fn environment(&self) -> BTreeMap<String, String> {
        let harmless = outrigger_sandbox::env::of_host(&[]);
        let mut env: BTreeMap<String, String> = harmless
            .into_iter()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        env.retain(|name, _| !name.starts_with("XDG_"));
        let mut set = |name: &str, value: PathBuf| {
            env.insert(name.to_owned(), value.to_string_lossy().into_owned())
        };
        for (name, folder) in project::FOLDERS {
            set(name, self.ground.folder(folder));
        }
        // Nothing is downloaded, and the plugin does not see the user's data either.
        for (name, value) in [
            ("OUTRIGGER_JS_INSTALL", "never"),
            ("OUTRIGGER_JS_ENVIRONMENT", "list"),
        ] {
            set(name, value.into());
        }
        if let Ok(program) = &self.program {
            set(program.variable(), program.path().to_path_buf());
        }
        env
    }

    /// Returns the output of `outrigger plugin list`, or a note that there is no runtime for plugins.
    fn plugins(&self, plugins: &[PluginStatus]) -> String {
        let Err(why) = &self.program else {
            let inside = format!("file://{}/", self.ground.project().display());
            let folder = format!(" {}/", self.ground.project().display());
            return crate::commands::plugin::listing::table(plugins)
                .replace(&inside, "")
                .replace(&folder, " ");
        };
        let line = |plugin: &PluginStatus| format!("not loaded   {}  ({why})\n", plugin.id);
        plugins.iter().map(line).collect()
    }

    /// Runs the turn and shows its result.
    async fn turn(&self, agent: &Agent, line: &Line, signals: &Signals) -> Result<u8, Failure> {
        let connection = Connection::Local(outrigger_server::serve_plugins(agent));
        let plugins = agent.plugins();
        self.ground
            .put_answers(plugins.iter().any(|plugin| plugin.stage == Stage::Active))?;
        // The turn is shown after its end, from its log.
        let show = Show {
            quiet: true,
            ..Show::default()
        };
        let prompt = Prompt {
            follower: Follower::new(connection.clone(), Answers::Agent, line, signals).await?,
            args: &RunArgs::default(),
            show,
            message: PROMPT.to_owned(),
            model: None,
            files: Vec::new(),
            directory: Some(agent.location().directory.to_string_lossy().into_owned()),
        };
        let code = prompt.run().await?;
        let Some(session) = session::latest(&connection).await? else {
            return Ok(code);
        };
        agent.store().flush(false).await?;
        out(&report::heading(self.paint, "The turn, from its log"));
        out(&crate::commands::session::conversation::conversation(
            agent.store(),
            &session,
            self.paint,
        )?);
        out(&report::heading(self.paint, "The plugin"));
        out(&self.plugins(&plugins));
        out(&report::hooks(agent.store(), &session.id, self.paint)?);
        let runs = |plugin: &PluginStatus| plugin.stage == Stage::Active;
        Ok(
            if self.program.is_ok()
                && !agent.config().plugins.is_empty()
                && !plugins.iter().all(runs)
            {
                exit::FAILED
            } else {
                code
            },
        )
    }
}

/// Returns our data folder of the user, which contains a Bun that `outrigger plugin setup` installed.
fn user_data() -> PathBuf {
    Folders::from_env(&crate::boot::environment()).data
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |c: char| c.is_alphanumeric() || "/._-+=@%:,".contains(c);
    if text.chars().all(plain) {
        text.into_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}
