//! `outrigger run --attach`: one prompt on a server.

use outrigger_agent::Boot;
use outrigger_protocol::message::ModelRef;
use outrigger_protocol::session::Session;
use serde_json::{Value, json};

use crate::args::{Global, RunArgs};
use crate::boot::environment;
use crate::client::remote::{Answers, Attached, Remote, listen};
use crate::client::view::View;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::progress::Line;

/// Runs the prompt. `--dir` names a folder of the server; without it that is the server's own.
pub(crate) async fn run(
    global: &Global,
    args: &RunArgs,
    url: &str,
    message: String,
    model: Option<ModelRef>,
    signals: &Signals,
) -> Result<u8, Failure> {
    let remote = Remote::new(url, &args.server, global.dir.as_deref())?;
    let mut body = json!({});
    let mut set = |key: &str, value: Value| {
        if let Some(body) = body.as_object_mut().filter(|_| !value.is_null()) {
            body.insert(key.to_owned(), value);
        }
    };
    set("agent", json!(args.agent));
    set("variant", json!(args.variant));
    let route = match &args.command {
        Some(command) => {
            set("command", json!(command));
            set("arguments", json!(message));
            let model = model.map(|m| format!("{}/{}", m.provider_id, m.model_id));
            set("model", json!(model));
            "command"
        }
        None => {
            set("parts", json!(parts(args, &message)?));
            set("model", json!(model));
            "message"
        }
    };
    let events = listen(&remote).await?;
    let session = session(&remote, args, &message).await?;
    let line = Line::new();
    let _ticking = line.run();
    let answers = match (args.auto, crate::terminal::person_is_there()) {
        (true, _) => Answers::Yes,
        (false, true) => Answers::Person,
        (false, false) => Answers::No,
    };
    let mut attached = Attached::new(remote.clone(), events, answers, &line, signals);
    attached.follow_session(&session.id);
    let mut view = View::new(session.id.clone(), args, session.directory.clone());
    let path = format!("/session/{}/{route}", session.id);
    let request = async move { remote.post(&path, body).await };
    let result = attached.follow(&session.id, &mut view, request).await;
    result.map_err(|failure| failure.in_session(&session.id))
}

/// The message and the files of this machine that go with it.
fn parts(args: &RunArgs, message: &str) -> Result<Vec<Value>, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let boot = Boot::new(here.clone(), environment());
    let mut parts = Vec::new();
    for path in &args.files {
        let attached = boot.attachment(here.join(path))?;
        parts.extend(attached.into_iter().map(|part| json!(part)));
    }
    if !message.trim().is_empty() {
        parts.push(json!({ "type": "text", "text": message }));
    }
    Ok(parts)
}

async fn session(remote: &Remote, args: &RunArgs, message: &str) -> Result<Session, Failure> {
    let found = match &args.session {
        Some(id) => Some(
            remote
                .session(remote.get(&format!("/session/{id}")).await?)
                .await?,
        ),
        None if args.resume => remote.sessions().await?.into_iter().next(),
        None => None,
    };
    let made = match found {
        Some(session) if args.fork => {
            remote
                .post(&format!("/session/{}/fork", session.id), json!({}))
                .await?
        }
        Some(session) => return Ok(session),
        None => {
            let mut body = json!({ "permission": super::out_of_reach() });
            match args.title.as_deref() {
                Some("") => body["title"] = json!(super::shortened(message)),
                Some(title) => body["title"] = json!(title),
                None => {}
            }
            remote.post("/session", body).await?
        }
    };
    remote.session(made).await
}
