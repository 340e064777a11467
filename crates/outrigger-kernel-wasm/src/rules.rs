//! Stateless decisions (permissions, routing, admission), and breakers, which have state.

use std::collections::BTreeMap;

use outrigger_kernel::admission::{
    Candidate, Entry, Machine, Rules as AdmissionRules, Source, decide,
};
use outrigger_kernel::breaker::{Breaker, Ended, Gate, Rules, SavedBreaker, Turned};
use outrigger_kernel::permission::paths::{Names, deciding};
use outrigger_kernel::permission::{evaluate, is_disabled};
use outrigger_kernel::routing::{Call, Route, bound};
use outrigger_protocol::Millis;
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::permission::{Action, Rule};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{Answer, Empty, text};

/// Operations that depend only on their arguments.
#[derive(Deserialize)]
pub(crate) enum RuleOp {
    /// Returns the action for a request.
    #[serde(rename = "rule.permission")]
    Permission {
        permission: String,
        pattern: String,
        /// In ascending precedence.
        rules: Vec<Rule>,
    },
    /// The same for a file: by the requested name, and by its other names for rules that deny or ask.
    #[serde(rename = "rule.path")]
    Path {
        permission: String,
        asked: String,
        #[serde(default)]
        others: Vec<String>,
        rules: Vec<Rule>,
    },
    /// Returns whether a tool is offered at all.
    #[serde(rename = "rule.offered")]
    Offered { tool: String, rules: Vec<Rule> },
    /// Returns the index of the rule that binds a call to a provider, or nothing.
    #[serde(rename = "rule.route")]
    Routed {
        contract: Contract,
        tool: String,
        agent: String,
        #[serde(default)]
        callers: Vec<String>,
        directory: String,
        /// The file or folder of the call, if it names one.
        place: Option<String>,
        routes: Vec<Route>,
    },
    /// Returns which plugins should run, and why the others should not.
    #[serde(rename = "rule.admission")]
    Admission {
        candidates: Vec<GivenCandidate>,
        #[serde(default)]
        rules: AdmissionRules,
        #[serde(default)]
        machine: Machine,
    },
}

/// A plugin that is bundled with the host.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenCandidate {
    id: String,
    source: Source,
    place: String,
    #[serde(default)]
    order: usize,
    #[serde(default)]
    depends_on: Vec<String>,
    enabled_by_default: Option<bool>,
}

impl GivenCandidate {
    fn read(self) -> Candidate {
        Candidate {
            order: self.order,
            depends_on: self.depends_on,
            enabled_by_default: self.enabled_by_default.unwrap_or(true),
            ..Candidate::new(&self.id, self.source, &self.place)
        }
    }
}

pub(crate) fn answer(op: RuleOp) -> Answer {
    Ok(match op {
        RuleOp::Permission {
            permission,
            pattern,
            rules,
        } => text(&evaluate(&permission, &pattern, &[&rules])),
        RuleOp::Path {
            permission,
            asked,
            others,
            rules,
        } => {
            let names = others.into_iter().fold(Names::new(asked), Names::also);
            let rule = deciding(&permission, &names, &rules);
            text(&rule.map_or(Action::Ask, |(_, rule)| rule.action))
        }
        RuleOp::Offered { tool, rules } => text(&!is_disabled(&tool, &[&rules])),
        RuleOp::Routed {
            contract,
            tool,
            agent,
            callers,
            directory,
            place,
            routes,
        } => {
            let call = Call {
                tool: &tool,
                agent: &agent,
                callers: &callers,
                directory: &directory,
            };
            text(&bound(&routes, contract, place.as_deref(), &call))
        }
        RuleOp::Admission {
            candidates,
            rules,
            machine,
        } => {
            let candidates = candidates.into_iter().map(GivenCandidate::read);
            let entries = decide(candidates.collect(), &rules, &machine);
            let entry = |it: &Entry| {
                json!({
                    "id": it.candidate.id, "place": it.candidate.place, "enabled": it.is_enabled(),
                    "layer": it.layer(), "why": it.disabled,
                })
            };
            text(&entries.iter().map(entry).collect::<Vec<_>>())
        }
    })
}

/// Operations about breakers, each named by its plugin and hook.
#[derive(Deserialize)]
pub(crate) enum BreakerOp {
    /// Returns whether a call may be made.
    #[serde(rename = "breaker.ask")]
    Ask { name: String, now: Millis },
    /// Reports how an admitted call ended.
    #[serde(rename = "breaker.ended")]
    Ended {
        name: String,
        /// Whether it was admitted as a trial.
        trial: bool,
        how: HowEnded,
        now: Millis,
    },
    /// Returns all breakers in serialised form.
    #[serde(rename = "breaker.keep")]
    Keep(Empty),
    /// Restores them.
    #[serde(rename = "breaker.recall")]
    Recall {
        breakers: BTreeMap<String, SavedBreaker>,
        now: Millis,
    },
}

/// How a call ended, for its breaker.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HowEnded {
    Answered,
    TimedOut,
    Unclear,
}

/// The breakers of a host.
#[derive(Default)]
pub(crate) struct Breakers {
    rules: Rules,
    all: BTreeMap<String, Breaker>,
}

impl Breakers {
    pub(crate) fn answer(&mut self, op: BreakerOp) -> Answer {
        let answer = match op {
            BreakerOp::Ask { name, now } => match self.all.entry(name).or_default().ask(now) {
                Gate::Call => json!({ "gate": "call" }),
                Gate::Trial => json!({ "gate": "trial" }),
                Gate::Skip { until } => json!({ "gate": "skip", "until": until }),
            },
            BreakerOp::Ended {
                name,
                trial,
                how,
                now,
            } => {
                let how = match how {
                    HowEnded::Answered => Ended::Answered,
                    HowEnded::TimedOut => Ended::TimedOut,
                    HowEnded::Unclear => Ended::Unclear,
                };
                let gate = if trial { Gate::Trial } else { Gate::Call };
                let breaker = self.all.entry(name).or_default();
                match how.turn(breaker, gate, now, &self.rules) {
                    Some(Turned::Open { until }) => json!({ "turned": "open", "until": until }),
                    Some(Turned::Closed) => json!({ "turned": "closed" }),
                    None => Value::Null,
                }
            }
            BreakerOp::Keep(Empty {}) => {
                let kept = self
                    .all
                    .iter()
                    .filter_map(|(name, it)| Some((name.clone(), json!(it.keep()?))));
                Value::Object(kept.collect())
            }
            BreakerOp::Recall { breakers, now } => {
                let recalled = breakers
                    .into_iter()
                    .map(|(name, kept)| (name, Breaker::recall(kept, now, &self.rules)));
                self.all = recalled.collect();
                Value::Null
            }
        };
        Ok(answer.to_string())
    }
}
