//! `apply_patch`: who is offered it, and what becomes of a call.

use serde_json::{Value, json};

use crate::granted::{granting, rewrites};
use crate::support::*;

fn patch(body: &str) -> Value {
    let text = format!("*** Begin Patch\n{body}\n*** End Patch");
    turn([call("apply_patch", json!({ "patchText": text }))])
}

/// The project's model is known to its provider under this name.
pub(crate) fn named(world: &World, api: &str) {
    world.config(json!({ "provider": { "mock": { "models": { "m1": { "id": api } } } } }));
}

#[test]
fn models_that_are_trained_on_patches_get_it_in_place_of_edit_and_write() {
    for (api, patches) in [
        ("m1", false),
        ("gpt-5.1-codex", true),
        ("openai/gpt-5", true),
        ("gpt-4o", false),
        ("gpt-oss-120b", false),
        ("claude-sonnet-4-5", false),
    ] {
        let world = World::new([done()]);
        named(&world, api);
        world.run(&["hi"]).ok();
        let tools = world.mock.last().tools();
        for (tool, there) in [
            ("apply_patch", patches),
            ("edit", !patches),
            ("write", !patches),
            ("read", true),
            ("lsp", false),
        ] {
            assert_eq!(tools.contains(&tool.to_owned()), there, "{api}: {tool}");
        }
    }
}

#[test]
fn a_patch_goes_the_way_of_every_call() {
    let world = World::new([
        patch("*** Add File: new.txt\n+made\n*** Update File: hello.txt\n@@\n-hi there\n+HOOK"),
        patch("*** Update File: gone.txt\n@@\n-a\n+b"),
        done(),
    ]);
    named(&world, "gpt-5");
    let plugin = world.plugin("watch", "import { appendFileSync } from 'node:fs'; export const Watch = async ({ directory }) => {
      const log = (line) => appendFileSync(directory + '/log.out', line + '\\n')
      return {
        'tool.execute.before': async (input, output) => { log('before ' + input.tool); output.args.patchText = output.args.patchText.replace('HOOK', 'bye') },
        'tool.execute.after': async (input, output) => { log('after ' + input.tool + ' ' + output.metadata.files.map((f) => f.type + ':' + f.relativePath)) },
        event: async ({ event }) => { if (event.type.startsWith('file.')) log(event.type + ' ' + event.properties.file.split('/').pop() + ' ' + (event.properties.event ?? '')) },
      } }");
    granting(&world, &rewrites(&plugin));
    world.run(&["hi"]).ok();
    assert_eq!(
        (world.read("hello.txt"), world.read("new.txt")),
        ("bye\n".to_owned(), "made\n".to_owned())
    );
    let mut log = world.lines("log.out");
    log.sort();
    insta::assert_snapshot!(log.join("\n"), @r"
    after apply_patch add:new.txt,update:hello.txt
    before apply_patch
    before apply_patch
    file.edited hello.txt 
    file.edited new.txt 
    file.watcher.updated hello.txt change
    file.watcher.updated new.txt add
    ");
    let told = world.mock.last().texts("tool");
    assert_eq!(
        told[0],
        "Success. Updated the following files:\nA new.txt\nM hello.txt"
    );
    assert!(
        told[1].contains("apply_patch verification failed: Failed to read file to update"),
        "{}",
        told[1]
    );
    world.verify();
}

#[test]
fn a_rule_against_editing_takes_it_away() {
    let world = World::new([patch("*** Delete File: hello.txt"), done()]);
    named(&world, "gpt-5");
    world.config(json!({ "permission": { "edit": "deny" } }));
    world.run(&["hi"]).ok();
    assert!(
        !world
            .mock
            .last()
            .tools()
            .contains(&"apply_patch".to_owned())
    );
    assert_eq!(world.read("hello.txt"), "hi there\n");
}
