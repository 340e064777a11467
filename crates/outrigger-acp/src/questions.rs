//! Questions of a model to the user: as a form if the editor supports it, otherwise as a choice.

use outrigger_client::Connection;
use outrigger_jsonrpc::Peer;
use outrigger_protocol::question::{Answer, Question, QuestionRequest};
use serde_json::{Map, Value, json};

/// The name of a free-text answer.
const OWN: &str = "own words";

/// How an editor asks.
#[derive(Debug)]
pub(crate) enum Form {
    /// A form with a field for each question.
    Fields(Value),
    /// A choice about a call.
    Choice(Value),
    /// It cannot.
    None,
}

impl Form {
    /// Returns how an editor asks a request. `has_forms`: it offers forms.
    pub(crate) fn of(session: &str, request: &QuestionRequest, has_forms: bool) -> Self {
        if has_forms {
            Self::Fields(form(session, request))
        } else {
            choice(session, request).map_or(Self::None, Self::Choice)
        }
    }
}

/// Creates a form for all questions of a request.
pub(crate) fn form(session: &str, request: &QuestionRequest) -> Value {
    let mut properties = Map::new();
    for (n, question) in request.questions.iter().enumerate() {
        let options: Vec<Value> = question
            .options
            .iter()
            .map(|it| {
                let title = if it.description.is_empty() {
                    it.label.clone()
                } else {
                    format!("{}: {}", it.label, it.description)
                };
                json!({ "const": it.label, "title": title })
            })
            .collect();
        let mut field = match (options.is_empty(), question.multiple) {
            (true, _) => json!({ "type": "string" }),
            (false, Some(true)) => json!({ "type": "array", "items": { "anyOf": options } }),
            (false, _) => json!({ "type": "string", "oneOf": options }),
        };
        field["title"] = json!(question.header);
        field["description"] = json!(question.question);
        properties.insert(format!("q{n}"), field);
        if question.custom != Some(false) && !question.options.is_empty() {
            let own = json!({ "type": "string", "title": format!("{} ({OWN})", question.header) });
            properties.insert(format!("q{n}_own"), own);
        }
    }
    let texts: Vec<&str> = request
        .questions
        .iter()
        .map(|it| it.question.as_str())
        .collect();
    let mut form = json!({
        "sessionId": session, "mode": "form", "message": texts.join("\n"),
        "requestedSchema": { "type": "object", "properties": properties },
    });
    if let Some(tool) = &request.tool {
        form["toolCallId"] = json!(tool.call_id);
    }
    form
}

/// Returns the answers of a submitted form; `None` if the user dismissed it.
pub(crate) fn answers(request: &QuestionRequest, answer: &Value) -> Option<Vec<Answer>> {
    if answer["action"] != "accept" {
        return None;
    }
    let texts = |value: &Value| match value {
        Value::String(text) if !text.is_empty() => vec![text.clone()],
        Value::Array(list) => list
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    };
    let content = &answer["content"];
    let answers = request.questions.iter().enumerate().map(|(n, question)| {
        let own = texts(&content[format!("q{n}_own")]);
        let mut chosen = texts(&content[format!("q{n}")]);
        match question.multiple {
            Some(true) => chosen.extend(own),
            _ if own.is_empty() => {}
            _ => chosen = own,
        }
        chosen
    });
    Some(answers.collect())
}

/// Creates a choice, if there is one question with few answers.
pub(crate) fn choice(session: &str, request: &QuestionRequest) -> Option<Value> {
    let [question] = request.questions.as_slice() else {
        return None;
    };
    if question.options.is_empty() || question.multiple == Some(true) {
        return None;
    }
    let options = question.options.iter().enumerate().map(
        |(n, it)| json!({ "optionId": n.to_string(), "name": it.label, "kind": "allow_once" }),
    );
    let none = json!({ "optionId": "none", "name": "No answer", "kind": "reject_once" });
    let id = request.tool.as_ref();
    let id = id.map_or(request.id.as_str(), |it| it.call_id.as_str());
    Some(json!({
        "sessionId": session,
        "toolCall": {
            "toolCallId": id, "status": "pending", "kind": "other",
            "title": outrigger_terminal::name(&question.question),
            "content": [crate::updates::calls::text_block(&descriptions(question))],
        },
        "options": options.chain([none]).collect::<Vec<_>>(),
    }))
}

fn descriptions(question: &Question) -> String {
    let lines = question
        .options
        .iter()
        .map(|it| format!("{}: {}\n", it.label, it.description));
    crate::updates::calls::fenced(&format!(
        "{}\n\n{}",
        question.question,
        lines.collect::<String>()
    ))
}

/// Returns the chosen option.
fn chosen(request: &QuestionRequest, answer: &Value) -> Option<Vec<Answer>> {
    let n: usize = answer["outcome"]["optionId"].as_str()?.parse().ok()?;
    let option = request.questions.first()?.options.get(n)?;
    Some(vec![vec![option.label.clone()]])
}

/// Asks a request, and passes the answers on. If the editor cannot ask, it stays unanswered.
pub(crate) async fn ask(peer: Peer, connection: Connection, form: Form, request: QuestionRequest) {
    let answers = match form {
        Form::Fields(form) => {
            let answer = peer.request("elicitation/create", &form).await;
            answer.ok().and_then(|it| answers(&request, &it))
        }
        Form::Choice(choice) => {
            let answer = peer.request("session/request_permission", &choice).await;
            answer.ok().and_then(|it| chosen(&request, &it))
        }
        Form::None => None,
    };
    let id = &request.id;
    let replied = match answers {
        Some(answers) => {
            let body = json!({ "answers": answers });
            connection
                .post::<Value>(&format!("/question/{id}/reply"), &body)
                .await
        }
        None => {
            connection
                .post(&format!("/question/{id}/reject"), &json!({}))
                .await
        }
    };
    if let Err(error) = replied {
        tracing::debug!("[acp] a question needed no answer any more: {error}");
    }
}
