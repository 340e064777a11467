//! The guard: protects values that no chain of hooks may change, whatever its handlers answer (C3, C9). Pure; it is
//! applied after every answer and once more at the end of a chain.
//!
//! These of C9's rules concern the hooks of an agent without a browser: the path guard and the command policy (4, 5) run
//! after `tool.before_call`, on the arguments as the hooks left them, and what is approved then cannot be changed
//! ([`Rule::Approval`]); `failed_verify` (7) is preserved ([`Rule::Verify`]), and so is any other failure
//! ([`Rule::Failure`]). The rules of the bridge (1 to 3, 8) need no guard: its points only notify, so no hook can change
//! anything there. The lease rule (6) is checked by the browser's provider after every hook, and no point exposes a lease.

mod request;

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde_json::Value;

pub(crate) use self::request::uphold_request;
pub use self::request::{is_guarded_header, is_guarded_option};
use crate::hooks::HookPoint;

/// Why an answer, or a part of it, has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The point does not allow it (C3).
    Rights,
    /// The result would not have the type that the host expects there.
    Shape,
    /// The message's identity.
    Identity,
    /// The refusal of an earlier plugin stands.
    Refusal,
    /// A failure never becomes a success.
    Failure,
    /// `failed_verify` never becomes a success (C9, 7).
    Verify,
    /// What was approved is what runs (C9, 5).
    Approval,
    /// Whose account pays for a model request, and which model answers.
    Account,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 8] = [
        Self::Rights,
        Self::Shape,
        Self::Identity,
        Self::Refusal,
        Self::Failure,
        Self::Verify,
        Self::Approval,
        Self::Account,
    ];

    /// Returns its name in the audit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rights => "rights",
            Self::Shape => "shape",
            Self::Identity => "identity",
            Self::Refusal => "refusal",
            Self::Failure => "failure",
            Self::Verify => "verify",
            Self::Approval => "approval",
            Self::Account => "account",
        }
    }
}

/// A violation of a rule. It has been undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The rule.
    pub rule: Rule,
    /// Description of the attempt.
    pub message: String,
}

/// When a field is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// Always.
    Always,
    /// Once it has this value.
    Says(Word),
    /// If it is present.
    There,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    True,
    /// If the exit code is not 0, or missing because the command was killed.
    Failed,
    Text(&'static str),
}

impl Word {
    fn is(self, value: &Value) -> bool {
        match self {
            Self::True => value == &Value::Bool(true),
            Self::Failed => value.is_null() || value.as_f64().is_some_and(|code| code != 0.0),
            Self::Text(text) => value.as_str() == Some(text),
        }
    }
}

/// A field of an output that hooks cannot change, although the field around it is open to them.
#[derive(Clone, Copy, Debug)]
pub struct GuardedField {
    /// Hook point.
    pub point: HookPoint,
    /// Path of the field.
    pub path: &'static [&'static str],
    /// Rule that protects it.
    pub rule: Rule,
    when: When,
}

/// Every guarded field.
// A table is read by its columns.
#[rustfmt::skip]
pub const PLACES: &[GuardedField] = &[
    GuardedField { point: HookPoint::RunBeforeStart, path: &["message", "id"], rule: Rule::Identity, when: When::Always },
    GuardedField { point: HookPoint::RunBeforeStart, path: &["message", "sessionID"], rule: Rule::Identity, when: When::Always },
    GuardedField { point: HookPoint::RunBeforeStart, path: &["message", "role"], rule: Rule::Identity, when: When::Always },
    GuardedField { point: HookPoint::ToolBeforePermission, path: &["status"], rule: Rule::Refusal, when: When::Says(Word::Text("deny")) },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["isError"], rule: Rule::Failure, when: When::Says(Word::True) },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "isError"], rule: Rule::Failure, when: When::Says(Word::True) },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "exit"], rule: Rule::Failure, when: When::Says(Word::Failed) },
    // The display of a change.
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "diff"], rule: Rule::Identity, when: When::There },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "filediff"], rule: Rule::Identity, when: When::There },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "files"], rule: Rule::Identity, when: When::There },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["status"], rule: Rule::Verify, when: When::Says(Word::Text("failed_verify")) },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "status"], rule: Rule::Verify, when: When::Says(Word::Text("failed_verify")) },
    GuardedField { point: HookPoint::ToolAfterResult, path: &["metadata", "verify"], rule: Rule::Verify, when: When::Says(Word::Text("failed_verify")) },
];

/// The point at which variables are added to a command that was approved already.
const SHELL: HookPoint = HookPoint::ExecuteBeforeShell;

/// Variables that make a program load or run other code first, or run another program instead: of the loader, of shells,
/// of interpreters. A trailing `*` matches any rest. `PATH` and similar variables stay open: plugins set up tool chains
/// with them, as in OpenCode.
const CODE_LOADERS: &[&str] = &[
    "LD_*",
    "DYLD_*",
    "GLIBC_TUNABLES",
    "NODE_OPTIONS",
    "NODE_REPL_EXTERNAL_MODULE",
    "BUN_OPTIONS",
    "BUN_INSPECT*",
    "BUN_PRELOAD",
    "BASH_ENV",
    "BASH_FUNC_*",
    "BASHOPTS",
    "SHELLOPTS",
    "ENV",
    "ZDOTDIR",
    "PROMPT_COMMAND",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PERL5OPT",
    "RUBYOPT",
];

/// Returns whether a variable of this name makes other code run (C9, 5). This is the only list: it is applied to what a
/// hook adds to an approved command, and to the environment of every sandboxed process.
#[must_use]
pub fn runs_other_code(variable: &str) -> bool {
    CODE_LOADERS
        .iter()
        .any(|loader| match loader.strip_suffix('*') {
            Some(start) => variable.starts_with(start),
            None => variable == *loader,
        })
}

/// Values of the guarded fields of an output.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GuardedValues {
    places: Vec<(usize, Option<Value>)>,
    variables: Vec<(String, Value)>,
}

fn at<'a>(output: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(output, |place, key| place.get(key))
}

/// Saves the guarded fields of an output at this point.
#[must_use]
pub fn keep(point: HookPoint, output: &Value) -> GuardedValues {
    let places = PLACES
        .iter()
        .enumerate()
        .filter(|(_, place)| place.point == point)
        .filter_map(|(i, place)| {
            let value = at(output, place.path);
            let guarded = match place.when {
                When::Always => true,
                When::Says(word) => value.is_some_and(|value| word.is(value)),
                When::There => value.is_some(),
            };
            guarded.then(|| (i, value.cloned()))
        })
        .collect();
    let variables = match output.get("env") {
        Some(Value::Object(env)) if point == SHELL => env
            .iter()
            .filter(|(name, _)| runs_other_code(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        _ => Vec::new(),
    };
    GuardedValues { places, variables }
}

/// Restores changed guarded fields and reports them.
pub fn uphold(point: HookPoint, kept: &GuardedValues, output: &mut Value) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (i, value) in &kept.places {
        let Some(place) = PLACES.get(*i) else {
            continue;
        };
        if at(output, place.path) == value.as_ref() {
            continue;
        }
        put(output, place.path, value.as_ref());
        breaches.push(Breach {
            rule: place.rule,
            message: format!("/{} may not be changed at {}", place.path.join("/"), point),
        });
    }
    if point == SHELL {
        variables(kept, output, &mut breaches);
    }
    breaches
}

fn variables(kept: &GuardedValues, output: &mut Value, breaches: &mut Vec<Breach>) {
    let Some(Value::Object(env)) = output.get_mut("env") else {
        return;
    };
    let before = |name: &str| kept.variables.iter().find(|(n, _)| n == name);
    let changed: Vec<String> = env
        .iter()
        .filter(|(name, value)| {
            runs_other_code(name) && before(name).is_none_or(|(_, old)| old != *value)
        })
        .map(|(name, _)| name.clone())
        .collect();
    for name in changed {
        match before(&name) {
            Some((_, old)) => env.insert(name.clone(), old.clone()),
            None => env.shift_remove(&name),
        };
        breaches.push(Breach {
            rule: Rule::Approval,
            message: format!("{name} would run other code than what was approved"),
        });
    }
}

// Replaces intermediate values by objects: the path existed before.
fn put(output: &mut Value, path: &[&str], value: Option<&Value>) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut place = output;
    for key in parents {
        if !place.is_object() {
            *place = Value::Object(serde_json::Map::new());
        }
        let Value::Object(fields) = place else {
            return;
        };
        place = fields.entry((*key).to_owned()).or_insert(Value::Null);
    }
    if !place.is_object() {
        *place = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(fields) = place {
        match value {
            Some(value) => {
                fields.insert((*last).to_owned(), value.clone());
            }
            None => {
                fields.shift_remove(*last);
            }
        }
    }
}
