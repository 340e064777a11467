//! `question`: asks the user.

use std::time::Duration;

use futures_util::future::BoxFuture;
use outrigger_protocol::question::{Answer, Question as Asked};
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::{reading, spec};
use crate::error::ToolError;
use crate::host::ToolContext;
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Asks the user one or more questions and waits for the answers.

Ask when only the user can decide: preferences, ambiguous instructions, what may be changed. Do not ask what you can find out from the project.

- Give each question a few options with different consequences; put the one that you recommend first and add (Recommended) to its label.
- The user can always type another answer, so omit options such as Other.
- multiple: true lets the user choose several options. An answer is the list of the chosen labels.
";

/// Questions to the user. The tool is hidden: the host offers it if a user can answer.
pub(super) struct Question {
    spec: ToolSpec,
}

impl Question {
    pub(super) fn new() -> Self {
        let option = json!({"type": "object", "properties": {"label": {"type": "string"}, "description": {"type": "string"}},
            "required": ["label", "description"]});
        let mut spec = reading(spec(
            "question",
            DESCRIPTION,
            json!({"questions": {"type": "array", "items": {"type": "object", "properties": {
                "question": {"type": "string"}, "header": {"type": "string"},
                "options": {"type": "array", "items": option}, "multiple": {"type": "boolean"}},
                "required": ["question", "header", "options"]}}}),
            &["questions"],
        ));
        spec.hidden = true;
        Self { spec }
    }
}

impl Tool for Question {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    // Users may take a day.
    fn deadline(&self, _input: &Value) -> Option<Duration> {
        Some(Duration::from_secs(24 * 3600))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let list = input.get("questions").cloned().unwrap_or_default();
            let asked: Vec<Asked> = serde_json::from_value(list)
                .map_err(|e| ToolError::failed(format!("Invalid questions: {e}")))?;
            if asked.is_empty() {
                return Err(ToolError::failed("There is no question in this call"));
            }
            // A user who dismisses a question wants to say something else first.
            let answers = ctx.host.question(asked.clone()).await.ok_or_else(|| {
                ToolError::Rejected("The user dismissed this question".to_owned())
            })?;
            Ok(output(&asked, &answers))
        })
    }
}

fn output(asked: &[Asked], answers: &[Answer]) -> ToolOutput {
    let pairs: Vec<String> = asked
        .iter()
        .enumerate()
        .map(|(i, question)| {
            let answer = answers
                .get(i)
                .filter(|labels| !labels.is_empty())
                .map_or_else(|| "Unanswered".to_owned(), |labels| labels.join(", "));
            format!("\"{}\"=\"{answer}\"", question.question)
        })
        .collect();
    let plural = if asked.len() == 1 { "" } else { "s" };
    ToolOutput {
        title: format!("Asked {} question{plural}", asked.len()),
        output: format!(
            "User has answered your questions: {}. You can now continue with the user's answers in mind.",
            pairs.join(", ")
        ),
        metadata: json!({ "answers": answers }),
        attachments: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_behind_their_questions() {
        let question = |text: &str| Asked {
            question: text.into(),
            ..Asked::default()
        };
        let one = output(&[question("Which?")], &[vec!["A".into(), "B".into()]]);
        assert_eq!(one.title, "Asked 1 question");
        assert!(one.output.contains("\"Which?\"=\"A, B\""), "{}", one.output);
        let two = output(&[question("1"), question("2")], &[Vec::new()]);
        assert!(
            two.output
                .contains("\"1\"=\"Unanswered\", \"2\"=\"Unanswered\""),
            "{}",
            two.output
        );
    }
}
