//! Conversations over `/outrigger/v1`: a client that follows them has what is stored, whatever was stopped in between.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::*;

fn bash(command: &str) -> Value {
    turn([call(
        "bash",
        json!({ "command": command, "description": "x" }),
    )])
}

/// A client: the stored events it received, and its entries.
#[derive(Default)]
pub(crate) struct Client {
    merge: bool,
    id: Option<i64>,
    sent: Vec<Value>,
    pub(crate) entries: BTreeMap<String, Value>,
    /// Of each text, by its key, the pieces that it was written in.
    pub(crate) pieces: BTreeMap<String, Vec<String>>,
}

impl Client {
    pub(crate) fn new(merge: bool) -> Self {
        Self {
            merge,
            ..Self::default()
        }
    }

    pub(crate) fn open(&self, server: &Server, session: &str) -> Events {
        let path = format!(
            "/outrigger/v1/conversation/{session}/stream?merge={}",
            self.merge
        );
        match self.id {
            Some(id) => server.follow(&path, &[("last-event-id", &id.to_string())]),
            None => server.follow(&format!("{path}&after=0"), &[]),
        }
    }

    /// Takes events until the condition holds.
    pub(crate) fn until(&mut self, events: &mut Events, holds: impl Fn(&Self) -> bool) {
        while !holds(self) {
            let Some(item) = events.next() else {
                panic!("the stream has ended; {:?}", self.sent.last());
            };
            self.take(item);
            self.id = events.id.or(self.id);
        }
    }

    fn take(&mut self, item: Value) {
        match item["type"].as_str().unwrap() {
            "entry" => {
                let key = item["entry"]["key"].as_str().unwrap().to_owned();
                self.entries.insert(key, item["entry"].clone());
            }
            "removed" => {
                let key = item["key"].as_str().unwrap();
                let below = format!("{key}/");
                self.entries
                    .retain(|it, _| it != key && !it.starts_with(&below));
            }
            "delta" => {
                let [key, text] = ["key", "text"].map(|it| item[it].as_str().unwrap().to_owned());
                let pieces = self.pieces.entry(key).or_default();
                if item["start"] == true {
                    pieces.clear();
                }
                pieces.push(text);
                return;
            }
            "reset" => panic!("{item}"),
            _ => return,
        }
        self.sent.push(item);
    }

    pub(crate) fn has(&self, kind: &str, text: &str) -> bool {
        self.entries.values().any(|entry| {
            let message = &entry["message"];
            message["messageType"] == kind && message.to_string().contains(text)
        })
    }

    /// Returns the conversation from the store, page by page.
    pub(crate) fn stored(&self, server: &Server, session: &str) -> Vec<Value> {
        let (mut all, mut before) = (Vec::new(), String::new());
        loop {
            let path = format!(
                "/outrigger/v1/conversation/{session}/message?limit=2&merge={}{before}",
                self.merge
            );
            let page = server.get(&path).json(200);
            let entries = page["entries"].as_array().unwrap().clone();
            all.splice(0..0, entries);
            match page["next"].as_str() {
                Some(next) => before = format!("&before={next}"),
                None => return all,
            }
        }
    }
}

/// E5: a client follows, and the server is killed in the middle of a call and restarted. The client continues from its last event: it has
/// what the store has, and received each event of the log once. Tested with merged and with separate streams.
#[test]
fn a_client_goes_on_after_the_server_was_killed() {
    let world = World::with(Mock::new([
        bash("echo one"),
        bash("echo begun; sleep 60"),
        done(),
    ]));
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    let mut clients = [Client::new(true), Client::new(false)];
    let mut streams: Vec<Events> = clients
        .iter()
        .map(|it| it.open(&server, &session))
        .collect();
    server.post(&format!("/session/{session}/prompt_async"), &prompt);
    for (client, stream) in clients.iter_mut().zip(&mut streams) {
        client.until(stream, |client| client.has("tool_use", "sleep 60"));
        let kind = if client.merge {
            "tool_execution"
        } else {
            "tool_result"
        };
        assert!(client.has(kind, "one"));
        assert!(!client.has(kind, "begun"));
    }
    drop(streams);
    server.kill();

    let server = world.serve(&["--no-auth"]);
    let mut streams: Vec<Events> = clients
        .iter()
        .map(|it| it.open(&server, &session))
        .collect();
    server
        .post(&format!("/session/{session}/message"), &prompt)
        .json(200);
    for (client, stream) in clients.iter_mut().zip(&mut streams) {
        client.until(stream, |client| client.has("text", "All done."));
        // The end of the killed call, and of the turn.
        let stored = client.stored(&server, &session);
        client.until(stream, |client| client.entries.values().eq(&stored));
        assert!(
            stored.iter().all(|entry| entry["state"] == "done"),
            "{stored:?}"
        );
        // From the beginning, and all at once.
        let mut again = Client::new(client.merge);
        let mut stream = again.open(&server, &session);
        again.until(&mut stream, |again| again.sent.len() == client.sent.len());
        assert_eq!(again.sent, client.sent);
        assert_eq!(again.id, client.id);
    }
    let calls = |client: &Client, kind: &str| {
        client
            .entries
            .values()
            .filter(|it| it["message"]["messageType"] == kind)
            .count()
    };
    let [merged, apart] = clients;
    assert_eq!(
        (calls(&merged, "tool_execution"), calls(&merged, "tool_use")),
        (2, 0)
    );
    assert_eq!(
        (calls(&apart, "tool_use"), calls(&apart, "tool_result")),
        (2, 2)
    );
}

/// One list has the conversations of all projects, those waiting for the user first. An answer does not need to name the project.
#[test]
fn what_waits_is_seen_and_answered_from_anywhere() {
    let world = World::new([bash("echo asked"), done()]);
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let config =
        world
            .read("opencode.json")
            .replacen('{', "{\"permission\":{\"bash\":\"ask\"},", 1);
    std::fs::write(other.join("opencode.json"), config).unwrap();
    world.trust(&other);
    let server = world.serve(&["--no-auth"]);
    let there = other.display().to_string();
    let header = [("x-opencode-directory", there.as_str())];
    let made = |title: &str, headers: &[(&str, &str)]| {
        let body = json!({ "title": title }).to_string();
        let session = server
            .send("POST", "/session", headers, Some(&body))
            .json(200);
        session["id"].as_str().unwrap().to_owned()
    };
    let asks = made("asks", &header);
    let rest = ["b", "c"].map(|title| made(title, &[]));
    let listed = |query: &str| {
        let page = server
            .get(&format!("/outrigger/v1/conversation?{query}"))
            .json(200);
        let all = page["conversations"].as_array().unwrap().iter();
        let ids: Vec<String> = all
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect();
        (ids, page)
    };
    let newest_first = [rest[1].clone(), rest[0].clone(), asks.clone()];
    assert_eq!(listed("").0, newest_first);
    let mut stream = server.follow("/outrigger/v1/stream", &[]);
    stream.until("connected");
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] }).to_string();
    server.send(
        "POST",
        &format!("/session/{asks}/prompt_async"),
        &header,
        Some(&prompt),
    );
    let asked = stream.until("asked");
    let request = asked["waiting"]["request"].clone();
    assert_eq!(request["sessionID"], json!(asks));
    let (ids, page) = listed("limit=1");
    assert_eq!(ids[0], asks, "{page}");
    let first = &page["conversations"][0];
    assert_eq!(
        (&first["status"], &first["directory"]),
        (&json!("busy"), &json!(there))
    );
    assert_eq!(first["waiting"][0]["request"]["id"], request["id"]);
    let next = page["next"].as_str().unwrap();
    let second = listed(&format!("limit=5&cursor={next}")).0;
    assert_eq!(second, newest_first[..2]);
    let waiting = server.get("/outrigger/v1/waiting").json(200);
    assert_eq!(waiting[0]["request"]["id"], request["id"]);
    let path = format!(
        "/outrigger/v1/permission/{}/reply",
        request["id"].as_str().unwrap()
    );
    assert_eq!(
        server.post(&path, &json!({ "reply": "once" })).json(200),
        true
    );
    assert_eq!(stream.until("answered")["id"], request["id"]);
    server.post(&path, &json!({ "reply": "once" })).json(404);
    let entry = loop {
        let entry = stream.until("entry")["entry"].clone();
        if entry["message"]["messageType"] == "tool_execution" {
            break entry;
        }
    };
    assert_eq!(
        entry["message"]["metadata"]["details"]["data"]["stdout"],
        "asked\n"
    );
    assert_eq!(server.get("/outrigger/v1/waiting").json(200), json!([]));
}

/// A text in progress arrives in pieces. A client that joins late gets the text so far, and the complete text replaces it.
#[test]
fn a_text_that_is_being_written_comes_in_pieces() {
    let world = World::new([json!({ "text": "I begin", "stall": 2 })]);
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/outrigger/v1/conversation/{session}/stream");
    let mut early = server.follow(&path, &[]);
    early.until("connected");
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    server.post(&format!("/session/{session}/prompt_async"), &prompt);
    let mut text = String::new();
    while text != "I begin" {
        let delta = early.until("delta");
        assert_eq!(delta.get("start").is_some(), text.is_empty());
        text.push_str(delta["text"].as_str().unwrap());
    }
    let mut late = server.follow(&path, &[]);
    let status = late.until("status");
    assert_eq!(status["status"], "busy");
    let all = late.until("delta");
    assert_eq!(
        (&all["text"], &all["start"]),
        (&json!("I begin"), &json!(true))
    );
    server
        .post(&format!("/session/{session}/abort"), &json!({}))
        .json(200);
    let key = all["key"].as_str().unwrap();
    let whole = loop {
        let entry = late.until("entry")["entry"].clone();
        if entry["key"] == key {
            break entry;
        }
    };
    assert_eq!(
        (&whole["state"], &whole["message"]["content"]),
        (&json!("done"), &json!("I begin"))
    );
}

const DEPLOY: &str = r"
export const Deploy = async () => ({ tool: { deploy: { description: 'deploys', args: {},
  execute: async () => ({ output: 'ok', metadata: { summary: 'Deployed a', details: { type: 'fileList', data: { files: ['a'] } } } }) } } })";

/// E3: a plugin's tool defines how its result is shown. The subagent tool names its conversation, in which everything belongs to the same
/// task.
#[test]
fn a_plugins_tool_describes_itself_and_a_subagent_is_linked() {
    let task =
        json!({ "description": "look", "prompt": "look around", "subagent_type": "general" });
    let calls = [call("deploy", json!({})), call("task", task)];
    let mock = Mock::new([turn(calls), done()]);
    mock.when("look around", done());
    let world = World::with(mock);
    world.plugin("deploy", DEPLOY);
    let server = world.serve(&["--no-auth"]);
    let session = server.post("/session", &json!({})).json(200)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    server
        .post(&format!("/session/{session}/message"), &prompt)
        .json(200);
    let entries = Client::new(true).stored(&server, &session);
    let of = |tool: &str| {
        entries
            .iter()
            .find(|it| it["message"]["metadata"]["tool_name"] == tool)
            .unwrap()["message"]
            .clone()
    };
    let deploy = of("deploy");
    assert_eq!(deploy["content"], "Deployed a");
    assert_eq!(deploy["metadata"]["details"]["data"]["files"], json!(["a"]));
    let child = of("task")["metadata"]["conversation"]
        .as_str()
        .unwrap()
        .to_owned();
    let child = Client::new(true).stored(&server, &child);
    assert!(!child.is_empty());
    assert!(
        child.iter().all(|entry| entry["task"] == json!(session)),
        "{child:?}"
    );
}
