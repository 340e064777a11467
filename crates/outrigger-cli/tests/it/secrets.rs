//! A key goes to its provider, in the intended header, and nowhere else.

use serde_json::json;

use crate::support::*;

const KEY: &str = "sk-proj-0123456789abcdefABCDEF";
const FROM_ENVIRONMENT: &str = "gsk_fedcba9876543210FEDCBA";

/// Keeps what the plugin's client receives.
const PLUGIN: &str = "
import fs from 'node:fs'
export const P = async ({ serverUrl, directory }) => ({
  config: async (config) => fs.appendFileSync(directory + '/hooks.txt', JSON.stringify(config)),
  'chat.params': async (input, output) => fs.appendFileSync(directory + '/hooks.txt', JSON.stringify([input, output])),
  'chat.message': async () => {
    for (const path of ['/config', '/config/providers', '/provider', '/auth'])
      fs.appendFileSync(directory + '/client.txt', await fetch(new URL(path, serverUrl)).then((answer) => answer.text()))
  },
})";

#[test]
fn no_key_is_in_a_request_body_nor_in_what_the_server_tells() {
    let world = World::new([turn([call("glob", json!({ "pattern": "*" }))]), done()]);
    world.config(json!({ "provider": {
        "mock": { "options": { "apiKey": KEY } },
        "groq": { "options": { "apiKey": "{env:GROQ_API_KEY}" } },
    } }));
    world.plugin("p", PLUGIN);
    let mut command = world.command(&["serve", "--no-auth", "--port", &free_port()]);
    command.env("GROQ_API_KEY", FROM_ENVIRONMENT);
    let server = world.serve_with(command);
    let session = server.post("/session", &json!({})).json(200);
    let path = format!("/session/{}/message", session["id"].as_str().unwrap());
    let prompt = json!({ "parts": [{ "type": "text", "text": "go" }] });
    server.post(&path, &prompt).json(200);

    let requests = world.mock.all_requests();
    assert!(requests.len() >= 2);
    for request in &requests {
        let bearer = format!("Bearer {KEY}");
        assert_eq!(request.header("authorization"), Some(bearer.as_str()));
        let elsewhere = request.headers.iter().filter(|(name, value)| {
            !name.eq_ignore_ascii_case("authorization") && value.contains(KEY)
        });
        assert_eq!(elsewhere.count(), 0);
        assert!(!request.body.to_string().contains(KEY));
    }
    let mut answers: Vec<(String, String)> = [
        "/config",
        "/global/config",
        "/config/providers",
        "/provider",
        "/provider/auth",
        "/experimental/session",
    ]
    .map(|path| (path.to_owned(), server.get(path).text()))
    .into();
    let messages = path.as_str();
    answers.push((messages.to_owned(), server.get(messages).text()));
    answers.push(("the client of a plugin".into(), world.read("client.txt")));
    for (place, text) in &answers {
        assert!(!text.is_empty(), "{place}");
        for key in [KEY, FROM_ENVIRONMENT] {
            assert!(!text.contains(key), "{place} tells {key}");
        }
    }
    let done = server.stop();
    assert!(!(done.stdout + &done.stderr).contains(KEY));
}
