//! Calls that changed after hooks had answered: the hooks are asked again, once, about the final call.
//!
//! All hooks of an event run concurrently on the same input, so none of them has seen the changes of another, nor has a hook
//! before a plugin that changes the call.

use serde_json::Value;

use super::{Answer, Permission};
use crate::breakers::Line;
use crate::names::to_ours;

/// Arguments that a command has set for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    line: Line,
    /// In Outrigger's keys.
    args: Value,
    allows: bool,
}

impl Rewrite {
    pub(crate) fn of(answer: &Answer, line: &Line, tool: &str) -> Option<Self> {
        let args = answer.updated.as_ref()?;
        Some(Self {
            line: line.clone(),
            args: to_ours(tool, args),
            allows: answer.permission == Some(Permission::Allow),
        })
    }
}

/// The subject of the second pass.
#[derive(Clone, Debug, PartialEq)]
pub struct SecondPass {
    /// The final arguments of the call.
    args: Value,
    /// Commands that set these arguments themselves.
    wrote: Vec<Line>,
    /// One of them also allows the call.
    allowed: bool,
}

impl SecondPass {
    /// Creates it from the final arguments and the changes by commands.
    #[must_use]
    pub fn new(args: Value, rewrites: &[Rewrite]) -> Self {
        let own = rewrites.iter().filter(|it| it.args == args);
        let (mut wrote, mut allowed) = (Vec::new(), false);
        for rewrite in own {
            wrote.push(rewrite.line.clone());
            allowed |= rewrite.allows;
        }
        Self {
            args,
            wrote,
            allowed,
        }
    }

    /// Returns whether a command is asked again; the one that set the arguments knows them.
    pub(crate) fn is_asked(&self, line: &Line) -> bool {
        !self.wrote.contains(line)
    }

    /// Returns whether the call is allowed by the command that made it what it is. What was allowed before is a different
    /// call.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// Turns an answer with other arguments into a refusal: there is no third pass.
    pub(crate) fn settle(&self, mut answer: Answer, tool: &str, command: &str) -> Answer {
        if let Some(args) = answer.updated.take()
            && to_ours(tool, &args) != self.args
        {
            answer.deny(format!(
                "`{command}` wants other arguments for a call that something else has changed: the call is refused, since only one of them can change it"
            ));
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_made_the_call_is_not_asked_again_and_nobody_changes_it_once_more() {
        let line = |name: &str| ("/p".into(), name.to_owned());
        let updated = |args: Value| Answer {
            updated: Some(args),
            permission: Some(Permission::Allow),
            ..Answer::default()
        };
        let theirs = json!({"file_path": "/p/a", "content": "x"});
        let rewrite = Rewrite::of(&updated(theirs.clone()), &line("one"), "write").unwrap();
        let second_pass = SecondPass::new(
            json!({"filePath": "/p/a", "content": "x"}),
            std::slice::from_ref(&rewrite),
        );
        assert!(
            second_pass.is_allowed()
                && !second_pass.is_asked(&line("one"))
                && second_pass.is_asked(&line("two"))
        );
        let same = second_pass.settle(updated(theirs), "write", "two");
        assert_eq!((same.updated, same.refuses), (None, false));
        let other = second_pass.settle(
            updated(json!({"file_path": "/p/b", "content": "x"})),
            "write",
            "two",
        );
        assert!(other.updated.is_none() && other.refuses);
        // Another command has changed it after that.
        let second_pass = SecondPass::new(json!({"filePath": "/p/c", "content": "x"}), &[rewrite]);
        assert!(!second_pass.is_allowed() && second_pass.is_asked(&line("one")));
    }
}
