//! Actions that only the user can allow: rerunning a command outside its sandbox after it failed there, and answering an MCP
//! server with the model.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;

use outrigger_protocol::permission::{Action, PermissionRequest};
use outrigger_protocol::provenance::Deed;
use outrigger_tools::{PermissionAsk, SampleRequest};
use serde_json::{Value, json};

use super::Asker;
use crate::permission::answering::Answering;
use crate::permission::audit::Decided;
use crate::state::{AgentState, ProjectContext};
use outrigger_permissions::questions::Firmness;
use outrigger_session_state::ids;

/// Maximum number of times that a question about one command is repeated because its files keep changing.
const MAX_QUESTIONS: usize = 3;
/// Note for a command line whose files cannot be watched.
const UNSEEN: &str = "it names more files than are looked at, and something else may change them while you are asked; ";
/// Permission for a command that runs outside its sandbox.
const OUTSIDE: &str = "sandbox";
/// Permission for an answer of the model to an MCP server.
const SAMPLING: &str = "mcp_sampling";

/// Returns what of a file no other process can put back: its inode and the time of its last change, by its own name and by what a link
/// leads to, and those of the folders on the way. One that is exchanged back and forth has the same content at each look.
fn identity(file: &Path, project: &Path) -> String {
    let way = file.ancestors().skip(1);
    let way = way.take_while(|it| it.starts_with(project) && *it != project);
    let links = [file].into_iter().chain(way).map(fs::symlink_metadata);
    let all = links.chain([fs::metadata(file)]).flatten();
    let stamps = all.map(|it| {
        format!(
            "{}:{}:{}.{}",
            it.dev(),
            it.ino(),
            it.ctime(),
            it.ctime_nsec()
        )
    });
    stamps.collect::<Vec<_>>().join(",")
}

/// Returns a file that changed or that only one of the lists contains.
fn first_changed(before: &[String], now: &[String]) -> String {
    let of_now = now.iter().filter(|it| !before.contains(it));
    let of_before = before.iter().filter(|it| !now.contains(it));
    let first = of_now.chain(of_before).next();
    let file = first.and_then(|it| it.rsplit_once(' ')).map(|it| it.0);
    file.unwrap_or("a file that it runs").to_owned()
}

impl AgentState {
    /// Asks whether a command that failed in its sandbox may run once more outside it. The approval applies to the project files
    /// that the command names as they are while the question is open: another command or a plugin may replace them before the
    /// answer. If a file changes, the question is asked again and says so.
    pub(crate) async fn ask_person_outside(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        command: &str,
        why: &str,
        printed: &str,
    ) -> bool {
        let mut shown = self.project.files_of_line(command).await;
        let mut changed: Option<String> = None;
        for _ in 0..MAX_QUESTIONS {
            let again = match (changed.take(), &shown) {
                (Some(file), _) => {
                    format!("{file} was changed by something else while you were asked; ")
                }
                (None, None) => UNSEEN.to_owned(),
                (None, Some(_)) => String::new(),
            };
            let metadata = json!({
                "command": command,
                "reason": format!(
                    "{again}it failed in the sandbox of commands ({why}); what it starts may have been changed by that; \
                     run it once more, outside of the sandbox?"
                ),
                "output": printed,
            });
            if !self.ask_person(asker, (OUTSIDE, command), metadata).await {
                return false;
            }
            let now = self.project.files_of_line(command).await;
            if now == shown {
                return true;
            }
            let (before, after) = (shown.as_deref(), now.as_deref());
            changed = Some(first_changed(
                before.unwrap_or_default(),
                after.unwrap_or_default(),
            ));
            shown = now;
        }
        false
    }

    /// Asks whether the session's model may answer an MCP server.
    pub(crate) async fn ask_person_to_sample(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        request: &SampleRequest,
    ) -> bool {
        let metadata = json!({
            "server": request.server,
            "reason": "an MCP server wants your model to answer this, at your cost, and gets the answer",
            "system": request.system,
            "messages": request.messages,
        });
        self.ask_person(asker, (SAMPLING, &request.server), metadata)
            .await
    }

    /// Asks the user once for an action that only the user can allow: no rule, plugin or `--auto` allows it, but a rule of that
    /// name can deny it.
    async fn ask_person(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        (permission, pattern): (&str, &str),
        metadata: Value,
    ) -> bool {
        let denied = self
            .permissions
            .access
            .evaluate(permission, pattern, asker.rules)
            == Action::Deny;
        if denied || self.permissions.answering != Answering::Ask {
            return false;
        }
        let request = PermissionRequest {
            id: ids::permission(),
            session_id: asker.session_id.clone(),
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            always: Vec::new(),
            metadata: self.permissions.with_call(metadata, permission, asker),
            tool: asker.tool.clone(),
            provenance: asker.causes.clone(),
            missing_grant: None,
        };
        let _firm = self
            .permissions
            .questions
            .hold_firm(&request.id, Firmness::Person);
        let asked = PermissionAsk {
            permission: permission.to_owned(),
            patterns: vec![pattern.to_owned()],
            ..PermissionAsk::default()
        };
        asker.reported().await;
        let answer = self.ask_user(request, (asked, true), asker.rules, Answering::Ask);
        let answer = answer.await;
        let by = if answer.is_ok() { "allow" } else { "deny" };
        let mut causes = asker.causes.clone();
        for actor in answer.iter().flat_map(|it| &it.by) {
            causes = causes.with(actor.clone(), Deed::Answered, None);
        }
        self.audit_decision(Decided {
            session: asker.session_id,
            call: asker.tool.as_ref().map(|tool| tool.call_id.as_str()),
            permission,
            patterns: &[pattern.to_owned()],
            decision: by,
            by: "the user",
            causes,
        });
        answer.is_ok()
    }
}

impl ProjectContext {
    /// Returns the project files that a command line names, each as its name, a blank, and a digest of its content with its
    /// [`identity`]. `None`: more files than are checked.
    async fn files_of_line(&self, command: &str) -> Option<Vec<String>> {
        let entry = json!({ "command": ["sh", "-c", command] });
        let (project, home) = (self.location.directory.clone(), self.folders.home.clone());
        let look = move || {
            let files = outrigger_config::files_run_by(&entry, &project, &home)?;
            let files = files.into_iter().map(|file| {
                let path = file.rsplit_once(' ').map_or(file.as_str(), |it| it.0);
                let identity = identity(&project.join(path), &project);
                format!("{file},{identity}")
            });
            Some(files.collect())
        };
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }
}
