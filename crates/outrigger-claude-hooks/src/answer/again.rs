//! A call that was changed after hooks had answered: they are asked again, once, about the call as it will be made.
//!
//! All hooks of an event run at the same time on the same input, so what one of them makes of the call none of the others has
//! seen, and neither has a hook in front of a plugin that changes it.

use serde_json::Value;

use super::{Answer, Permission};
use crate::breakers::Line;
use crate::names::to_ours;

/// Arguments that a command has given a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewrite {
    line: Line,
    /// In our keys.
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

/// What the hooks are asked about again.
#[derive(Clone, Debug, PartialEq)]
pub struct Again {
    /// The arguments that the call is to be made with.
    args: Value,
    /// Commands that made these arguments themselves.
    wrote: Vec<Line>,
    /// One of them allows the call as well.
    allowed: bool,
}

impl Again {
    /// The call as it is to be made now, and what commands made of it.
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

    /// Who made the arguments knows them.
    pub(crate) fn is_asked(&self, line: &Line) -> bool {
        !self.wrote.contains(line)
    }

    /// The call is allowed by who made it what it is. What was allowed before is another call.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        self.allowed
    }

    /// An answer that wants other arguments still refuses: there is no third time.
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
        let again = Again::new(
            json!({"filePath": "/p/a", "content": "x"}),
            std::slice::from_ref(&rewrite),
        );
        assert!(
            again.is_allowed() && !again.is_asked(&line("one")) && again.is_asked(&line("two"))
        );
        let same = again.settle(updated(theirs), "write", "two");
        assert_eq!((same.updated, same.refuses), (None, false));
        let other = again.settle(
            updated(json!({"file_path": "/p/b", "content": "x"})),
            "write",
            "two",
        );
        assert!(other.updated.is_none() && other.refuses);
        // Another has changed it after that.
        let again = Again::new(json!({"filePath": "/p/c", "content": "x"}), &[rewrite]);
        assert!(!again.is_allowed() && again.is_asked(&line("one")));
    }
}
