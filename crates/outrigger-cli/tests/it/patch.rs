//! The outcome of calls of `apply_patch`. For which models are offered it, see `patch.rs` of
//! outrigger-server.

use serde_json::{Value, json};

use crate::support::*;
use crate::user_grants::{granting, rewrites};

fn patch(body: &str) -> Value {
    let text = format!("*** Begin Patch\n{body}\n*** End Patch");
    turn([call("apply_patch", json!({ "patchText": text }))])
}

/// Sets the name under which the provider knows the project's model.
pub(crate) fn named(world: &World, api: &str) {
    world.config(json!({ "provider": { "mock": { "models": { "m1": { "id": api } } } } }));
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
    let results = world.mock.last().texts("tool");
    assert_eq!(
        results[0],
        "Success. Updated the following files:\nA new.txt\nM hello.txt"
    );
    assert!(
        results[1].contains("apply_patch verification failed: Failed to read file to update"),
        "{}",
        results[1]
    );
    world.verify();
}
