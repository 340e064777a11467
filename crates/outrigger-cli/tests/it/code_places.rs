//! A plugin that is a single file gets that file and its imports, not its whole folder, which may hold the
//! user's secrets.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::support::*;

/// Imports from its own folder and below, and writes down which of some files it can read.
const GUARD: &str = r"
import fs from 'node:fs'
import { near } from './near.js'
import { deep } from './lib/deep.js'
import acme from 'acme'
// import '../../outside.js'
// import './other.json'
// import './.config/private.js'
export const Guard = async ({ directory }) => {
  const read = (path) => { try { return fs.readFileSync(path, 'utf8').trim() } catch (e) { return e.code } }
  const said = { near, deep, acme, files: FILES.map(read) }
  fs.writeFileSync(directory + '/said.json', JSON.stringify(said))
  return {}
}";

/// Returns a home folder with a plugin and its dependencies in `place`, and secrets everywhere.
fn world(place: &str, spec: &str) -> (World, Vec<String>) {
    let world = World::new([done()]);
    let home = world.home();
    let put = |path: &Path, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let folder = home.join(place);
    let files = [
        home.join(".ssh/id_rsa"),
        home.join("notes.txt"),
        home.join("work/other/.env"),
        folder.join("beside.txt"),
        folder.join("lib/beside.txt"),
        folder.join(".hidden"),
        folder.join("other.json"),
        folder.join(".config/private.js"),
        folder.join("../../outside.js"),
        world.root().join("outside.txt"),
    ];
    for file in &files {
        put(file, "SECRET");
    }
    let named = files.map(|file| file.display().to_string());
    put(
        &folder.join("guard.js"),
        &GUARD.replace("FILES", &json!(named).to_string()),
    );
    put(&folder.join("near.js"), "export const near = 1");
    put(
        &folder.join("lib/deep.js"),
        "export { deep } from '../deeper.mjs'",
    );
    put(&folder.join("deeper.mjs"), "export const deep = 2");
    put(
        &folder.join("node_modules/acme/package.json"),
        r#"{"name":"acme","main":"index.js","type":"module"}"#,
    );
    put(
        &folder.join("node_modules/acme/index.js"),
        "export default 3",
    );
    world.config(json!({ "plugin": [spec] }));
    world.packages();
    (world, named.to_vec())
}

#[test]
fn a_file_of_the_home_folder_gets_no_home_folder() {
    if bun_or_skip().is_none() {
        return;
    }
    for (place, spec) in [
        ("", "~/guard.js"),
        ("", "~/./x/../guard.js"),
        ("Documents", "~/Documents/guard.js"),
        ("Documents", "~/link.js"),
    ] {
        let (world, files) = world(place, spec);
        fs::create_dir_all(world.home().join("x")).unwrap();
        std::os::unix::fs::symlink("Documents/guard.js", world.home().join("link.js")).unwrap();
        let run = world.run(&["do it"]).ok();
        let said = world.read("said.json");
        let said: serde_json::Value = serde_json::from_str(&said)
            .unwrap_or_else(|error| panic!("{spec}: {error}: {}", run.stderr));
        assert_eq!(
            (&said["near"], &said["deep"], &said["acme"]),
            (&json!(1), &json!(2), &json!(3)),
            "{spec}"
        );
        for (file, read) in files.iter().zip(said["files"].as_array().unwrap()) {
            assert_ne!(read, "SECRET", "{spec} read {file}");
        }
    }
}

/// A package, or a folder for plugins, is still read as a whole.
#[test]
fn a_folder_of_its_own_is_read() {
    if bun_or_skip().is_none() {
        return;
    }
    for (place, spec, package) in [
        ("guard", "~/guard/guard.js", true),
        ("guard/plugin", "~/guard/plugin/guard.js", false),
        ("guard", "~/guard", true),
    ] {
        let (world, files) = world(place, spec);
        if package {
            let file = world.home().join(place).join("package.json");
            fs::write(file, r#"{"name":"guard","main":"guard.js"}"#).unwrap();
        }
        let run = world.run(&["do it"]).ok();
        let said = world.read("said.json");
        let said: serde_json::Value = serde_json::from_str(&said)
            .unwrap_or_else(|error| panic!("{spec}: {error}: {}", run.stderr));
        for (file, read) in files.iter().zip(said["files"].as_array().unwrap()) {
            let is_its_own = file.contains("/guard/") && !file.contains("..");
            assert_eq!(read == "SECRET", is_its_own, "{spec}: {file}");
        }
    }
}

/// A folder that contains the home folder or the project does not become a plugin's folder.
#[test]
fn a_folder_that_holds_everything_is_no_plugins() {
    for spec in ["~", "~/", "file:///", "/"] {
        let (world, _) = world("", spec);
        fs::write(
            world.home().join("package.json"),
            r#"{"name":"guard","main":"guard.js"}"#,
        )
        .unwrap();
        let run = world.run(&["do it"]).ok();
        assert_eq!(world.read("said.json"), "", "{spec}: {}", run.stderr);
    }
    // A package.json in the home folder does not turn a file there into part of that package.
    if bun_or_skip().is_some() {
        let (world, files) = world("", "~/guard.js");
        fs::write(
            world.home().join("package.json"),
            r#"{"name":"home","type":"module"}"#,
        )
        .unwrap();
        world.run(&["do it"]).ok();
        let said = world.json("said.json");
        for (file, read) in files.iter().zip(said["files"].as_array().unwrap()) {
            assert_ne!(read, "SECRET", "{file}");
        }
    }
}
