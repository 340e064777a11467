//! Access to a file or a host gets the same answer on every path: each form of rule, each tool, each route.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

const SECRET: &str = "not-for-anybody";

fn bash(command: &str) -> Value {
    call("bash", json!({ "command": command, "description": "x" }))
}

/// A repository with a secret, a secret next to it and one in the home folder.
fn world(turns: impl IntoIterator<Item = Value>, permission: Value) -> World {
    let world = World::new(turns);
    world.file(".git/HEAD", "ref: refs/heads/main\n");
    world.file("sub/.env", SECRET);
    world.file("plain.txt", "plain");
    symlink("sub/.env", world.path("link")).unwrap();
    symlink("sub", world.path("folder")).unwrap();
    std::fs::hard_link(world.path("sub/.env"), world.path("hard")).unwrap();
    for file in [
        world.home().join("keys/id"),
        world.root().join("beside/.env"),
    ] {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, SECRET).unwrap();
    }
    granting(&world, "[tools]\nsandbox = \"full\"\nunix_sockets = true\n");
    let mut rules = json!({ "external_directory": { "*": "allow" } });
    for (name, rule) in permission.as_object().unwrap() {
        rules[name] = rule.clone();
    }
    world.config(json!({ "permission": rules }));
    world
}

/// Tries every tool that shows a file, and a command, with every form of rule and every name of the file.
#[test]
fn tools_and_commands_get_the_same_answer() {
    let of_project = ["sub/.env", "link", "folder/.env", "hard"];
    let (keys, beside) = (["../home/keys/id"], ["../beside/.env"]);
    let rows: [(Value, &[&str]); 11] = [
        (json!({ "read": { "sub/.env": "deny" } }), &of_project),
        (json!({ "read": { "**/.env": "deny" } }), &of_project),
        (json!({ "read": { "./sub": "deny" } }), &of_project),
        (json!({ "read": { "*.ENV": "deny" } }), &of_project),
        (
            json!({ "read": { "PROJECT/sub/.env": "deny" } }),
            &of_project,
        ),
        (json!({ "read": { "PROJECT/*.env": "deny" } }), &of_project),
        (json!({ "read": { "~/keys/*": "deny" } }), &keys),
        (json!({ "read": { "*.env": "deny" } }), &beside),
        (
            json!({ "external_directory": { "*": "allow", "~/keys": "deny" } }),
            &keys,
        ),
        (
            json!({ "external_directory": { "*": "allow", "**/keys/**": "deny" } }),
            &keys,
        ),
        (
            json!({ "external_directory": { "*": "allow", "*/beside/*": "deny" } }),
            &beside,
        ),
    ];
    for (rules, names) in rows {
        let mut calls = Vec::new();
        for name in names {
            let patch = format!(
                "*** Begin Patch\n*** Update File: {name}\n*** Move to: open.txt\n@@\n-{SECRET}\n+{SECRET} \n*** End Patch"
            );
            calls.extend([
                call("read", json!({ "filePath": name })),
                call("grep", json!({ "pattern": "not-for", "path": name })),
                call(
                    "edit",
                    json!({ "filePath": name, "oldString": SECRET, "newString": "x" }),
                ),
                call("apply_patch", json!({ "patchText": patch })),
                call("table", json!({ "path": name })),
                bash(&format!("cat {name}")),
                bash(&format!("f={name}; tail -n +1 \"$f\"")),
            ]);
        }
        calls.push(call("grep", json!({ "pattern": "not-for" })));
        calls.push(bash("grep -rh not-for . ../home ../beside"));
        let elsewhere = names.len() == 1;
        let world = world([turn(calls), done()], json!({}));
        let root = world.project().display().to_string();
        let text = rules.to_string().replace("PROJECT", &root);
        let mut rules: Value = serde_json::from_str(&text).unwrap();
        if rules.get("external_directory").is_none() {
            rules["external_directory"] = json!("allow");
        }
        world.config(json!({ "permission": rules }));
        world.run(&["do it"]);
        for part in world.parts("tool") {
            let content = part["state"]["output"].as_str().unwrap_or_default();
            let error = part["state"]["error"].as_str().unwrap_or_default();
            let whole = part["state"]["input"].to_string();
            // A search of everything may find files the rule does not cover.
            let is_search = whole.contains("grep -rh") || whole == r#"{"pattern":"not-for"}"#;
            if is_search && elsewhere {
                continue;
            }
            let others = content.matches(SECRET).count();
            let most = usize::from(whole.contains("grep -rh")) * 2;
            assert!(
                others <= most && !error.contains(SECRET),
                "{rules} {whole}: {content} {error}"
            );
        }
        assert!(!world.path("open.txt").exists(), "{rules}");
        for name in ["sub/.env", "../home/keys/id", "../beside/.env"] {
            assert_eq!(world.read(name), SECRET, "{rules} {name}");
        }
    }
}

/// Tries every route that shows files or their names.
#[test]
fn routes_neither_show_nor_name_denied_files() {
    for pattern in ["sub/.env", "**/.env", "*.env", "PROJECT/sub/.env", "sub"] {
        let world = world([done()], json!({}));
        let pattern = pattern.replace("PROJECT", &world.project().display().to_string());
        world.config(json!({ "permission": { "read": { pattern.clone(): "deny" } } }));
        let server = world.serve(&["--no-auth"]);
        for path in [
            "/find?pattern=not-for",
            "/find/file?query=env",
            "/find/file?query=.env&dirs=true&limit=100",
            "/file?path=sub",
            "/file/content?path=sub%2F.env",
            "/file/content?path=link",
            "/file/content?path=hard",
            "/file/content?path=folder%2F.env",
            "/file/content?path=.%2Fplain.txt%2F..%2Fsub%2F.env",
        ] {
            let answer = server.get(path).text();
            // A client may read back the path it sent.
            let names = !path.starts_with("/file/content") && answer.contains(".env\"");
            let leaked = answer.contains(SECRET) || names;
            assert!(!leaked, "{pattern} {path}: {answer}");
        }
        assert!(
            server
                .get("/file/content?path=plain.txt")
                .text()
                .contains("plain")
        );
    }
}

/// Covers a prompt part, a mention in a command and a file on the command line.
#[test]
fn what_goes_with_a_prompt_keeps_to_the_same_rules() {
    for (pattern, file) in [
        ("sub/.env", "sub/.env"),
        ("PROJECT/sub/.env", "sub/.env"),
        ("**/.env", "link"),
        ("**/.env", "hard"),
        ("sub", "folder/.env"),
    ] {
        let world = world([done(), done(), done()], json!({}));
        let pattern = pattern.replace("PROJECT", &world.project().display().to_string());
        world.config(json!({
            "permission": { "read": { pattern.clone(): "deny" } },
            "command": { "look": { "template": format!("see @{file}") } },
        }));
        let server = world.serve(&["--no-auth"]);
        let session = server.post("/session", &json!({})).json(200);
        let at = format!("/session/{}", session["id"].as_str().unwrap());
        let url = format!("file://{}/{file}", world.project().display());
        let part = json!({ "type": "file", "mime": "text/plain", "filename": file, "url": url });
        let parts = json!({ "parts": [{ "type": "text", "text": "see" }, part] });
        server.post(&format!("{at}/message"), &parts).json(200);
        let command = json!({ "command": "look", "arguments": "" });
        server.post(&format!("{at}/command"), &command).json(200);
        drop(server);
        world.run(&["-f", file, "--", "see"]);
        for request in world.mock.requests() {
            let prompt = request.texts("user").join(" ");
            assert!(!prompt.contains(SECRET), "{pattern} {file}: {prompt}");
        }
    }
}

/// Asks the server about its own folder once a file `go` exists next to it, under every name of the folder. It may write to where the
/// folder is now.
const ASKS: &str = r#"
import fs from 'node:fs'
import path from 'node:path'
export const P = async ({ serverUrl: url, directory }) => {
  if (path.basename(directory) !== 'work') return {}
  const above = path.dirname(directory)
  const asks = async () => {
    while (!fs.existsSync(above + '/go')) await new Promise((end) => setTimeout(end, 50))
    const answers = []
    for (const route of ROUTES) {
      for (const named of [undefined, directory, encodeURIComponent(directory), 'work/.']) {
        const headers = named === undefined ? {} : { 'x-opencode-directory': named }
        const answer = await fetch(new URL(route, url), { headers })
        answers.push({ route, named, status: answer.status, text: await answer.text() })
      }
    }
    fs.writeFileSync(above + '/moved/answers.json', JSON.stringify(answers))
  }
  asks().catch((error) => fs.writeFileSync(above + '/moved/answers.json', JSON.stringify(String(error))))
  return {}
}
"#;

/// A subfolder with a running agent is replaced by a link: neither a client nor the agent's plugin gets the link's target.
#[test]
fn a_folder_that_becomes_a_link_is_not_searched() {
    let world = world([done()], json!({}));
    let routes = [
        "/find?pattern=not-for",
        "/find/file?query=id",
        "/api/fs/find?query=id",
        "/file?path=.",
        "/file/content?path=id",
        "/vcs/status",
        "/vcs/diff?mode=git",
    ];
    // The user's own plugin: a folder inside the project is trusted on its own.
    let plugins = world.home().join(".config/opencode/plugin");
    std::fs::create_dir_all(&plugins).unwrap();
    let asks = ASKS.replace("ROUTES", &json!(routes).to_string());
    std::fs::write(plugins.join("asks.js"), asks).unwrap();
    world.packages();
    world.file("work/a.txt", "mine");
    let server = world.serve(&["--no-auth"]);
    let folder = world.path("work");
    let of = |path: &str| {
        let mark = if path.contains('?') { '&' } else { '?' };
        format!("{path}{mark}directory={}", folder.display())
    };
    assert!(
        server
            .get(&of("/find?pattern=mine"))
            .text()
            .contains("a.txt")
    );
    std::fs::rename(&folder, world.path("moved")).unwrap();
    symlink(world.home().join("keys"), &folder).unwrap();
    for path in routes {
        let named = server.send("GET", path, &[("X-OpenCode-Directory", "work/.")], None);
        for answer in [server.get(&of(path)), named] {
            assert_eq!(answer.status, 409, "{path}: {}", answer.text());
            assert!(!answer.text().contains(SECRET), "{path}: {}", answer.text());
        }
    }
    world.file("go", "");
    let answers = world.json("moved/answers.json");
    for answer in answers.as_array().unwrap_or_else(|| panic!("{answers}")) {
        assert_eq!(answer["status"], 409, "{answer}");
        assert!(!answer.to_string().contains(SECRET), "{answer}");
    }
    assert_eq!(answers.as_array().unwrap().len(), 4 * routes.len());
    std::fs::remove_file(&folder).unwrap();
    std::fs::create_dir(&folder).unwrap();
    let answer = server.get(&of("/find?pattern=mine"));
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert!(
        answer
            .text()
            .contains("was replaced by a link or another folder"),
        "{}",
        answer.text()
    );
    std::fs::remove_dir(&folder).unwrap();
    std::fs::rename(world.path("moved"), &folder).unwrap();
    assert!(
        server
            .get(&of("/find?pattern=mine"))
            .text()
            .contains("a.txt")
    );
}

/// Answers every request; `/to?URL` with a redirect.
fn pages() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let target = head.split(' ').nth(1).unwrap_or_default();
            let answer = match target.split_once('?') {
                Some((_, to)) => format!(
                    "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                ),
                None => format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SECRET}",
                    SECRET.len()
                ),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    base
}

/// Calls `webfetch` by address, by redirect and by name; an address of this machine needs a rule that names it.
#[test]
fn webfetch_keeps_to_hosts_that_are_left_and_allowed() {
    let base = pages();
    let port = base.rsplit(':').next().unwrap().to_owned();
    let but = |denied: &str| json!({ "http*": "allow", "http://127.0.0.1:*": "allow", format!("{base}{denied}"): "deny", "http://u*": "allow" });
    let named = json!({ "http://127.0.0.1:*": "allow", "http://127.0.0.9*": "allow", "http://evil.test/*": "allow", "http://localhost*": "allow" });
    for (url, rules, shown, says) in [
        (
            format!("{base}/x"),
            json!("allow"),
            false,
            "this machine or its network",
        ),
        (
            format!("http://localhost:{port}/x"),
            json!("allow"),
            false,
            "this machine or its network",
        ),
        (
            format!("http://2130706433:{port}/x"),
            json!("allow"),
            false,
            "this machine or its network",
        ),
        (format!("{base}/x"), named.clone(), true, ""),
        (
            format!("http://LOCALHOST:{port}/x"),
            named.clone(),
            false,
            "needs approval",
        ),
        (
            "http://evil.test/x".to_owned(),
            named.clone(),
            false,
            "forbids the host evil.test",
        ),
        (
            "http://EVIL.test./x".to_owned(),
            named.clone(),
            false,
            "forbids the host evil.test",
        ),
        (
            "http://a.bad.test/x".to_owned(),
            json!("allow"),
            false,
            "forbids the host a.bad.test",
        ),
        (
            format!("http://127.0.0.9:{port}/x"),
            named.clone(),
            false,
            "forbids the host 127.0.0.9",
        ),
        (
            format!("{base}/to?http://evil.test/x"),
            named.clone(),
            false,
            "forbids the host evil.test",
        ),
        (
            format!("{base}/to?http://127.0.0.9:{port}/x"),
            named.clone(),
            false,
            "forbids the host 127.0.0.9",
        ),
        // Denied by a rule, not only by the policy.
        (
            format!("{base}/to?http://localhost:{port}/x"),
            json!({ "http://127.0.0.1:*": "allow", "http://localhost*": "deny" }),
            false,
            "a rule denies it",
        ),
        (
            format!("{base}/to?http://localhost:{port}/x"),
            json!({ "http://127.0.0.1:*": "allow" }),
            false,
            "no rule allows it by name",
        ),
        // Another spelling of a denied address.
        (base.replace("//", "//u:p@") + "/x", but("/x*"), false, ""),
        (format!("{base}/%78"), but("/x*"), false, ""),
        (format!("{base}//x"), but("/x*"), false, ""),
        (base.clone(), but("/*"), false, "A rule denies"),
        (
            base.clone(),
            json!({ "http*": "allow", "http://127.0.0.1:*": "allow", format!("{base}/*"): "ask" }),
            false,
            "needs approval",
        ),
        (
            format!("{base}/to?{base}/%78"),
            but("/x*"),
            false,
            "a rule denies it",
        ),
        (format!("{base}/%79"), but("/x*"), true, ""),
    ] {
        let fetch = call("webfetch", json!({ "url": url, "format": "text" }));
        let world = World::new([turn([fetch]), done()]);
        world.config(json!({ "permission": { "webfetch": rules } }));
        let policy = "[forbid]\nhosts = [\"evil.test\", \"*.bad.test\", \"127.0.0.9\"]\n";
        let file = world.root().join("policy.toml");
        std::fs::write(&file, policy).unwrap();
        world.run_with(&[("OUTRIGGER_POLICY", file.to_str().unwrap())], &["do it"]);
        let output = world.parts("tool")[0]["state"].to_string();
        assert_eq!(output.contains(SECRET), shown, "{url} {rules}: {output}");
        assert!(output.contains(says), "{url} {rules}: {output}");
    }
}

/// Checks the address of a provider and of an MCP server.
#[test]
fn providers_and_servers_are_asked_where_the_policy_leaves_them() {
    let world = World::new([done()]);
    let policy = world.root().join("policy.toml");
    std::fs::write(&policy, "[forbid]\nhosts = [\"127.0.0.1\"]\n").unwrap();
    world.config(json!({
        "mcp": { "there": { "type": "remote", "url": format!("{}/mcp", pages()) } },
    }));
    let variables = [("OUTRIGGER_POLICY", policy.to_str().unwrap())];
    let done = world.run_with(&variables, &["do it"]);
    assert!(
        done.stderr.contains("forbids the host 127.0.0.1"),
        "{}",
        done.stderr
    );
    assert!(world.mock.requests().is_empty());
    let mut command = world.command(&["mcp", "list"]);
    command.envs(variables);
    let listed = world.start(command).end();
    assert!(
        format!("{}{}", listed.stdout, listed.stderr).contains("forbids the host 127.0.0.1"),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
}

/// A rule that matches nothing, and a key that nothing reads, are reported with their line by every command that reads the configuration.
/// If a rule is lost because of it, it is an error.
#[test]
fn a_rule_that_never_counts_is_reported() {
    let world = World::new([done()]);
    let whole = world.json("opencode.json");
    let written = |key: &str, value: Value| {
        let mut whole = whole.clone();
        whole[key] = value;
        whole["modle"] = json!("mock/m1");
        let text = serde_json::to_string_pretty(&whole).unwrap();
        world.file("opencode.json", &text);
    };
    let commands = [&["run", "do it"][..], &["doctor"], &["config", "show"]];
    let never = json!({ "read": { "*.{env,pem}": "deny" }, "rad": "deny" });
    written("permission", never);
    for args in commands {
        let done = world.start(world.command(args)).end();
        let output = format!("{}{}", done.stdout, done.stderr);
        for says in [
            "opencode.json:",
            "is no choice here",
            "did you mean `read`",
            "did you mean `model`",
        ] {
            assert!(output.contains(says), "{args:?} {says}: {output}");
        }
        assert_eq!(done.code, 0, "{args:?}: {output}");
    }
    for (key, value, says) in [
        (
            "permission",
            json!({ "edti": "deny" }),
            "did you mean `edit`",
        ),
        (
            "permissions",
            json!({ "edit": "deny" }),
            "did you mean `permission`",
        ),
    ] {
        written(key, value);
        for args in commands {
            let done = world.start(world.command(args)).end();
            let output = format!("{}{}", done.stdout, done.stderr);
            assert!(
                output.contains(says) && done.code != 0,
                "{args:?}: {output}"
            );
        }
    }
}

/// Serves as the web proxy: `http://good.test/to` redirects to another host, all else has the secret. Returns its address and the
/// hosts that were asked.
fn proxy() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or_default();
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let target = head.split(' ').nth(1).unwrap_or_default();
            log.lock().unwrap().push(target.to_owned());
            let answer = match target.strip_prefix("http://good.test/to?") {
                Some(to) => format!(
                    "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                ),
                None => format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SECRET}",
                    SECRET.len()
                ),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (base, asked)
}

/// An open redirect of an allowed host is no way to one that has to be asked about.
#[test]
fn a_redirect_to_another_host_is_decided_as_a_call_for_it() {
    const GOOD: &str = "http://good.test/*";
    const OTHER: &str = "http://other.test/*";
    for (to, rules, is_followed) in [
        (
            "http://other.test/?data",
            json!({ "*": "ask", GOOD: "allow" }),
            false,
        ),
        (
            "http://other.test:81/",
            json!({ "*": "ask", GOOD: "allow", "http://other.test/*": "allow" }),
            false,
        ),
        (
            "http://good.test:81/",
            json!({ "*": "ask", GOOD: "allow" }),
            false,
        ),
        (
            "http://other.test/",
            json!({ "*": "ask", GOOD: "allow", OTHER: "allow" }),
            true,
        ),
        ("http://other.test/", json!("allow"), true),
        ("/here", json!({ "*": "ask", GOOD: "allow" }), true),
    ] {
        let (proxy, asked) = proxy();
        let url = format!("http://good.test/to?{to}");
        let world = World::new([
            turn([call("webfetch", json!({ "url": url, "format": "text" }))]),
            done(),
        ]);
        world.config(json!({ "permission": { "webfetch": rules } }));
        let variables = [
            ("http_proxy", proxy.as_str()),
            ("HTTP_PROXY", &proxy),
            ("NO_PROXY", "127.0.0.1"),
            ("no_proxy", "127.0.0.1"),
        ];
        world.run_with(&variables, &["do it"]);
        let output = world.parts("tool")[0]["state"].to_string();
        assert_eq!(output.contains(SECRET), is_followed, "{to}: {output}");
        let asked = asked.lock().unwrap().clone();
        assert_eq!(
            asked.len(),
            if is_followed { 2 } else { 1 },
            "{to}: {asked:?}"
        );
        if !is_followed {
            let list = [
                "audit",
                "list",
                "--json",
                "--kind",
                "permission",
                "-n",
                "1000",
            ];
            let records = world.cli(&list).ok().lines();
            let host = to.split('?').next().unwrap();
            let is_written = |it: &Value| {
                it["decision"] == "deny"
                    && it["subject"].as_str().is_some_and(|it| it.contains(host))
            };
            assert!(records.iter().any(is_written), "{to}: {records:?}");
        }
    }
}
