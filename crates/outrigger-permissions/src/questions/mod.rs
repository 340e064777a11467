//! Open questions: for permission, and of the model to the user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use outrigger_plugins::Grant;
use outrigger_protocol::id::{CallId, PermissionId, PluginId, QuestionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply, Rule};
use outrigger_protocol::provenance::Actor;
use outrigger_protocol::question::{Answer, QuestionRequest};
use outrigger_protocol::tool::ToolCall;
use outrigger_stdx::sync::lock;
use outrigger_tools::PermissionAsk;
use serde_json::Value;
use tokio::sync::oneshot;

/// An answer, with the user's alternative, and the actor who gave it.
pub type Answered = (Reply, Option<String>, Actor);

/// A question that waits for its answer.
#[derive(Debug)]
pub struct OpenQuestion {
    /// As clients see it.
    pub request: PermissionRequest,
    /// The question that the rules are matched against.
    pub ask: PermissionAsk,
    /// The rules, in rising precedence, without "always" answers.
    pub rules: Vec<Vec<Rule>>,
    /// "Always" for another question does not answer it: it is about a hook's requirement, a missing grant or a start-up file.
    pub alone: bool,
    /// Receives the answer.
    pub answer: oneshot::Sender<Answered>,
}

/// The questions of an agent, and the answers given since the program started.
#[derive(Debug, Default)]
pub struct Questions {
    /// Plugins that set rules for agents without the grant for wider ones.
    pub rule_givers: Vec<PluginId>,
    /// Open questions.
    pub open: Mutex<HashMap<PermissionId, OpenQuestion>>,
    /// Arguments of running calls that are asked about; the log has them shortly after.
    calls: Mutex<HashMap<(SessionId, CallId), (String, Value)>>,
    /// Questions that only the user answers: a user rule asks, or a command hook requires it.
    pub firm: Mutex<HashMap<PermissionId, Firmness>>,
    /// Grants that the user gave by answering "always", until the program ends.
    pub granted: Mutex<BTreeSet<(PluginId, Grant)>>,
    /// Rules that the user created by answering "always", until the program ends.
    pub approvals: Mutex<Vec<Rule>>,
    /// Like [`Self::approvals`], for questions that tools of plugins ask: by [`PermissionAsk::asked_by`].
    plugin_approvals: Mutex<BTreeMap<String, Vec<Rule>>>,
    /// Hash of each MCP tool when the user answered "always" about it.
    pub allowed_as: Mutex<BTreeMap<String, String>>,
    /// Files that make something run later and that the user let tools change until the program ends.
    pub startup: Mutex<BTreeSet<String>>,
}

/// Who may answer a restricted question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmness {
    /// No command hook.
    Asked,
    /// No plugin either, whatever its grants: the question is about a plugin's action.
    Person,
    /// No plugin either: the question is about a file that makes something run later.
    Startup,
}

impl Questions {
    /// Creates it without questions. `givers` set rules for agents without the grant for wider ones; each with the name of its
    /// table.
    pub fn new(givers: Vec<(PluginId, String)>) -> Self {
        Self {
            rule_givers: givers.into_iter().map(|(plugin, _)| plugin).collect(),
            ..Self::default()
        }
    }

    /// Registers a call before questions about it.
    pub fn begins(&self, call: &ToolCall, input: &Value) {
        let key = (call.session_id.clone(), call.call_id.clone());
        lock(&self.calls).insert(key, (call.tool.clone(), input.clone()));
    }

    /// Removes a call.
    pub fn over(&self, call: &ToolCall) {
        lock(&self.calls).remove(&(call.session_id.clone(), call.call_id.clone()));
    }

    /// Returns tool and arguments of a running call.
    pub fn call(&self, session: &str, call: &str) -> Option<(String, Value)> {
        let key = (SessionId(session.to_owned()), CallId(call.to_owned()));
        lock(&self.calls).get(&key).cloned()
    }

    /// Revokes an "always" for a tool that changed since (`now` is its hash, `None` if it is gone). Returns whether there was
    /// one.
    pub fn take_back_changed(&self, tool: &str, now: Option<&str>) -> bool {
        let mut allowed_as = lock(&self.allowed_as);
        let is_changed = allowed_as
            .get(tool)
            .is_some_and(|was| Some(was.as_str()) != now);
        if is_changed {
            allowed_as.remove(tool);
            lock(&self.approvals).retain(|rule| rule.permission != tool);
        }
        is_changed
    }

    /// Returns the "always" answers that count for a question.
    pub fn approvals_for(&self, ask: &PermissionAsk) -> Vec<Rule> {
        let mut rules = lock(&self.approvals).clone();
        if let Some(tool) = &ask.asked_by {
            let own = lock(&self.plugin_approvals).get(tool).cloned();
            rules.extend(own.unwrap_or_default());
        }
        rules
    }

    /// Stores an "always" answer to a question.
    pub fn approve(&self, ask: &PermissionAsk, rules: impl Iterator<Item = Rule>) {
        match &ask.asked_by {
            Some(tool) => {
                let mut own = lock(&self.plugin_approvals);
                own.entry(tool.clone()).or_default().extend(rules);
            }
            None => lock(&self.approvals).extend(rules),
        }
    }

    /// Returns whether the user granted the plugin this until the program ends.
    pub fn is_granted(&self, plugin: &PluginId, grant: Grant) -> bool {
        lock(&self.granted).contains(&(plugin.clone(), grant))
    }

    /// Prevents command hooks from answering this question until the guard is dropped.
    pub fn hold_firm(&self, id: &PermissionId, firmness: Firmness) -> Firm<'_> {
        lock(&self.firm).insert(id.clone(), firmness);
        Firm {
            questions: self,
            id: id.clone(),
        }
    }

    /// Returns whether no command hook may answer it.
    pub fn is_firm(&self, id: &str) -> bool {
        lock(&self.firm).contains_key(&PermissionId(id.to_owned()))
    }
}

/// A question that no command hook may answer, while plugins are asked about it.
pub struct Firm<'a> {
    questions: &'a Questions,
    id: PermissionId,
}

impl Drop for Firm<'_> {
    fn drop(&mut self) {
        lock(&self.questions.firm).remove(&self.id);
    }
}

/// The user's answers in order, or `None` if the question is dismissed.
pub type UserAnswer = Option<Vec<Answer>>;

/// Open questions of the model, in the order in which they arrived.
#[derive(Debug, Default)]
pub struct UserQuestions {
    /// With the receiver of the answer.
    pub open: Mutex<BTreeMap<QuestionId, (QuestionRequest, oneshot::Sender<UserAnswer>)>>,
}
