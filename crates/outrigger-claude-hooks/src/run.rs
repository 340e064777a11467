//! Running the commands of an event.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use outrigger_config::claude_hooks::{CommandHook, HookEvent};
use outrigger_kernel::breaker::Ended;
use outrigger_kernel::hooks::HookPoint;
use outrigger_plugin_status::Notice;
use outrigger_protocol::id::TurnId;
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::process_time::Instant;
use outrigger_sandbox::{Policy, Spawner, Spec, run_with_input};
use serde_json::{Value, json};

use crate::answer::{Answer, MAX_OUTPUT, PER_INPUT, Rewrite, SecondPass, read, shortened, woken};
use crate::breakers::{Due, Line, Running};
use crate::condition::{self, Condition};
use crate::input::Round;
use crate::runtimes::Runtimes;
use crate::state::Commands;
use crate::transcript::BUN_CONFIG;
use crate::{ChangedFn, Handler, Matched};

/// The plugins to call at a point.
pub struct Calls<'a> {
    /// The point.
    pub point: HookPoint,
    /// The files whose commands are run.
    pub plugins: &'a [Callee<'a>],
    /// The session.
    pub session: Option<&'a str>,
    /// The turn, for breakers.
    pub turn: Option<&'a TurnId>,
    /// The payload as the handlers before left it.
    pub item: &'a HookPayload,
    /// Set if it changed after these commands had answered.
    pub second_pass: Option<&'a SecondPass>,
}

/// A plugin whose commands are run.
#[derive(Clone, Copy)]
pub struct Callee<'a> {
    /// Index among the plugins.
    pub plugin: usize,
    /// Name of the file.
    pub id: &'a str,
    /// Its own deadline, if shorter than a command's.
    pub limit: Option<Duration>,
}

/// Result of the commands of one plugin.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// Their answer.
    pub answer: Answer,
    /// Duration of its slowest command in milliseconds; of several events together.
    pub ms: f64,
    /// Bytes of input to its commands.
    pub bytes: u64,
    /// Arguments that they set for the call.
    pub rewrites: Vec<Rewrite>,
}

/// A command to run.
struct SelectedHook<'a> {
    /// Index among the called plugins.
    place: usize,
    hook: &'a CommandHook,
    /// Its folder and its command.
    line: Line,
    blocks_on_failure: bool,
    handler: &'a Handler,
    timeout: Duration,
    /// Decision of its breaker; `None` for an async one.
    running: Option<Result<Running<'a>, String>>,
}

/// What a command answered.
struct CommandRun {
    answer: Answer,
    /// How it ended, for its breaker.
    ended: Ended,
    millis: f64,
}

impl SelectedHook<'_> {
    /// Returns whether two commands are the same: once is enough. Of their other settings the stricter ones apply.
    fn is_same(&self, line: &Line, hook: &CommandHook) -> bool {
        self.line == *line
            && (self.hook.runs_async, self.hook.wakes) == (hook.runs_async, hook.wakes)
    }
}

impl Called {
    /// Adds the result of the next event, or of the next file of the same call.
    fn then(&mut self, next: Self, is_same_call: bool) {
        self.answer.then(next.answer, is_same_call);
        self.ms += next.ms;
        self.bytes += next.bytes;
        self.rewrites.extend(next.rewrites);
    }
}

impl Commands {
    /// Runs the plugins' commands for a point; returns one result for each. Dropping the future kills every process that it
    /// started.
    pub async fn call(&self, calls: Calls<'_>) -> Vec<Called> {
        let mut all = vec![Called::default(); calls.plugins.len()];
        let mut last = None;
        for round in self.rounds(calls.point, calls.session, calls.item).await {
            let ends = |one: &Called| one.answer.ends(calls.point, round.event);
            if all.iter().any(ends) {
                break;
            }
            let mut of_round = vec![Called::default(); calls.plugins.len()];
            self.run_round(&calls, &round, &mut of_round).await;
            let is_same_call = last.replace(round.event) == Some(round.event);
            for (called, next) in all.iter_mut().zip(of_round) {
                called.then(next, is_same_call);
            }
        }
        all
    }

    async fn run_round(&self, calls: &Calls<'_>, round: &Round, all: &mut [Called]) {
        let work = self.work(calls, round);
        if work.is_empty() {
            return;
        }
        let input = self.input(round).await;
        let policy = self.with.host.confine(calls.session).await;
        let (asynchronous, work): (Vec<_>, Vec<_>) =
            work.into_iter().partition(|one| one.hook.runs_async);
        for one in &asynchronous {
            let id = calls.plugins.get(one.place).map_or("", |callee| callee.id);
            let run = self.run(round.event, one, &policy, &input);
            self.run_async(id, round, run);
        }
        let all_at_once = work
            .iter()
            .map(|one| self.run(round.event, one, &policy, &input));
        let answers = join_all(all_at_once).await;
        let mut slowest = vec![0.0_f64; all.len()];
        let tool = calls
            .item
            .input
            .get("tool")
            .and_then(Value::as_str)
            .unwrap_or_default();
        for (one, run) in work.into_iter().zip(answers) {
            if let Some(Ok(running)) = one.running {
                running.ended(run.ended);
            }
            let answer = if one.blocks_on_failure {
                run.answer.or_refusal(round.event)
            } else {
                run.answer
            };
            let mut answer = answer.without(round.made, &round.input);
            let rewrite = Rewrite::of(&answer, &one.line, tool);
            if let Some(second_pass) = calls.second_pass {
                answer = second_pass.settle(answer, tool, &shortened(&one.hook.line()));
            }
            let (Some(called), Some(slowest)) =
                (all.get_mut(one.place), slowest.get_mut(one.place))
            else {
                continue;
            };
            called.answer.merge(answer);
            called.rewrites.extend(rewrite);
            called.bytes += input.len() as u64;
            *slowest = slowest.max(run.millis);
        }
        for (called, ms) in all.iter_mut().zip(slowest) {
            called.ms += ms;
        }
    }

    /// Returns the commands of a round, without duplicates.
    fn work<'a>(&'a self, calls: &Calls<'a>, round: &'a Round) -> Vec<SelectedHook<'a>> {
        let mut work: Vec<SelectedHook<'a>> = Vec::new();
        for (place, callee) in calls.plugins.iter().enumerate() {
            let Some(handler) = self.handler(callee.plugin) else {
                continue;
            };
            for Matched {
                hook,
                condition,
                broken,
                ..
            } in handler.matching(round.event, &round.names)
            {
                if !self.is_meant(condition.as_ref(), round, handler) {
                    continue;
                }
                let base = handler.root.as_ref().unwrap_or(&handler.project);
                let line = (base.clone(), hook.line());
                let is_due =
                    |second_pass: &SecondPass| !hook.runs_async && second_pass.is_asked(&line);
                if !calls.second_pass.is_none_or(is_due) {
                    continue;
                }
                let timeout = callee.limit.unwrap_or(hook.timeout).min(hook.timeout);
                if let Some(one) = work.iter_mut().find(|one| one.is_same(&line, hook)) {
                    one.blocks_on_failure |= hook.blocks_on_failure;
                    one.timeout = one.timeout.max(timeout);
                    continue;
                }
                let due = Due {
                    plugin: (callee.plugin, callee.id),
                    line: line.clone(),
                    event: round.event,
                    turn: calls.turn,
                };
                let running = match broken {
                    Some(why) => Some(Err(why.clone())),
                    // An async one costs no time.
                    None => (!hook.runs_async).then(|| self.breakers.ask(due)),
                };
                work.push(SelectedHook {
                    place,
                    hook,
                    line,
                    blocks_on_failure: hook.blocks_on_failure,
                    handler,
                    timeout,
                    running,
                });
            }
        }
        work
    }

    fn is_meant(&self, condition: Option<&Condition>, round: &Round, handler: &Handler) -> bool {
        let environment = &self.with.environment;
        let home = environment.iter().find(|(name, _)| name == "HOME");
        condition.is_none_or(|condition| {
            condition.means(&condition::Call {
                tool: round
                    .input
                    .get("outrigger_tool")
                    .and_then(Value::as_str)
                    .unwrap_or_default(),
                names: &round.names,
                input: round.input.get("tool_input").unwrap_or(&Value::Null),
                cwd: &self.directory,
                project: &handler.project,
                home: home.map(|(_, home)| home.as_ref()),
                may_run: &|line, means| self.with.host.may_run(line, means),
            })
        })
    }

    /// Starts an async command.
    fn run_async(
        &self,
        plugin: &str,
        round: &Round,
        run: impl Future<Output = CommandRun> + Send + 'static,
    ) {
        let (id, session) = (plugin.to_owned(), round.session.clone());
        let notice = Arc::clone(&self.notice);
        let report = move |message: String| {
            tracing::info!("[plugin:{id}] {message}");
            notice(Notice::Command {
                plugin: id,
                session_id: Some(session),
                message,
            });
        };
        let run = async { run.await.answer };
        let name = round.event.name();
        if !self
            .async_hooks
            .start(round.session.clone(), name, run, report.clone())
        {
            report(format!(
                "too many async hooks run: one of {name} was skipped"
            ));
        }
    }

    /// Returns the input of a round's commands. If the transcript cannot be written, its path is empty.
    async fn input(&self, round: &Round) -> Vec<u8> {
        let (host, transcripts) = (Arc::clone(&self.with.host), Arc::clone(&self.transcripts));
        let (session, history) = (round.session.clone(), round.history.clone());
        let write = move || transcripts.write(&session, &history, |one| host.transcript(one));
        let path = tokio::task::spawn_blocking(write).await;
        let path = path.map_err(std::io::Error::other).flatten();
        let path = path.unwrap_or_else(|error| {
            tracing::warn!("[hooks] the conversation cannot be written for commands: {error}");
            std::path::PathBuf::new()
        });
        let mut input = round.input.clone();
        input.insert("transcript_path".to_owned(), json!(path));
        format!("{}\n", Value::Object(input)).into_bytes()
    }

    /// Returns what to start: the program itself if the hook has `args`, otherwise a shell.
    fn program(&self, one: &SelectedHook<'_>) -> Spec {
        let Some(args) = &one.hook.args else {
            return Spec::new(&self.shell).arg("-c").arg(&one.hook.command);
        };
        let (project, root) = (&one.handler.project, &one.handler.root);
        let put_in = |text: &String| {
            let text = text.replace("${CLAUDE_PROJECT_DIR}", &project.to_string_lossy());
            match root {
                Some(root) => text.replace("${CLAUDE_PLUGIN_ROOT}", &root.to_string_lossy()),
                None => text,
            }
        };
        let spec = Spec::new(put_in(&one.hook.command));
        args.iter().fold(spec, |spec, arg| spec.arg(put_in(arg)))
    }

    fn run(
        &self,
        event: HookEvent,
        one: &SelectedHook<'_>,
        policy: &Result<Option<Policy>, String>,
        input: &[u8],
    ) -> impl Future<Output = CommandRun> + use<> {
        let process = Process {
            event,
            command: one.hook.line(),
            timeout: one.timeout,
            wakes: one.hook.wakes,
        };
        let unchanged = Unchanged {
            changed: Arc::clone(&self.with.changed),
            file: one.handler.file.clone(),
            hook: one.hook.clone(),
        };
        let spec = match (&one.running, policy) {
            (Some(Err(why)), _) | (_, Err(why)) => Err(why.clone()),
            (_, Ok(policy)) => Ok(self.spec(event, one, policy.as_ref())),
        };
        let (input, spawner) = (input.to_vec(), self.with.spawner.clone());
        async move {
            let began = Instant::now();
            // There is no data about a command that did not run.
            let (answer, ended) = match spec {
                Err(why) => (Answer::failed(why), Ended::Unclear),
                Ok(spec) => unchanged.run(process, &spawner, spec, input).await,
            };
            CommandRun {
                answer,
                ended,
                millis: began.elapsed().as_secs_f64() * 1000.0,
            }
        }
    }

    fn spec(&self, event: HookEvent, one: &SelectedHook<'_>, policy: Option<&Policy>) -> Spec {
        let mut spec = self
            .program(one)
            .cwd(&self.directory)
            .vars(self.with.environment.clone())
            .var("CLAUDE_PROJECT_DIR", &one.handler.project)
            .label(format!("hook {}", event.name()));
        if let Some(root) = &one.handler.root {
            spec = spec.var("CLAUDE_PLUGIN_ROOT", root);
        }
        let runtimes = Runtimes {
            line: &one.hook.line(),
            may_refuse: event.may_refuse(),
            directory: &self.directory,
            environment: &self.with.environment,
            bun_config: self.transcripts.folder().map(|it| it.join(BUN_CONFIG)),
        };
        for (name, value) in runtimes.variables(one.handler.is_users) {
            spec = spec.var(name.as_ref(), value);
        }
        let Some(policy) = policy.cloned() else {
            return spec.allow_new_privs();
        };
        spec.policy(match self.transcripts.folder() {
            Some(folder) => {
                let mut policy = policy.read(&folder);
                policy.held.push(folder);
                policy
            }
            None => policy,
        })
    }
}

/// Checks that the project files that a hook executes are unchanged since its approval, before and after it runs: a file replaced
/// in between did run, in its sandbox, but the answer is ignored.
struct Unchanged {
    changed: ChangedFn,
    file: PathBuf,
    hook: CommandHook,
}

impl Unchanged {
    async fn run(
        self,
        process: Process,
        spawner: &Spawner,
        spec: Spec,
        input: Vec<u8>,
    ) -> (Answer, Ended) {
        let it = Arc::new(self);
        if let Some(why) = it.look().await {
            return (Answer::not_asked(it.hook.event, why), Ended::Unclear);
        }
        let ran = process.run(spawner, spec, input).await;
        match it.look().await {
            Some(why) => (Answer::not_asked(it.hook.event, why), Ended::Unclear),
            None => ran,
        }
    }

    /// Returns why the answer is ignored.
    async fn look(self: &Arc<Self>) -> Option<String> {
        let it = Arc::clone(self);
        let looked = tokio::task::spawn_blocking(move || (it.changed)(&it.file, &it.hook)).await;
        let why = looked.unwrap_or_else(|error| Some(error.to_string()))?;
        let command = shortened(&self.hook.line());
        Some(format!("`{command}` is not asked: {why}"))
    }
}

/// A command's process, with the data to interpret its end.
struct Process {
    event: HookEvent,
    command: String,
    timeout: Duration,
    wakes: bool,
}

impl Process {
    async fn run(self, spawner: &Spawner, spec: Spec, input: Vec<u8>) -> (Answer, Ended) {
        let limit = MAX_OUTPUT + PER_INPUT * input.len();
        let ended = run_with_input(spawner, spec, Some(input), self.timeout, limit).await;
        let output = match ended {
            Ok(output) => output,
            Err(error) => {
                let shown = shortened(&self.command);
                let why = format!("`{shown}` could not be run: {error}");
                return (Answer::failed(why), Ended::Unclear);
            }
        };
        let how = if output.timed_out {
            Ended::TimedOut
        } else {
            Ended::Answered
        };
        let woken = self.wakes.then(|| woken(&self.command, &output)).flatten();
        let ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let answer = woken.unwrap_or_else(|| read(self.event, &self.command, &output, ms));
        (answer, how)
    }
}
