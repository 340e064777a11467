//! Skills from URLs, and skills as commands.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::*;

/// A file server, like a site with skills.
struct Site {
    url: String,
    files: Arc<Mutex<BTreeMap<String, String>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    fn new(files: &[(&str, String)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/skills", listener.local_addr().unwrap());
        let site = Self {
            url,
            files: Arc::default(),
            asked: Arc::default(),
        };
        for (path, text) in files {
            site.put(path, text);
        }
        let (files, asked) = (Arc::clone(&site.files), Arc::clone(&site.asked));
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                asked.lock().unwrap().push(path.clone());
                let answer = match files.lock().unwrap().get(&path) {
                    Some(text) if text == "(silence)" => {
                        std::mem::forget(stream);
                        continue;
                    }
                    Some(text) if text.starts_with("http://") => format!(
                        "HTTP/1.1 302 Found\r\nlocation: {text}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                    ),
                    Some(text) => format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
                        text.len()
                    ),
                    None => {
                        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                            .to_owned()
                    }
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        site
    }

    fn put(&self, path: &str, text: &str) {
        let mut files = self.files.lock().unwrap();
        files.insert(format!("/skills/{path}"), text.to_owned());
    }

    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn skill(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: about {name}\n---\n{text}\n")
}

fn index(skills: Value) -> String {
    json!({ "skills": skills }).to_string()
}

/// Returns the list of `GET /skill`, and the warnings of that start.
fn listed(world: &World, site: &Site) -> String {
    let server = world.serve(&["--no-auth", "--print-logs"]);
    let skills = server.get("/skill").json(200);
    let mut text = String::new();
    for skill in skills.as_array().unwrap() {
        let content = skill["content"].as_str().unwrap().trim();
        text += &format!("{}: {content}\n", skill["name"].as_str().unwrap());
    }
    for line in server.running.stderr().lines() {
        if let Some((_, line)) = line.split_once("[skills] ") {
            text += &format!("{}\n", line.replace(&site.url, "SITE"));
        }
    }
    text
}

#[test]
fn skills_behind_an_address_are_fetched_once_a_version_and_kept() {
    let site = Site::new(&[
        (
            "index.json",
            index(json!([
                {"name": "plain", "files": ["SKILL.md", "notes/a.txt"]},
                {"name": "pinned", "files": ["SKILL.md"], "version": "1"},
            ])),
        ),
        ("plain/SKILL.md", skill("plain", "one")),
        ("plain/notes/a.txt", "a note".to_owned()),
        ("pinned/SKILL.md", skill("pinned", "one")),
    ]);
    let world = World::new([turn([call("skill", json!({ "name": "plain" }))]), done()]);
    world.config(json!({ "skills": { "urls": [site.url] } }));
    world.run(&["go"]).ok();
    let result = world.mock.last().texts("tool");
    assert!(
        result[0].contains("one") && result[0].contains("notes/a.txt"),
        "{result:?}"
    );
    assert_eq!(site.take_asked().len(), 4);

    for name in ["plain", "pinned"] {
        site.put(&format!("{name}/SKILL.md"), &skill(name, "two"));
    }
    insta::assert_snapshot!(listed(&world, &site), @r"
    plain: two
    pinned: one
    ");
    assert_eq!(
        site.take_asked(),
        [
            "/skills/index.json",
            "/skills/plain/SKILL.md",
            "/skills/plain/notes/a.txt"
        ]
    );
    site.put(
        "index.json",
        &index(json!([{"name": "pinned", "files": ["SKILL.md"], "version": "2"}])),
    );
    insta::assert_snapshot!(listed(&world, &site), @"pinned: two");
    // A file that can no longer be fetched stays as it was.
    site.put(
        "index.json",
        &index(json!([{"name": "pinned", "files": ["SKILL.md", "gone"], "version": "3"}])),
    );
    insta::assert_snapshot!(listed(&world, &site), @r"
    pinned: two
    skill `pinned` of SITE: gone: the server answered 404; it is as fetched before
    ");
}

#[test]
fn an_address_that_fails_is_a_warning_that_names_it() {
    let good = ("ok/SKILL.md", skill("ok", "fine"));
    let entry = json!({"name": "ok", "files": ["SKILL.md"]});
    let rows = [
        ("no index", None),
        ("no JSON", Some("<html>".to_owned())),
        ("another form", Some("{\"skills\": {}}".to_owned())),
        (
            "one bad among good",
            Some(index(json!([
                {"name": "../out", "files": ["SKILL.md"]},
                {"name": "up", "files": ["SKILL.md", "../../../../up"]},
                {"name": "none", "files": ["README.md"]},
                {"name": "missing", "files": ["SKILL.md"]},
                entry,
            ]))),
        ),
        ("too large", Some(" ".repeat((1 << 20) + 1))),
        (
            "another server",
            Some("http://localhost:9/index.json".to_owned()),
        ),
        ("silence", Some("(silence)".to_owned())),
    ];
    let mut seen = String::new();
    for (what, text) in rows {
        let site = Site::new(std::slice::from_ref(&good));
        if let Some(text) = text {
            site.put("index.json", &text);
        }
        let world = World::new([done()]);
        world.config(json!({ "skills": { "urls": [site.url] } }));
        seen += &format!("# {what}\n{}", listed(&world, &site));
        assert!(!world.home().join(".cache/outrigger/up").exists());
    }
    insta::assert_snapshot!(seen, @r#"
    # no index
    skills of SITE: the server answered 404; none of its skills are there
    # no JSON
    skills of SITE: cannot read its index.json: expected value at line 1 column 1; none of its skills are there
    # another form
    skills of SITE: cannot read its index.json: invalid type: map, expected a sequence at line 1 column 11; none of its skills are there
    # one bad among good
    ok: fine
    skill `../out` of SITE: its name must be that of a single folder; skipped
    skill `up` of SITE: the file "../../../../up" is not a path inside it; skipped
    skill `none` of SITE: its `files` lack SKILL.md; skipped
    skill `missing` of SITE: SKILL.md: the server answered 404; skipped
    # too large
    skills of SITE: it is larger than 1048576 bytes; none of its skills are there
    # another server
    skills of SITE: it redirects to another server; none of its skills are there
    # silence
    skills of SITE: the server took too long; none of its skills are there
    "#);
    let world = World::new([done()]);
    world.config(json!({ "skills": { "urls": ["http://example.com/s", "skills"] } }));
    let site = Site::new(&[]);
    insta::assert_snapshot!(listed(&world, &site), @r"
    skills of http://example.com/s: it must begin with https://, or be on this machine
    skills of skills: not an address: relative URL without a base
    ");
}

/// As in oh-my-opencode: the plugin runs its own server, and its `config` hook adds the address.
#[test]
fn a_plugin_serves_skills_of_its_own() {
    let world = World::new([done()]);
    world.plugin(
        "p",
        "import http from 'node:http'
         const files = {
           '/index.json': JSON.stringify({ skills: [{ name: 'brought', files: ['SKILL.md'] }] }),
           '/brought/SKILL.md': '---\\nname: brought\\ndescription: by a plugin\\n---\\nDo it with $ARGUMENTS and !`touch ran`.',
         }
         export const P = async () => {
           const server = http.createServer((request, answer) => answer.end(files[request.url]))
           await new Promise((done) => server.listen(0, '127.0.0.1', done))
           server.unref()
           return { config: async (config) => { (config.skills ??= {}).urls = [`http://127.0.0.1:${server.address().port}/`] } }
         }",
    );
    world.run(&["--command", "brought", "care"]).ok();
    let asked = world.mock.last().texts("user").join("\n");
    // Commands in another author's text are not run.
    assert!(
        asked.starts_with("Do it with care and !`touch ran`."),
        "{asked}"
    );
    assert!(!world.path("ran").exists());
}

#[test]
fn skills_are_commands_unless_one_has_their_name() {
    let world = World::new([done()]);
    world.file(
        ".opencode/skill/tidy/SKILL.md",
        &skill("tidy", "Tidy $ARGUMENTS up, as !`echo told`."),
    );
    world.file(
        ".opencode/skill/review/SKILL.md",
        &skill("review", "not this"),
    );
    world.file(".opencode/skill/mine/SKILL.md", &skill("mine", "nor this"));
    world.config(json!({ "command": { "mine": { "template": "mine" } }, "permission": "allow" }));
    let server = world.serve(&["--no-auth"]);
    let list = server.get("/command").json(200);
    let mut seen = String::new();
    for command in list.as_array().unwrap() {
        let (name, source) = (
            command["name"].as_str().unwrap(),
            command["source"].as_str().unwrap(),
        );
        seen += &format!("{name} {source}\n");
        if name == "tidy" {
            seen += &format!("{}\n", world.plain(&command.to_string()));
        }
    }
    insta::assert_snapshot!(seen, @r#"
    init command
    review command
    mine command
    tidy skill
    {"name":"tidy","source":"skill","template":"Tidy $ARGUMENTS up, as !`echo told`.\n\n\nBase directory for this skill: PROJECT/.opencode/skill/tidy\nRelative paths in this skill (e.g., scripts/, references/) are relative to this base directory.","hints":[],"description":"about tidy"}
    "#);
    drop(server);
    world.run(&["--command", "tidy", "it"]).ok();
    insta::assert_snapshot!(world.plain(&world.mock.last().texts("user").join("\n")), @r"
    Tidy it up, as told
    .


    Base directory for this skill: PROJECT/.opencode/skill/tidy
    Relative paths in this skill (e.g., scripts/, references/) are relative to this base directory.
    ");
}
