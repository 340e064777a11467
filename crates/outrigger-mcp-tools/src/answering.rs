//! Handles requests of a server during a tool call: a form for the user becomes a question of the session; an answer of the model
//! goes through its host, which asks the user each time.

use futures_util::future::BoxFuture;
use outrigger_mcp::{Answering, Elicitation, Elicited, Field, FieldKind};
use outrigger_protocol::question::{Choice, Question};
use outrigger_tools::ToolContext;
use serde_json::Value;

use crate::sampling;

/// How often an invalid form is shown again.
const MAX_TRIES: usize = 3;
/// Maximum characters of a question's title.
const MAX_HEADER: usize = 30;

/// Answers for a call.
pub(crate) struct Session<'a> {
    pub(crate) server: &'a str,
    pub(crate) ctx: &'a ToolContext,
}

impl Answering for Session<'_> {
    fn elicit<'a>(&'a self, form: &'a Elicitation) -> BoxFuture<'a, Elicited> {
        Box::pin(async move {
            let mut wrong = None;
            for _ in 0..MAX_TRIES {
                let questions = questions(self.server, form, wrong.as_deref());
                let Some(answers) = self.ctx.host.question(questions).await else {
                    return Elicited::Cancel;
                };
                if form.fields.is_empty() {
                    let is_accepted = answers.first().is_some_and(|it| it == &[ACCEPT]);
                    return if is_accepted {
                        Elicited::Accept(Value::Object(Default::default()))
                    } else {
                        Elicited::Decline
                    };
                }
                let mut answers = answers.into_iter();
                match form.filled(|field| answers.next().map(|said| words(field, said))) {
                    Ok(content) => return Elicited::Accept(content),
                    Err(reason) => wrong = Some(reason),
                }
            }
            Elicited::Decline
        })
    }

    fn sample<'a>(&'a self, params: &'a Value) -> BoxFuture<'a, Result<Value, String>> {
        Box::pin(async move {
            let request = sampling::request(self.server, params)?;
            let answer = self.ctx.host.sample(request).await?;
            Ok(sampling::result(&answer))
        })
    }
}

const ACCEPT: &str = "Accept";
const DECLINE: &str = "Decline";
/// The choice that leaves a field empty.
const EMPTY: &str = "(leave empty)";

/// Returns the questions of a form, one for each field; for an empty form, whether to accept it.
fn questions(server: &str, form: &Elicitation, wrong: Option<&str>) -> Vec<Question> {
    let said = format!("The MCP server `{server}` asks: {}", form.message);
    let said = match wrong {
        Some(reason) => format!("{said}\n({reason})"),
        None => said,
    };
    if form.fields.is_empty() {
        return vec![Question {
            question: said,
            header: header(server),
            options: vec![choice(ACCEPT, ""), choice(DECLINE, "")],
            custom: Some(false),
            ..Question::default()
        }];
    }
    let one = |field: &Field| {
        let about = match field.description.as_str() {
            "" => field.title.clone(),
            text => format!("{}: {text}", field.title),
        };
        let is_free = matches!(field.kind, FieldKind::Text | FieldKind::Number { .. });
        let is_multiple = matches!(
            field.kind,
            FieldKind::Choice {
                is_multiple: true,
                ..
            }
        );
        Question {
            question: format!("{said}\n{about}"),
            header: header(&field.title),
            options: options(field),
            multiple: is_multiple.then_some(true),
            custom: Some(is_free),
            default: left_empty(field),
            ..Question::default()
        }
    };
    form.fields.iter().map(one).collect()
}

/// Returns the default of a field; `None` if it is required.
fn left_empty(field: &Field) -> Option<String> {
    let shown = |value: &Value| match (&field.kind, value) {
        (FieldKind::Boolean, Value::Bool(yes)) => if *yes { "Yes" } else { "No" }.to_owned(),
        (FieldKind::Choice { choices, .. }, Value::String(value)) => choices
            .iter()
            .find(|(known, _)| known == value)
            .map_or(value, |(_, label)| label)
            .clone(),
        (_, Value::String(text)) => text.clone(),
        (_, other) => other.to_string(),
    };
    match &field.default {
        Some(value) => Some(shown(value)),
        None => (!field.is_required).then(String::new),
    }
}

fn options(field: &Field) -> Vec<Choice> {
    let default = field.default.as_ref();
    let marked = |value: &Value, label: &str| {
        let is_default = default == Some(value);
        choice(label, if is_default { "default" } else { "" })
    };
    let mut options = match &field.kind {
        FieldKind::Boolean => vec![marked(&true.into(), "Yes"), marked(&false.into(), "No")],
        FieldKind::Choice { choices, .. } => choices
            .iter()
            .map(|(value, label)| marked(&value.as_str().into(), label))
            .collect(),
        FieldKind::Text | FieldKind::Number { .. } => default
            .map(|value| match value {
                Value::String(text) => choice(text, "default"),
                other => choice(&other.to_string(), "default"),
            })
            .into_iter()
            .collect(),
    };
    if !field.is_required && default.is_none() {
        options.push(choice(EMPTY, ""));
    }
    options
}

fn choice(label: &str, description: &str) -> Choice {
    Choice {
        label: label.to_owned(),
        description: description.to_owned(),
        ..Choice::default()
    }
}

fn header(text: &str) -> String {
    text.chars().take(MAX_HEADER).collect()
}

/// Returns the words of an answer, without the choice for an empty one.
fn words(field: &Field, said: Vec<String>) -> Vec<String> {
    let is_empty = |word: &String| !field.is_required && word == EMPTY;
    said.into_iter().filter(|word| !is_empty(word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_form_becomes_questions_that_name_the_server() {
        let form = Elicitation::read(&json!({
            "message": "Who are you?",
            "requestedSchema": {"properties": {
                "name": {"type": "string", "description": "your name", "default": "John"},
                "on": {"type": "boolean", "default": false},
                "kind": {"type": "string", "enum": ["a", "b"]},
            }},
        }))
        .unwrap();
        let shown: Vec<String> = questions("forms", &form, Some("no"))
            .iter()
            .map(|it| {
                let options: Vec<String> = it
                    .options
                    .iter()
                    .map(|it| format!("{} {}", it.label, it.description))
                    .collect();
                let (custom, default) = (it.custom, &it.default);
                format!(
                    "{} | {} | {custom:?} | {default:?}",
                    it.question,
                    options.join(", ")
                )
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        The MCP server `forms` asks: Who are you?
        (no)
        name: your name | John default | Some(true) | Some("John")
        The MCP server `forms` asks: Who are you?
        (no)
        on | Yes , No default | Some(false) | Some("No")
        The MCP server `forms` asks: Who are you?
        (no)
        kind | a , b , (leave empty)  | Some(false) | Some("")
        "#);
    }
}
