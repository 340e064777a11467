//! Running the commands of an event.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use outrigger_config::claude_hooks::{CommandHook, HookEvent};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Policy, Spec, run_with_input};

use super::answer::{Answer, MOST_OUTPUT, read};
use super::input::Round;
use super::state::Commands;

/// What is called: these plugins, of which each may have a shorter deadline of its own, at a point.
pub(crate) struct Calls<'a> {
    pub(crate) point: &'a str,
    pub(crate) plugins: &'a [(usize, Option<Duration>)],
    pub(crate) session: Option<&'a str>,
    pub(crate) item: &'a HookPayload,
}

/// What came of the commands of one plugin.
#[derive(Clone, Debug, Default)]
pub(crate) struct Called {
    pub(crate) answer: Answer,
    /// What its slowest command took, in milliseconds; of several events together.
    pub(crate) ms: f64,
    /// Bytes that its commands were given.
    pub(crate) bytes: u64,
}

/// One process.
struct One<'a> {
    /// Among the plugins that are called.
    place: usize,
    hook: &'a CommandHook,
    project: &'a std::path::Path,
    timeout: Duration,
}

impl Commands {
    /// Runs what the plugins have for a point; one result for each. Dropping this ends every process that it started.
    pub(crate) async fn call(&self, calls: Calls<'_>) -> Vec<Called> {
        let mut all = vec![Called::default(); calls.plugins.len()];
        for round in self.rounds(calls.point, calls.session, calls.item) {
            self.run_round(&calls, &round, &mut all).await;
            // What one refuses need not be looked at any more.
            if all.iter().any(|one| one.answer.stop.is_some()) {
                break;
            }
        }
        all
    }

    async fn run_round(&self, calls: &Calls<'_>, round: &Round, all: &mut [Called]) {
        let mut work: Vec<One<'_>> = Vec::new();
        for (place, (plugin, limit)) in calls.plugins.iter().enumerate() {
            let Some(handler) = self.handler(*plugin) else {
                continue;
            };
            for hook in handler.matching(round.event, &round.names) {
                let project = handler.project.as_path();
                // The same command does the same thing: once is enough.
                let known =
                    |one: &One<'_>| one.hook.command == hook.command && one.project == project;
                if !work.iter().any(known) {
                    work.push(One {
                        place,
                        hook,
                        project,
                        timeout: limit.map_or(hook.timeout, |limit| limit.min(hook.timeout)),
                    });
                }
            }
        }
        if work.is_empty() {
            return;
        }
        let input = round.input.to_string().into_bytes();
        let policy = self.with.host.confine(calls.session).await;
        let all_at_once = work
            .iter()
            .map(|one| self.run(round.event, one, &policy, &input));
        let answers = join_all(all_at_once).await;
        let mut slowest = vec![0.0_f64; all.len()];
        for (one, (answer, ms)) in work.iter().zip(answers) {
            let (Some(called), Some(slowest)) =
                (all.get_mut(one.place), slowest.get_mut(one.place))
            else {
                continue;
            };
            called.answer.merge(answer);
            called.bytes += input.len() as u64;
            *slowest = slowest.max(ms);
        }
        for (called, ms) in all.iter_mut().zip(slowest) {
            called.ms += ms;
        }
    }

    fn run<'a>(
        &'a self,
        event: HookEvent,
        one: &One<'a>,
        policy: &Result<Option<Policy>, String>,
        input: &[u8],
    ) -> impl Future<Output = (Answer, f64)> + use<'a> {
        let (command, timeout) = (one.hook.command.as_str(), one.timeout);
        let mut spec = Spec::new("sh")
            .arg("-c")
            .arg(command)
            .cwd(&self.directory)
            .vars(self.with.environment.clone())
            .var("CLAUDE_PROJECT_DIR", one.project)
            .label(format!("hook {}", event.name()));
        let refused = match policy {
            Ok(Some(policy)) => {
                spec = spec.policy(policy.clone());
                None
            }
            Ok(None) => {
                spec = spec.allow_new_privs();
                None
            }
            Err(why) => Some(why.clone()),
        };
        let input = input.to_vec();
        async move {
            let began = Instant::now();
            let answer = match refused {
                Some(why) => Answer::failed(why),
                None => {
                    let input = Some(input);
                    let ended =
                        run_with_input(&self.spawner, spec, input, timeout, MOST_OUTPUT).await;
                    let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                    match ended {
                        Ok(output) => read(event, command, &output, ms),
                        Err(error) => Answer::failed(format!(
                            "`{}` could not be run: {error}",
                            super::answer::shortened(command)
                        )),
                    }
                }
            };
            (answer, began.elapsed().as_secs_f64() * 1000.0)
        }
    }
}
