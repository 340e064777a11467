//! A slash command's template as it is filled in: with the arguments, then with what its shell lines print.

use std::ops::Range;

use outrigger_protocol::Object;
use outrigger_protocol::message::{ModelRef, PartKind};
use outrigger_protocol::session::PartInput;
use serde_json::{Value, json};

use crate::command::CommandInfo;
use crate::{parts, printed, template};

/// Stands for the output of a shell line until that has run; a private-use character that no text contains.
const STAND_IN: char = '\u{F8FF}';

fn stand_in(i: usize) -> String {
    format!("{STAND_IN}{i}{STAND_IN}")
}

/// A template with its arguments, whose shell lines have not run yet.
#[derive(Debug)]
pub struct Unprinted {
    named: String,
    /// The shell lines, in order. They come from the template only: what a user or a plugin writes after the name is never run.
    pub lines: Vec<String>,
}

impl Unprinted {
    /// Fills in the arguments. The text of a server has no shell lines (`has_lines`).
    #[must_use]
    pub fn new(template: &str, arguments: &str, has_lines: bool) -> Self {
        let places = if has_lines {
            template::shell_places(template)
        } else {
            Vec::new()
        };
        let mut text = template.to_owned();
        for (i, (place, _)) in places.iter().enumerate().rev() {
            text.replace_range(place.clone(), &stand_in(i));
        }
        Self {
            named: template::expand(&text, &arguments.replace(STAND_IN, "")),
            lines: places.into_iter().map(|(_, line)| line).collect(),
        }
    }

    /// Fills in the output of each line, which is not searched for arguments.
    #[must_use]
    pub fn filled(self, outputs: &[String]) -> Filled {
        let (mut text, mut printed) = (String::new(), Vec::new());
        let mut rest = self.named.as_str();
        for (i, output) in outputs.iter().enumerate() {
            if let Some((before, after)) = rest.split_once(&stand_in(i)) {
                text.push_str(before);
                let start = text.len();
                text.push_str(output);
                printed.push(start..text.len());
                rest = after;
            }
        }
        text.push_str(rest);
        Filled {
            text,
            named: self.named,
            printed,
        }
    }
}

/// A template with its arguments and the output of its shell lines.
#[derive(Debug)]
pub struct Filled {
    /// The text. More may be appended.
    pub text: String,
    /// The text without any output: files named there are not attached.
    pub named: String,
    printed: Vec<Range<usize>>,
}

impl Filled {
    /// Returns the part that asks the model.
    #[must_use]
    pub fn part(&self) -> PartInput {
        let mut part = parts::text(&self.text);
        if let PartKind::Text(text) = &mut part.kind {
            printed::mark(&mut text.extra, &self.text, &self.printed);
        }
        part
    }

    /// Returns the part that runs the command in a subagent: its task is stored with the user's message.
    #[must_use]
    pub fn subtask(&self, command: &CommandInfo, agent: &str, model: &ModelRef) -> PartInput {
        let task = json!({
            "agent": agent, "description": command.description.clone().unwrap_or_default(), "command": command.name,
            "model": { "providerID": model.provider_id, "modelID": model.model_id }, "prompt": &self.text,
        });
        let mut fields = match task {
            Value::Object(fields) => fields,
            _ => Object::new(),
        };
        printed::mark(&mut fields, &self.text, &self.printed);
        PartInput {
            id: None,
            kind: PartKind::Subtask(fields),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_is_known_and_holds_no_arguments_and_no_lines() {
        let template = "a !`x $1` b $1 !`y`";
        let filled = Unprinted::new(template, "one \u{F8FF}0\u{F8FF}", true);
        assert_eq!(filled.lines, ["x $1", "y"]);
        let stand_in = "\u{F8FF}1\u{F8FF}";
        let outputs = [format!("$1 !`z` {stand_in}"), "ä".to_owned()];
        let filled = filled.filled(&outputs);
        assert_eq!(filled.text, format!("a $1 !`z` {stand_in} b one 0 ä"));
        let printed: Vec<&str> = filled
            .printed
            .iter()
            .map(|range| &filled.text[range.clone()])
            .collect();
        assert_eq!(printed, outputs);
        assert!(!filled.named.contains('z'));
        let of_server = Unprinted::new(template, "one", false);
        assert!(of_server.lines.is_empty());
        assert_eq!(of_server.filled(&[]).text, "a !`x one` b one !`y`");
    }
}
