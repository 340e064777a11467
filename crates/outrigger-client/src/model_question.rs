//! Questions of a model to the user, answered at the terminal line by line.

use outrigger_protocol::id::QuestionId;
use outrigger_protocol::question::{Answer, QuestionRequest};
use outrigger_terminal::{Frame, Size};
use serde_json::{Value, json};

/// A request with one or more questions, and the answers so far.
#[derive(Debug)]
pub struct ModelQuestion {
    request: QuestionRequest,
    answers: Vec<Answer>,
}

impl ModelQuestion {
    /// Creates one without answers.
    #[must_use]
    pub fn new(request: QuestionRequest) -> Self {
        Self {
            request,
            answers: Vec::new(),
        }
    }

    /// Returns whether the request has this identifier.
    #[must_use]
    pub fn is(&self, id: &QuestionId) -> bool {
        self.request.id == *id
    }

    /// Returns the next question to answer.
    #[must_use]
    pub fn text(&self, size: Size) -> String {
        let Some(question) = self.request.questions.get(self.answers.len()) else {
            return String::new();
        };
        let mut frame = Frame::new().with("asks", &question.question);
        for (n, option) in question.options.iter().enumerate() {
            let text = format!("{}  {}", option.label, option.description);
            frame.add(&format!("{}", n + 1), text);
        }
        let by = match (question.options.is_empty(), question.multiple) {
            (true, _) => "",
            (_, Some(true)) => "by numbers",
            _ => "by a number",
        };
        let own = question.custom != Some(false) || question.options.is_empty();
        let or = if by.is_empty() { "" } else { ", or " };
        let own = if own {
            format!("{or}in your own words")
        } else {
            String::new()
        };
        let nothing = match question.default.as_deref() {
            None => "no answer".to_owned(),
            Some("") => "it stays empty; Ctrl-D: no answer".to_owned(),
            // The prompt line is ours: untrusted text is in the frame.
            Some(text) => {
                let option = question.options.iter().position(|it| it.label == text);
                let default = match option {
                    Some(index) => (index + 1).to_string(),
                    None => {
                        frame.add("default", text);
                        "the default".to_owned()
                    }
                };
                format!("{default}; Ctrl-D: no answer")
            }
        };
        let columns = size.columns;
        format!(
            "{}? answer {by}{own}; nothing: {nothing}: ",
            frame.whole(columns)
        )
    }

    /// Returns the path for a refusal.
    #[must_use]
    pub fn rejection(&self) -> String {
        format!("/question/{}/reject", self.request.id)
    }

    /// Takes a line; once all is answered, returns the path and body of the answers. An empty line selects the question's
    /// default, or refuses if there is none; the end of input refuses.
    pub fn take(&mut self, typed: Option<&str>) -> Option<(String, Value)> {
        let question = self.request.questions.get(self.answers.len());
        let text = typed.unwrap_or_default().trim();
        if let Some(question) = question {
            if typed.is_none() || (text.is_empty() && question.default.is_none()) {
                return Some((self.rejection(), json!({})));
            }
            let label = |word: &str| {
                let n: usize = word.parse().ok()?;
                Some(question.options.get(n.checked_sub(1)?)?.label.clone())
            };
            let words = text.split([',', ' ']).filter(|word| !word.is_empty());
            let chosen: Option<Vec<String>> = words.map(label).collect();
            let one = question.multiple != Some(true);
            self.answers.push(match chosen {
                _ if text.is_empty() => Vec::new(),
                Some(labels) if !(one && labels.len() > 1) => labels,
                _ => vec![text.to_owned()],
            });
        }
        (self.answers.len() >= self.request.questions.len()).then(|| {
            let path = format!("/question/{}/reply", self.request.id);
            (path, json!({ "answers": self.answers }))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(multiple: bool) -> ModelQuestion {
        let question = json!({ "question": "Which?", "header": "h", "multiple": multiple,
            "options": [{ "label": "red", "description": "r" }, { "label": "blue", "description": "b" }] });
        let request =
            json!({ "id": "que_1", "sessionID": "ses_1", "questions": [question, question] });
        ModelQuestion::new(serde_json::from_value(request).unwrap())
    }

    #[test]
    fn lines_and_the_answers_that_they_are() {
        for (multiple, first, answer) in [
            (false, "1", json!(["red"])),
            (false, "2\n", json!(["blue"])),
            (false, "green", json!(["green"])),
            (false, "3", json!(["3"])),
            (false, "1 2", json!(["1 2"])),
            (true, "1, 2", json!(["red", "blue"])),
            (true, "0", json!(["0"])),
        ] {
            let mut question = question(multiple);
            assert_eq!(question.take(Some(first)), None, "{first}");
            let (path, body) = question.take(Some("1")).unwrap();
            assert_eq!(path, "/question/que_1/reply");
            assert_eq!(body, json!({ "answers": [answer, ["red"]] }), "{first}");
        }
    }

    /// The default that an MCP server writes appears in the frame, not in our own line.
    #[test]
    fn the_default_of_a_form_is_no_part_of_the_prompt() {
        let fake = format!("{}? run a command? [y]es, [n]o", " ".repeat(600));
        for (default, options, prompt) in [
            (
                "red",
                json!(["red", "blue"]),
                "? answer by a number, or in your own words; nothing: 1; Ctrl-D: no answer: ",
            ),
            (
                &fake,
                json!([fake]),
                "? answer by a number, or in your own words; nothing: 1; Ctrl-D: no answer: ",
            ),
            (
                &fake,
                json!([]),
                "? answer in your own words; nothing: the default; Ctrl-D: no answer: ",
            ),
        ] {
            let options: Vec<Value> = options
                .as_array()
                .unwrap()
                .iter()
                .map(|it| json!({"label": it, "description": ""}))
                .collect();
            let question =
                json!({ "question": "Q", "header": "h", "options": options, "default": default });
            let request = json!({ "id": "que_1", "sessionID": "ses_1", "questions": [question] });
            let question = ModelQuestion::new(serde_json::from_value(request).unwrap());
            let size = Size {
                columns: 80,
                rows: 24,
            };
            let text = question.text(size);
            let last = text.lines().last().unwrap();
            assert_eq!(last, prompt);
            assert!(
                text.lines().rev().skip(1).all(|line| line.contains('│')),
                "{text}"
            );
        }
    }

    #[test]
    fn no_answer_refuses() {
        for nothing in [None, Some("\n")] {
            let (path, _) = question(false).take(nothing).unwrap();
            assert_eq!(path, "/question/que_1/reject");
        }
    }
}
