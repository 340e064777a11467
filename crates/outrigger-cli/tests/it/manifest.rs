//! What a plugin with a manifest can access, through the whole program.

use std::fs;

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::granting;

/// Writes down what it sees.
const SEES: &str = r#"
import fs from "node:fs"
import net from "node:net"
export const Sees = async ({ directory, serverUrl }) => ({
  "chat.message": async () => {
    const e = process.env
    const route = async (method, path) => (await fetch(new URL(path, serverUrl), { method })).status
    const connects = await new Promise((resolve) => {
      const socket = net.connect(PORT, "127.0.0.1", () => { socket.destroy(); resolve("yes") })
      socket.on("error", (error) => resolve(error.code))
    })
    fs.writeFileSync(directory + "/out/sees.json", JSON.stringify({
      env: [e.ACME_MODE, e.OTHER_MODE, e.ACME_API_KEY, e.ACME_SECOND_KEY, e.OTHER_KEY].map((it) => it ?? "none"),
      routes: [await route("GET", "session"), await route("GET", "session/x/../../config"), await route("GET", "config"), await route("POST", "session")],
      connects,
    }))
  },
})
"#;

fn sees(world: &World, hosts: &str) -> Value {
    let manifest = format!(
        "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"hook\"\nentry = \"main.js\"\n[permissions]\nenv = [\"ACME_*\"]\nsecrets = [\"ACME_API_KEY\", \"ACME_SECOND_KEY\"]\nclient = [\"GET /session\"]\n[permissions.files]\nwrite = [\"out\"]\n[permissions.network]\nhosts = {hosts}\n"
    );
    world.file("tools/acme/outrigger.plugin.toml", &manifest);
    let mut run = world.command(&["run", "hi"]);
    for name in [
        "ACME_MODE",
        "OTHER_MODE",
        "ACME_API_KEY",
        "ACME_SECOND_KEY",
        "OTHER_KEY",
    ] {
        run.env(name, format!("v-{name}"));
    }
    run.env("OUTRIGGER_TRUST_CHANGES", "allow");
    let _ = fs::remove_file(world.path("out/sees.json"));
    world.start(run).end().ok();
    world.json("out/sees.json")
}

#[test]
fn a_manifest_asks_and_the_user_grants() {
    let world = World::new([done(), done()]);
    let port = world.mock.url();
    let port = port
        .rsplit(':')
        .next()
        .unwrap()
        .trim_end_matches("/v1")
        .to_owned();
    world.packages();
    world.file("out/.keep", "");
    world.file("tools/acme/main.js", &SEES.replace("PORT", &port));
    world.config(json!({ "plugin": ["./tools/acme"] }));
    granting(
        &world,
        &format!(
            "[plugins.\"{}\"]\nenv = [\"ACME_API_KEY\", \"OTHER_KEY\"]\n",
            world.path("tools/acme").display()
        ),
    );
    let saw = sees(&world, &format!("[\"127.0.0.1:{port}\"]"));
    // Requested and not secret; not requested; requested and granted; only requested; only granted.
    assert_eq!(
        saw["env"],
        json!(["v-ACME_MODE", "none", "v-ACME_API_KEY", "none", "none"])
    );
    assert_eq!(saw["routes"], json!([200, 403, 403, 403]));
    // A request beyond its manifest is refused, and recorded under its name.
    let refused = world.cli(&["audit", "export", "--plugin", "acme", "--kind", "client"]);
    for route in ["GET /config", "POST /session"] {
        let mut lines = refused.stdout.lines();
        assert!(
            lines.any(|line| line.contains(&format!("{route}\""))
                && line.contains("refused: permissions.client")),
            "{route}: {}",
            refused.stdout
        );
    }
    assert_eq!(saw["connects"], "yes");
    let shown = world.cli(&["plugin", "show", "acme"]).ok();
    for want in [
        "its own outrigger.plugin.toml",
        "not given  the variable ACME_SECOND_KEY",
        &format!(
            "not given  the host 127.0.0.1:{port} (`hosts = [\"127.0.0.1:{port}\"]` grants it)"
        ),
    ] {
        assert!(shown.stdout.contains(want), "{want}: {}", shown.stdout);
    }
    let saw = sees(&world, "[\"api.acme.test\"]");
    assert_eq!(saw["connects"], "EACCES");
    let abi = outrigger_sandbox::Spawner::new().unwrap().landlock_abi();
    let saw = sees(&world, "[]");
    // TCP rules came with the fourth version of Landlock.
    assert_eq!(saw["connects"] == "yes", abi < 4, "{saw}");
    world.cli(&["plugin", "show", "nobody"]).exited(2);
}

/// A manifest is the plugin's own word: it opens no file that a variable of the user's names.
#[test]
fn a_manifest_opens_no_file_that_a_variable_names() {
    let world = World::new([done(), done()]);
    world.packages();
    world.file("out/.keep", "");
    let keys = world.home().join("ops");
    fs::create_dir_all(&keys).unwrap();
    fs::write(keys.join("me.keytab"), "KEYTAB").unwrap();
    world.file(
        "tools/acme/main.js",
        r#"
import fs from "node:fs"
export const Reads = async ({ directory }) => ({
  "chat.message": async () => {
    let read
    try { read = fs.readFileSync(process.env.KRB5_CLIENT_KTNAME, "utf8") } catch (error) { read = error.code }
    fs.writeFileSync(directory + "/out/read.json", JSON.stringify(read))
  },
})
"#,
    );
    world.file(
        "tools/acme/outrigger.plugin.toml",
        "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"hook\"\nentry = \"main.js\"\n[permissions]\nenv = [\"KRB5_CLIENT_KTNAME\"]\n[permissions.files]\nwrite = [\"out\"]\n",
    );
    world.config(json!({ "plugin": ["./tools/acme"] }));
    let read = || {
        let mut run = world.command(&["run", "hi"]);
        run.env("KRB5_CLIENT_KTNAME", keys.join("me.keytab"));
        world.start(run).end().ok();
        world.json("out/read.json")
    };
    assert_ne!(read(), json!("KEYTAB"));
    let acme = world.path("tools/acme");
    let granted = format!(
        "[plugins.\"{}\"]\nenv = [\"KRB5_CLIENT_KTNAME\"]\n",
        acme.display()
    );
    granting(&world, &granted);
    assert_eq!(read(), json!("KEYTAB"));
}
