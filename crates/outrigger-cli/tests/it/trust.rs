//! Trust by content and the managed policy, through the whole program.

use std::fs;

use crate::question::Person;
use crate::support::*;
use crate::user_grants::granting;

/// Returns a plugin that adds its word to the user's message.
fn says(word: &str) -> String {
    format!(
        "export const P = async () => ({{ 'chat.message': async (i, o) => {{ o.parts[0].text += ' {word}' }} }})\n"
    )
}

fn prompts(world: &World) -> Vec<String> {
    world.mock.last().texts("user")
}

#[test]
fn a_changed_plugin_is_left_out_until_it_was_reviewed() {
    let world = World::new([done(), done(), done(), done()]);
    world.plugin("word", &says("first"));
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi first"]);
    // The project changes its text. Nobody is there to be asked.
    world.plugin("word", &says("second"));
    let run = world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi"]);
    assert!(
        run.stderr.contains("it is not what was trusted"),
        "{}",
        run.stderr
    );
    world.run(&["--strict-plugins", "hi"]).exited(3);
    let listed = world.cli(&["plugin", "list"]).ok();
    assert!(
        listed.stdout.contains("plugin.changed"),
        "{}",
        listed.stdout
    );
    let review = world.cli(&["plugin", "review"]).exited(3);
    insta::assert_snapshot!(hashes(&world.plain(&review.stdout)), @r"
    changed  word  (file://PROJECT/.opencode/plugin/word.js)
      trusted by first use: 1 files, sha256:...
      now sha256:...
             │   changed  word.js  99 -> 100 bytes
             │     @@ -1 +1 @@
             │     -export const P = async () => ({ 'chat.message': async (i, o) => { o.parts[0].text += ' first' } })
             │     +export const P = async () => ({ 'chat.message': async (i, o) => { o.parts[0].text += ' second' } })
    ");
    world.cli(&["plugin", "review", "word", "--accept"]).ok();
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi second"]);
    let status = world.cli(&["plugin", "list", "--json"]).ok().json();
    assert_eq!(status[0]["trust"]["by"], "review");
    world.cli(&["plugin", "review", "nobody"]).exited(2);
}

/// The script of a worker is code of the plugin that starts it.
#[test]
fn a_changed_script_of_a_worker_is_a_changed_plugin() {
    let world = World::new([done(), done()]);
    let worker = "const start = () => new Worker(new URL('../scripts/counts', import.meta.url))\n";
    world.plugin("word", &format!("{}{worker}", says("first")));
    let script = ".opencode/scripts/counts.ts";
    world.file(script, "postMessage(1)\n");
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi first"]);
    world.file(script, "postMessage(2)\n");
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi"]);
    let review = world.cli(&["plugin", "review"]).exited(3);
    assert!(
        review.stdout.contains("+postMessage(2)"),
        "{}",
        review.stdout
    );
}

/// Replaces each hash with `sha256:...`.
fn hashes(text: &str) -> String {
    let mut parts = text.split("sha256:");
    let first = parts.next().unwrap().to_owned();
    parts
        .map(|part| part.trim_start_matches(|c: char| c.is_ascii_hexdigit()))
        .fold(first, |text, part| format!("{text}sha256:...{part}"))
}

#[test]
fn a_person_at_a_terminal_is_asked_and_shown_what_changed() {
    let world = World::new([done(), done(), done(), done()]);
    world.plugin("word", &says("first"));
    world.run(&["hi"]).ok();
    world.plugin("word", &says("second"));
    for (answer, says) in [("\n", "hi"), ("y\n", "hi second")] {
        let mut person = Person::at(&world, &["hi"]);
        person.sees("start it, and trust it as it is now?");
        let screen = person.screen();
        assert!(screen.contains("word.js"), "{screen}");
        assert!(screen.contains("-export const P"), "{screen}");
        assert!(screen.contains("+export const P"), "{screen}");
        person.types(answer);
        person.ends(0);
        assert_eq!(prompts(&world), [says]);
    }
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi second"]);
}

#[test]
fn a_project_cannot_loosen_trust_and_the_user_can() {
    let world = World::new([done(), done(), done()]);
    world.plugin("word", &says("first"));
    world.run(&["hi"]).ok();
    world.plugin("word", &says("second"));
    world.settings("[trust]\nchanges = \"allow\"\nprojects = \"trust\"\nworld_writable = true\n");
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi"]);
    granting(&world, "[trust]\nchanges = \"allow\"\n");
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi second"]);
}

#[test]
fn a_project_that_was_never_trusted_is_asked_for_where_the_user_says_so() {
    let world = World::new([done(), done()]);
    granting(&world, "[trust]\nprojects = \"ask\"\n");
    world.plugin("word", &says("first"));
    let run = world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi"]);
    assert!(
        run.stderr.contains("plugins of projects need approval"),
        "{}",
        run.stderr
    );
    world.cli(&["plugin", "review", "--accept"]).ok();
    world.run(&["hi"]).ok();
    assert_eq!(prompts(&world), ["hi first"]);
}

/// Returns a test's policy file. A policy can only make things stricter, so anyone may name one.
fn policy(world: &World, toml: &str) -> [(&'static str, String); 1] {
    let file = world.root().join("policy.toml");
    fs::write(&file, toml).unwrap();
    [("OUTRIGGER_POLICY", file.display().to_string())]
}

#[test]
fn what_the_policy_says_no_project_and_no_user_loosens() {
    let world = World::new([done(), done()]);
    world.plugin("word", &says("first"));
    let other = world.plugin("other", &says("other"));
    granting(
        &world,
        &format!(
            "sandbox = \"off\"\n[trust]\nchanges = \"allow\"\n[plugins.\"{}\"]\nenv = [\"ACME_KEY\", \"OTHER_KEY\"]\nports = [4711]\nunix_sockets = true\n",
            other.display()
        ),
    );
    let text = "[plugins]\ndeny = [\"*/word.js\"]\n[sandbox]\nminimum = \"on\"\ntools = \"workspace-write\"\n[trust]\nchanges = \"ask\"\nprojects = \"ask\"\n[grants]\nforbid = [\"ports\", \"unix_sockets\"]\nforbid_env = [\"ACME_*\"]\n";
    let named = policy(&world, text);
    let with = |args: &[&str]| {
        let mut command = world.command(args);
        command.envs(named.iter().map(|(name, value)| (*name, value.as_str())));
        // Not by a variable either.
        command
            .env("OUTRIGGER_SANDBOX", "off")
            .env("OUTRIGGER_TRUST_CHANGES", "allow");
        world.start(command).end()
    };
    with(&["run", "hi"]).ok();
    assert_eq!(prompts(&world), ["hi"]);
    let listed = with(&["plugin", "list", "--json"]).ok().json();
    let codes: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["cause"]["code"].as_str())
        .collect();
    assert_eq!(codes, ["plugin.untrusted", "plugin.forbidden"]);
    let doctor = with(&["doctor"]);
    let lines: Vec<&str> = doctor
        .stdout
        .lines()
        .filter(|line| line.trim_start().starts_with("policy:"))
        .collect();
    insta::assert_snapshot!(world.plain(&lines.join("\n")).replace(&world.root().display().to_string(), "ROOT"), @r"
                      policy: plugins denied: */word.js
                      policy: sandbox is at least on
                      policy: tools.sandbox is at least workspace-write
                      policy: trust.projects is at least ask
                      policy: trust.changes is at least ask
                      policy: no plugin is granted: [Ports, UnixSockets]
                      policy: no plugin is granted the variables ACME_*
    ");
}

#[test]
fn a_policy_that_cannot_be_read_ends_the_start() {
    let world = World::new([]);
    for (text, says) in [
        ("[plugins]\nalow = []\n", "2:1: unknown setting `alow`"),
        ("[sandbox]\nminimum = \"of\"\n", "2:11: unknown value `of`"),
        ("[plugins]\nallow = \"x\"\n", "2:9: not valid TOML"),
        ("plugins", "not valid TOML"),
    ] {
        let [(name, file)] = policy(&world, text);
        let run = world.run_with(&[(name, &file)], &["hi"]);
        assert_ne!(run.code, 0);
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
    }
    let gone = world.run_with(&[("OUTRIGGER_POLICY", "/nowhere/policy.toml")], &["hi"]);
    assert_ne!(gone.code, 0);
    assert!(
        gone.stderr.contains("OUTRIGGER_POLICY names it"),
        "{}",
        gone.stderr
    );
}
