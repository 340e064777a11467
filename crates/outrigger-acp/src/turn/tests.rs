//! A turn after its stream was broken.

use super::*;
use crate::session::options::{Chosen, Offer};
use crate::tests::agents::{answering, now, session};

/// A question from a subagent's model in the meantime reaches the editor, and its answer the agent.
#[tokio::test]
async fn what_was_asked_while_the_stream_was_broken_is_put_to_the_editor() {
    let (answered, mut answers) = tokio::sync::mpsc::unbounded_channel();
    let question = |id: &str, session: &str| {
        let options = json!([{ "label": "red", "description": "" }]);
        let question = json!({ "question": "Which?", "header": "colour", "options": options });
        json!({ "id": id, "sessionID": session, "questions": [question] })
    };
    let agent = answering(move |_, path, body| {
        now(match path {
            "/session/ses_1/children" => json!([session("ses_2", "/")]),
            "/session/ses_2/children" => json!([session("ses_3", "/")]),
            "/question" => json!([question("que_1", "ses_3"), question("que_2", "ses_other")]),
            "/question/que_1/reply" => {
                answered.send(body).unwrap();
                json!(true)
            }
            _ => json!([]),
        })
    })
    .await;
    let open = OpenSession::new(
        "ses_1".into(),
        "/".into(),
        agent.clone(),
        Offer::default(),
        Chosen::default(),
    );
    let (peer, mut outbox) = Peer::new(None);
    let client = Client {
        forms: true,
        ..Client::default()
    };
    let mut turn = Turn::new(Arc::new(open), peer.clone(), client, None);
    turn.catch_up().await;
    turn.catch_up().await;
    let asked: Value = serde_json::from_str(&outbox.next().await.unwrap()).unwrap();
    assert_eq!(asked["method"], "elicitation/create");
    assert_eq!(asked["params"]["message"], "Which?");
    // Once, and nothing from a session other than the turn's.
    assert_eq!(turn.asked.len(), 1);
    let answer =
        json!({ "id": asked["id"], "result": { "action": "accept", "content": { "q0": "red" } } });
    let (mut to, from) = tokio::io::duplex(4096);
    tokio::spawn(async move {
        let limits = outrigger_jsonrpc::Limits {
            line: 4096,
            at_once: 1,
        };
        outrigger_jsonrpc::serve(&peer, from, limits, &Nobody).await
    });
    let line = format!("{answer}\n");
    tokio::io::AsyncWriteExt::write_all(&mut to, line.as_bytes())
        .await
        .unwrap();
    let replied = answers.recv().await.unwrap();
    assert_eq!(replied, json!({ "answers": [["red"]] }));
}

/// An editor that asks nothing.
struct Nobody;

impl outrigger_jsonrpc::Service for Nobody {
    fn request(
        &self,
        method: &str,
        _: Value,
    ) -> futures_util::future::BoxFuture<'static, Result<outrigger_jsonrpc::Answer, RpcError>> {
        Box::pin(std::future::ready(Err(RpcError::no_method(method))))
    }

    fn notice(&self, _: &str, _: Value) {}
}
