//! Questions that wait for an answer: for permission, and those of the model to the user.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Mutex;

use outrigger_plugins::Grant;
use outrigger_protocol::id::{CallId, PermissionId, PluginId, QuestionId, SessionId};
use outrigger_protocol::permission::{PermissionRequest, Reply, Rule};
use outrigger_protocol::provenance::Actor;
use outrigger_protocol::question::{Answer, QuestionRequest};
use outrigger_protocol::tool::ToolCall;
use outrigger_tools::PermissionAsk;
use outrigger_workspace::sync::lock;
use serde_json::Value;
use tokio::sync::oneshot;

/// An answer, with what the user wants done instead, and who gave it.
pub type Answered = (Reply, Option<String>, Actor);

/// A question that waits for its answer.
#[derive(Debug)]
pub struct OpenQuestion {
    /// As clients see it.
    pub request: PermissionRequest,
    /// What the rules are held against.
    pub ask: PermissionAsk,
    /// The rules, in rising precedence, without what was answered by "always".
    pub rules: Vec<Vec<Rule>>,
    /// "Always" for another question does not answer it: what a hook, a missing grant or a start-up file needs approval for.
    pub alone: bool,
    /// Takes the answer.
    pub answer: oneshot::Sender<Answered>,
}

/// The questions of an agent, and what was answered until this program ends.
#[derive(Debug, Default)]
pub struct Questions {
    /// Plugins that gave agents rules without the grant for wider ones.
    pub rule_givers: Vec<PluginId>,
    /// Rules that plugins gave to sessions since the start.
    pub given_rules: Mutex<BTreeMap<SessionId, Vec<Rule>>>,
    /// Those that wait.
    pub open: Mutex<HashMap<PermissionId, OpenQuestion>>,
    /// Arguments of calls that run, as they are asked about; the log has them a moment later.
    calls: Mutex<HashMap<(SessionId, CallId), (String, Value)>>,
    /// Those that only the user answers: a rule of the user's asks, or a command hook requires it.
    pub firm: Mutex<HashMap<PermissionId, Firmness>>,
    /// What the user let plugins do until this program ends, by answering "always".
    pub granted: Mutex<BTreeSet<(PluginId, Grant)>>,
    /// Rules that the user made by answering "always", until this program ends.
    pub approvals: Mutex<Vec<Rule>>,
    /// What each tool of an MCP server was when the user answered "always" about it, as a hash.
    pub allowed_as: Mutex<BTreeMap<String, String>>,
    /// Files that make something run later and that the user let tools change until this program ends.
    pub startup: Mutex<BTreeSet<String>>,
}

/// Who may answer a question that is not everybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Firmness {
    /// No command hook.
    Asked,
    /// No plugin either, whatever it is granted: the question is about what a plugin did.
    Person,
    /// The same: it is about a file that makes something run later.
    Startup,
}

impl Questions {
    /// Before the first one. `givers` gave agents rules without the grant for wider ones; each with the name of its table.
    pub fn new(givers: Vec<(PluginId, String)>) -> Self {
        Self {
            rule_givers: givers.into_iter().map(|(plugin, _)| plugin).collect(),
            ..Self::default()
        }
    }

    /// A call is about to be asked about.
    pub fn begins(&self, call: &ToolCall, input: &Value) {
        let key = (call.session_id.clone(), call.call_id.clone());
        lock(&self.calls).insert(key, (call.tool.clone(), input.clone()));
    }

    /// It is over.
    pub fn over(&self, call: &ToolCall) {
        lock(&self.calls).remove(&(call.session_id.clone(), call.call_id.clone()));
    }

    /// Tool and arguments of a call that runs.
    pub fn call(&self, session: &str, call: &str) -> Option<(String, Value)> {
        let key = (SessionId(session.to_owned()), CallId(call.to_owned()));
        lock(&self.calls).get(&key).cloned()
    }

    /// Takes back what the user allowed of a tool by "always" where the tool is not what it was then (`now` is its hash, and none
    /// where it is gone). Whether there was something.
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

    /// Whether the user lets the plugin do this until the program ends.
    pub fn is_granted(&self, plugin: &PluginId, grant: Grant) -> bool {
        lock(&self.granted).contains(&(plugin.clone(), grant))
    }

    /// No command hook answers this question in the user's place until the guard is dropped.
    pub fn hold_firm(&self, id: &PermissionId, firmness: Firmness) -> Firm<'_> {
        lock(&self.firm).insert(id.clone(), firmness);
        Firm {
            questions: self,
            id: id.clone(),
        }
    }

    /// Whether no command hook may answer it in the user's place.
    pub fn is_firm(&self, id: &str) -> bool {
        lock(&self.firm).contains_key(&PermissionId(id.to_owned()))
    }
}

/// A question that no command hook answers in the user's place, while plugins are asked about it.
pub struct Firm<'a> {
    questions: &'a Questions,
    id: PermissionId,
}

impl Drop for Firm<'_> {
    fn drop(&mut self) {
        lock(&self.questions.firm).remove(&self.id);
    }
}

/// What the user makes of a question: the answers in order, or nothing when it is put away.
pub type UserAnswer = Option<Vec<Answer>>;

/// Questions that wait, in the order in which they came.
#[derive(Debug, Default)]
pub struct UserQuestions {
    /// With who takes the answer.
    pub open: Mutex<BTreeMap<QuestionId, (QuestionRequest, oneshot::Sender<UserAnswer>)>>,
}
