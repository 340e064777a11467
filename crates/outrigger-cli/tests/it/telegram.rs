//! The Telegram connector, against an imitation of its Bot API on loopback: a chat is a conversation.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::*;

const TOKEN: &str = "12345:an-imitated-token";

/// Telegram's state, and the requests it received.
#[derive(Default)]
struct Chats {
    updates: VecDeque<Value>,
    /// `chat: text`.
    sent: Vec<String>,
    /// The number of requests of any kind.
    asked: usize,
    /// The number of requests with another token.
    strangers: usize,
    /// The code with which the next request is refused.
    refuse: Option<u16>,
    /// Messages with this text are refused, for a long time (429) or permanently.
    never: Option<(&'static str, u16)>,
}

/// The imitation: `getUpdates` and `sendMessage`.
struct Telegram {
    chats: Arc<Mutex<Chats>>,
    url: String,
    next: std::cell::Cell<i64>,
}

impl Telegram {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let chats: Arc<Mutex<Chats>> = Arc::default();
        let shared = Arc::clone(&chats);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let chats = Arc::clone(&shared);
                std::thread::spawn(move || while answer(&stream, &chats).is_some() {});
            }
        });
        Self {
            chats,
            url,
            next: std::cell::Cell::new(100),
        }
    }

    fn says(&self, chat: i64, text: &str) {
        let id = self.next.replace(self.next.get() + 1);
        let update = json!({"update_id": id, "message": {"chat": {"id": chat}, "text": text}});
        self.chats.lock().unwrap().updates.push_back(update);
    }

    /// Waits for a message to a chat that contains this.
    #[track_caller]
    fn hears(&self, wanted: &str) -> String {
        let found = || {
            let chats = self.chats.lock().unwrap();
            chats
                .sent
                .iter()
                .find(|sent| sent.contains(wanted))
                .cloned()
        };
        assert!(
            wait_until(WAIT_TIMEOUT, || found().is_some()),
            "{wanted} was never said: {:?}",
            self.chats.lock().unwrap().sent
        );
        found().unwrap()
    }

    fn sent(&self) -> Vec<String> {
        self.chats.lock().unwrap().sent.clone()
    }
}

/// Answers one request. Returns `None` when the connection has ended.
fn answer(mut stream: &TcpStream, chats: &Mutex<Chats>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|n| *n > 0)?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let body: Value = serde_json::from_slice(&body).ok()?;
    let (status, answer) = reply(&path, &body, chats);
    let text = answer.to_string();
    write!(
        stream,
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{text}",
        text.len()
    )
    .ok()
}

fn reply(path: &str, body: &Value, chats: &Mutex<Chats>) -> (u16, Value) {
    let refusal = |code: u16, why: &str| {
        (
            code,
            json!({"ok": false, "error_code": code, "description": why}),
        )
    };
    chats.lock().unwrap().asked += 1;
    let Some(method) = path.strip_prefix(&format!("/bot{TOKEN}/")) else {
        chats.lock().unwrap().strangers += 1;
        return refusal(401, "Unauthorized");
    };
    if let Some(code) = chats.lock().unwrap().refuse.take() {
        return refusal(code, "Try again");
    }
    if method == "sendMessage" {
        let never = chats.lock().unwrap().never;
        let says = |what: &str| {
            body["text"]
                .as_str()
                .is_some_and(|text| text.contains(what))
        };
        if let Some((_, code)) = never.filter(|(what, _)| says(what)) {
            let why = json!({
                "ok": false, "error_code": code, "description": "no", "parameters": {"retry_after": 500},
            });
            return (
                code,
                if code == 429 {
                    why
                } else {
                    refusal(code, "no").1
                },
            );
        }
        let said = format!(
            "{}: {}",
            body["chat_id"],
            body["text"].as_str().unwrap_or_default()
        );
        chats.lock().unwrap().sent.push(said);
        return (200, json!({"ok": true, "result": {}}));
    }
    // A requested offset acknowledges the updates before it.
    let from = body["offset"].as_i64().unwrap_or(0);
    for _ in 0..20 {
        let mut chats = chats.lock().unwrap();
        chats
            .updates
            .retain(|update| update["update_id"].as_i64() >= Some(from));
        if !chats.updates.is_empty() {
            return (200, json!({"ok": true, "result": chats.updates}));
        }
        drop(chats);
        std::thread::sleep(Duration::from_millis(50));
    }
    (200, json!({"ok": true, "result": []}))
}

fn settings(world: &World, telegram: &Telegram) {
    let settings = world.home().join(".config/outrigger/outrigger.toml");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    let text = format!(
        "discovery.profile = \"messaging\"\n[telegram]\nchats = [7]\napi = \"{}\"\n",
        telegram.url
    );
    std::fs::write(settings, text).unwrap();
}

fn serve(world: &World) -> Server {
    let mut command = world.command(&["serve", "--port", &free_port(), "--no-auth"]);
    command.env("TELEGRAM_BOT_TOKEN", TOKEN);
    world.serve_with(command)
}

#[test]
fn a_chat_gives_prompts_and_gets_what_came_of_them() {
    let world = World::new([
        text("First answer."),
        turn([call(
            "bash",
            json!({"command": "sh <<'E'\n/allow per_x\necho ran > ran.txt\nE", "description": "x"}),
        )]),
        text("Second answer."),
        text("Third answer."),
    ]);
    world.config(json!({"permission": {"bash": "ask"}}));
    let telegram = Telegram::new();
    settings(&world, &telegram);
    // A request that is refused at first is retried.
    telegram.chats.lock().unwrap().refuse = Some(502);
    let server = serve(&world);
    telegram.says(8, "let me in");
    telegram.says(7, "/start");
    telegram.says(7, "do one thing");
    assert!(
        telegram
            .hears("8: This chat may not")
            .contains("telegram.chats = [8]")
    );
    telegram.hears("7: What you write is a prompt");
    telegram.hears("7: First answer.");

    // It asks, and the answer comes from the chat.
    telegram.says(7, "do another");
    let call = telegram.hears(" command │ sh <<'E'\n");
    for line in ["/allow per_x", "echo ran > ran.txt"] {
        assert!(call.contains(&format!("\n         │ {line}\n")), "{call}");
    }
    assert!(call.contains("\n  always │ sh <<'E'\n"), "{call}");
    let question = telegram.hears("7: Run a command? Answer with\n");
    assert!(question.contains("listed at `always`"), "{question}");
    let id = question
        .lines()
        .find_map(|line| line.strip_prefix("/allow "))
        .unwrap();
    telegram.says(7, "/allow per_x");
    telegram.hears("7: There is no such question.");
    telegram.says(7, &format!("/allow {id}"));
    telegram.hears("7: Second answer.");
    assert_eq!(world.read("ran.txt"), "ran\n");

    // All of this is one session, which outlives the server; no prompt is sent twice.
    let sessions = server.get("/session").json(200);
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    assert_eq!(sessions[0]["title"], "Telegram 7");
    let before = world.mock.requests().len();
    server.stop();
    let server = serve(&world);
    telegram.says(7, "and a third");
    telegram.hears("7: Third answer.");
    assert_eq!(world.mock.requests().len(), before + 1);
    assert!(
        world
            .mock
            .last()
            .texts("user")
            .join(" ")
            .contains("do another")
    );
    telegram.says(7, "/new");
    telegram.hears("7: The next prompt begins a new session.");
    let chats = telegram.chats.lock().unwrap().strangers;
    assert_eq!(chats, 0);
    // The token is shown nowhere.
    let done = server.stop();
    assert!(
        !done.stderr.contains("an-imitated-token"),
        "{}",
        done.stderr
    );
    assert!(
        telegram
            .sent()
            .iter()
            .all(|sent| !sent.contains("an-imitated-token"))
    );
}

/// A stranger does not slow down others, and is refused with a message once.
#[test]
fn a_chat_that_cannot_be_answered_stalls_nobody() {
    let world = World::new([text("An answer.")]);
    let telegram = Telegram::new();
    settings(&world, &telegram);
    telegram.chats.lock().unwrap().never = Some(("This chat may not", 429));
    let server = serve(&world);
    for _ in 0..20 {
        telegram.says(8, "let me in");
    }
    telegram.says(7, "do it");
    telegram.hears("7: An answer.");
    telegram.chats.lock().unwrap().never = None;
    telegram.says(8, "let me in");
    telegram.says(7, "/start");
    telegram.hears("7: What you write");
    assert!(telegram.sent().iter().all(|sent| !sent.starts_with("8: ")));
    let done = server.stop();
    let refusals = done.stderr.matches("from chat 8 was refused").count();
    assert!(refusals <= 1, "{}", done.stderr);
}

/// The queue behind a running prompt is limited, and the prompt can be ended, also after `/new`.
#[test]
fn messages_that_wait_are_bounded_and_what_runs_is_ended() {
    let slow = json!({"command": "touch begun; sleep 100", "description": "x"});
    let mut turns = vec![turn([call("bash", slow)])];
    turns.extend((0..40).map(|n| text(&format!("Answer {n}."))));
    let world = World::new(turns);
    world.config(json!({"permission": "allow"}));
    let telegram = Telegram::new();
    settings(&world, &telegram);
    let server = serve(&world);
    telegram.says(7, "go");
    assert!(wait_until(WAIT_TIMEOUT, || world.path("begun").exists()));
    for n in 0..30 {
        telegram.says(7, &format!("more {n}"));
    }
    telegram.hears("7: Too many messages wait already");
    telegram.says(7, "/new");
    telegram.hears("7: The next prompt begins a new session.");
    telegram.says(7, "/abort");
    // The next waiting message is answered: the running one has ended.
    telegram.hears("7: Answer 0.");
    assert!(
        telegram
            .sent()
            .iter()
            .all(|sent| sent != "7: Nothing runs.")
    );
    drop(server);
}

/// A part that Telegram rejects is missing, which is reported; the rest of the answer is sent.
#[test]
fn a_part_that_is_not_taken_costs_no_other() {
    let long = format!("{}\nUNTAKEN{}\nthe end", "a".repeat(3990), "b".repeat(3985));
    let world = World::new([text(&long)]);
    let telegram = Telegram::new();
    settings(&world, &telegram);
    telegram.chats.lock().unwrap().never = Some(("UNTAKEN", 400));
    let _server = serve(&world);
    telegram.says(7, "go");
    telegram.hears("1 part(s) of this are missing");
    let sent = telegram.sent();
    assert!(sent[0].starts_with("7: aaa"), "{sent:?}");
}

#[test]
fn without_its_profile_or_token_it_does_not_run() {
    for (profile, token) in [("minimal", TOKEN), ("messaging", "")] {
        let world = World::new([]);
        let telegram = Telegram::new();
        settings(&world, &telegram);
        let file = world.home().join(".config/outrigger/outrigger.toml");
        let text = std::fs::read_to_string(&file)
            .unwrap()
            .replace("messaging", profile);
        std::fs::write(&file, text).unwrap();
        let mut command = world.command(&["serve", "--port", &free_port(), "--no-auth"]);
        command.env("TELEGRAM_BOT_TOKEN", token);
        let server = world.serve_with(command);
        telegram.says(8, "let me in");
        // A connector starts and polls before its server listens; once the server has ended, it no longer polls.
        server.post("/session", &json!({})).json(200);
        server.stop();
        assert_eq!(telegram.chats.lock().unwrap().asked, 0, "{profile}");
    }
}
