//! The user's grants to single plugins in `outrigger.toml`: variables that look like secrets, and ports to listen on.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::json;

use crate::npm::{installed, world as world_with};
use crate::npm_auth::{Services, got};
use crate::support::*;

/// Writes down its process and the environment it sees.
const SEES: &str = r"
import fs from 'node:fs'
export const Sees = async ({ directory }) => {
  const { ACME_API_KEY = 'none', OTHER_TOKEN = 'none' } = process.env
  fs.appendFileSync(directory + '/NAME.txt', [fs.readlinkSync('/proc/self/ns/pid').replace(/[^0-9]/g, ''), ACME_API_KEY, OTHER_TOKEN].join(' ') + '\n')
  return { 'chat.message': async () => {} }
}";

/// Writes the user's own settings.
pub(crate) fn granting(world: &World, toml: &str) {
    let file = world.home().join(".config/outrigger/outrigger.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, toml).unwrap();
}

/// Returns the grant to change tool calls.
pub(crate) fn rewrites(plugin: &std::path::Path) -> String {
    format!("[plugins.{plugin:?}]\nrewrite = true\n")
}

#[test]
fn a_variable_goes_to_the_plugin_that_is_named_and_to_no_other() {
    let world = World::new([done()]);
    let plugin = |name: &str| world.plugin(name, &SEES.replace("NAME", name));
    let acme = plugin("acme");
    let third = plugin("third");
    plugin("plain");
    plugin("named");
    // `named` only matches by name: any project can contain a file called so.
    granting(
        &world,
        &format!(
            "[plugins.\"{}\"]\nenv = [\"ACME_API_KEY\"]\n[plugins.\"{}\"]\nenv = [\"OTHER_TOKEN\"]\n[plugins.named]\nenv = [\"ACME_API_KEY\"]\n",
            acme.display(),
            third.display(),
        ),
    );
    // A project grants nothing.
    world.settings("[plugins.plain]\nenv = [\"ACME_API_KEY\"]\n");
    let mut run = world.command(&["run", "hi"]);
    run.env("ACME_API_KEY", "acme-key-1")
        .env("OTHER_TOKEN", "other-1")
        .env("OUTRIGGER_LOG", "warn");
    let run = world.start(run).end().ok();
    let saw = |name: &str| {
        let line = world.lines(&format!("{name}.txt")).remove(0);
        let (pid, rest) = line.split_once(' ').unwrap();
        (pid.to_owned(), rest.to_owned())
    };
    let all = ["acme", "third", "plain", "named"].map(saw);
    let texts = all.each_ref().map(|(_, text)| text.as_str());
    assert_eq!(
        texts,
        ["acme-key-1 none", "none other-1", "none none", "none none"]
    );
    // The two plugins with grants have separate processes.
    let pids = all.each_ref().map(|(pid, _)| pid.as_str());
    assert!(
        pids[0] != pids[1] && pids[0] != pids[2] && pids[1] != pids[2] && pids[2] == pids[3],
        "{pids:?}"
    );
    for warning in [
        "plugins.plain.env: ignored: a project cannot loosen its own sandbox",
        "`env`, `ports`, `read`, `write`, `unix_sockets`, `approve`, `rewrite`, `model` and `prompt` of [plugins.\"named\"] are for the npm package of that name",
    ] {
        assert!(run.stderr.contains(warning), "{warning}: {}", run.stderr);
    }
    let secrets = ["acme-key-1", "other-1"];
    assert!(!secrets.iter().any(|secret| run.stderr.contains(secret)));
    // What was granted is in the audit, and what was withheld.
    let granted: BTreeSet<String> = world
        .cli(&["audit", "list", "--kind", "grant", "--json"])
        .ok()
        .lines()
        .into_iter()
        .map(|record| {
            let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
            [text("pluginId"), text("decision"), text("subject")].join(" ")
        })
        .collect();
    for (plugin, decision, variable) in [
        ("acme", "allow", "ACME_API_KEY"),
        ("third", "allow", "OTHER_TOKEN"),
        ("named", "deny", "ACME_API_KEY"),
    ] {
        let start = format!("{plugin} {decision} ");
        let is_it = |it: &String| it.starts_with(&start) && it.contains(variable);
        assert!(granted.iter().any(is_it), "{start}: {granted:?}");
    }
}

#[test]
fn supermemory_takes_its_key_from_the_variable_that_was_granted_to_it() {
    let world = world_with("opencode-supermemory@2.0.10", [done()]);
    if installed(&world, |_| ()).is_none() {
        return;
    }
    let Some(services) = Services::start(&world) else {
        return;
    };
    let run = || {
        let mut run = services.command(&world, &["run", "hi"]);
        run.env("SUPERMEMORY_API_KEY", "sm-key-of-the-environment");
        world.start(run).end().ok();
        got(&world, "api.supermemory.ai/v4/profile")
    };
    assert_eq!(run().len(), 0, "without a grant it has no key");
    granting(
        &world,
        "[plugins.\"opencode-supermemory\"]\nenv = [\"SUPERMEMORY_API_KEY\"]\n",
    );
    let asked = run();
    assert_eq!(
        asked[0]["headers"]["authorization"],
        "Bearer sm-key-of-the-environment"
    );
}

/// Does what a browser does at the end of a login.
fn browse(port: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// A login that ends when the browser returns to a port of the plugin's.
const CALLBACK: &str = r#"
import http from "node:http"
export const Acme = async () => ({
  auth: {
    provider: "acme",
    async loader(getAuth) { return { apiKey: (await getAuth()).access } },
    methods: [{ type: "oauth", label: "Browser", async authorize() {
      let came
      const code = new Promise((resolve) => (came = resolve))
      const server = http.createServer((request, response) => {
        response.end("You may close this page.")
        came(new URL(request.url, "http://localhost").searchParams.get("code"))
      })
      await new Promise((resolve, reject) => server.once("error", reject).listen(PORT, "127.0.0.1", resolve))
      return { url: "https://acme.test/login", instructions: "Sign in.", method: "auto", callback: async () => {
        const access = "access-" + await code
        server.close()
        return { type: "success", refresh: "r", access, expires: Date.now() + 3600_000 }
      } }
    } }],
  },
})
"#;

#[test]
fn a_login_waits_for_the_browser_on_the_port_that_was_granted() {
    let world = World::new([text("Hello from Acme.")]);
    let port = free_port();
    let plugin = world.plugin("acme", &CALLBACK.replace("PORT", &port));
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible", "name": "Acme", "options": { "baseURL": world.mock.url() },
        "models": { "a1": { "limit": { "context": 100_000, "output": 4000 } } },
    });
    world.config(json!({ "provider": { "acme": provider }, "model": "acme/a1" }));
    let login = ["auth", "login", "-p", "acme", "-m", "Browser"];
    // The sandbox lets a plugin listen on ports that the system picks, and on no other.
    let refused = world.cli(&login).exited(1);
    assert!(
        refused
            .stderr
            .contains(&format!("permission denied 127.0.0.1:{port}")),
        "{}",
        refused.stderr
    );
    let hint = format!("(or the path of its file) ports = [{port}]");
    assert!(refused.stderr.contains(&hint), "{}", refused.stderr);
    granting(
        &world,
        &format!("[plugins.\"{}\"]\nports = [{port}]\n", plugin.display()),
    );
    let running = world.start(world.command(&login));
    assert!(
        wait_until(WAIT_TIMEOUT, || running
            .stderr()
            .contains("https://acme.test/login")),
        "{}",
        running.stderr()
    );
    let page = browse(&port, "/callback?code=good");
    assert!(page.contains("You may close this page."), "{page}");
    running.end().ok();
    world.run(&["hi"]).ok();
    assert_eq!(
        world.mock.last().header("authorization"),
        Some("Bearer access-good")
    );
}

/// Like `opencode-cursor-auth` 1.0.16, which serves its model on a port of its choice.
#[test]
fn a_plugin_that_serves_from_its_start_learns_which_port_to_be_granted() {
    let world = World::new([]);
    let port = free_port();
    let serves = "export const Serves = async () => (Bun.serve({ hostname: '127.0.0.1', port: PORT, fetch: () => new Response('here') }), {})";
    let plugin = world.plugin("serves", &serves.replace("PORT", &port));
    let list = |world: &World| world.cli(&["plugin", "list"]);
    let refused = list(&world).exited(0).stdout;
    assert!(refused.starts_with("failed "), "{refused}");
    let hint = format!("(or the path of its file) ports = [{port}]");
    assert!(refused.contains(&hint), "{refused}");
    granting(
        &world,
        &format!("[plugins.\"{}\"]\nports = [{port}]\n", plugin.display()),
    );
    let granted = list(&world).exited(0).stdout;
    assert!(granted.starts_with("active "), "{granted}");
}

/// A published plugin that does this, on the port that its service redirects browsers to.
#[test]
fn codex_auth_waits_for_the_browser_on_its_own_port() {
    let world = world_with("opencode-openai-codex-auth@4.4.0", []);
    if installed(&world, |_| ()).is_none() {
        return;
    }
    let Some(services) = Services::start(&world) else {
        return;
    };
    if std::net::TcpListener::bind("127.0.0.1:1455").is_err() {
        return skip("port 1455, which the plugin listens on, is taken here");
    }
    granting(
        &world,
        "[plugins.\"opencode-openai-codex-auth\"]\nports = [1455]\n",
    );
    let method = "ChatGPT Plus/Pro (Codex Subscription)";
    let login = services.command(&world, &["auth", "login", "-p", "openai", "-m", method]);
    let running = world.start(login);
    let state = || {
        let said = running.stderr();
        let (_, rest) = said.split_once("&state=")?;
        let end = rest.find(['&', '\n'])?;
        Some(rest[..end].to_owned())
    };
    assert!(
        wait_until(WAIT_TIMEOUT, || state().is_some()),
        "{}",
        running.stderr()
    );
    let callback = format!(
        "/auth/callback?code=of-the-browser&state={}",
        state().unwrap()
    );
    assert!(browse("1455", &callback).starts_with("HTTP/1.1 200"));
    running.end().ok();
    let token = got(&world, "auth.openai.com/oauth/token").remove(0);
    let body = token["body"].as_str().unwrap();
    assert!(body.contains("code=of-the-browser"), "{body}");
}
