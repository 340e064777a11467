//! Turns by JSON: stepped, stored, replayed.

use outrigger_kernel::digest;
use outrigger_kernel::turn::{Effect, step};
use outrigger_protocol::turn::Input;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cases::Asked;
use crate::script::script;
use crate::world::World;

/// The bodies of the steps among rows of the log.
fn steps(rows: &[Value]) -> Vec<&str> {
    rows.iter()
        .filter(|row| row["kind"] == "turn_step")
        .map(|row| row["body"].as_str().unwrap())
        .collect()
}

proptest! {
    #![proptest_config(crate::config(96))]

    #[test]
    fn a_turn_is_the_kernels_and_so_is_its_replay(script in script(), random in any::<u64>(), cut in any::<prop::sample::Index>()) {
        let mut world = World::new(script, random);
        world.finish();
        let mut asked = Asked::new("turns");
        let turn = asked.open(&[]).unwrap()["turn"].clone();
        let (mut effects, mut rows): (Vec<Effect>, Vec<Value>) = (vec![], vec![]);
        for (at, input, recorded) in &world.log {
            let mut answer = asked.call("turn.step", json!({ "turn": turn, "at": at, "input": input })).unwrap();
            let these: Vec<Effect> = serde_json::from_value(answer["effects"].take()).unwrap();
            prop_assert_eq!(&digest::effects(&these), recorded);
            effects.extend(these);
            rows.extend(answer["rows"].as_array().unwrap().iter().cloned());
        }
        prop_assert_eq!(&effects, &world.effects);
        let published = effects.iter().filter(|it| matches!(it, Effect::Publish { .. })).count();
        prop_assert_eq!(rows.len(), world.log.len() + published);

        // What is stored of it is chained, and leads to the same turn again.
        let hashes = asked.call("log.seal", json!({ "before": "", "rows": rows })).unwrap();
        let sealed: Vec<Value> = rows.iter().zip(hashes.as_array().unwrap()).map(|(row, hash)| {
            let mut row = row.clone();
            row["hash"] = hash.clone();
            row
        }).collect();
        prop_assert_eq!(asked.call("log.verify", json!({ "before": "", "rows": sealed })).unwrap(), Value::Null);
        let mut changed = sealed.clone();
        changed[cut.index(sealed.len())]["at"] = json!(7);
        let found = asked.call("log.verify", json!({ "before": "", "rows": changed })).unwrap();
        prop_assert_eq!(&found["place"], &json!(cut.index(sealed.len())));
        let again = asked.open(&steps(&rows)).unwrap();
        prop_assert_eq!(&again["steps"], &json!(world.log.len()));
        prop_assert_eq!(&again["done"], &json!(true));

        // What it has published can be handed over: the kernel takes its own events, and none of another session.
        let events: Vec<Value> = rows.iter().filter(|row| row["kind"] == "event").map(|row| row["body"].clone()).collect();
        let of_conversation = |it: &&Value| it.as_str().unwrap().contains("\"type\":\"message.");
        let events: Vec<&Value> = events.iter().filter(of_conversation).collect();
        let session = rows[0]["session"].clone();
        let given = |session: &Value| json!({ "at": 5, "seed": 1, "session": session, "events": events });
        let taken = asked.call("log.events", given(&session)).unwrap();
        prop_assert_eq!(taken.as_array().unwrap().len(), events.len());
        prop_assert!(taken.as_array().unwrap().iter().all(|row| row["session"] == session && row["kind"] == "event"));
        if !events.is_empty() {
            prop_assert_eq!(asked.call("log.events", given(&json!("ses_other"))), Err("kernel.request".to_owned()));
        }

        // A host that was ended after some step goes on as the kernel does.
        let kept = 1 + cut.index(world.log.len());
        let mut native = None;
        for (at, input, _) in &world.log[..kept] {
            step(&mut native, *at, input.clone());
        }
        let wanted = step(&mut native, 9_000, Input::Resumed);
        let turn = asked.open(&steps(&rows)[..kept]).unwrap()["turn"].clone();
        let mut answer = asked.call("turn.step", json!({ "turn": turn, "at": 9_000, "input": Input::Resumed })).unwrap();
        let resumed: Vec<Effect> = serde_json::from_value(answer["effects"].take()).unwrap();
        prop_assert_eq!(resumed, wanted);
    }

    #[test]
    fn a_step_that_was_changed_is_no_replay(script in script(), random in any::<u64>()) {
        let mut world = World::new(script, random);
        world.finish();
        let mut asked = Asked::new("changed");
        let turn = asked.open(&[]).unwrap()["turn"].clone();
        let (at, input, _) = &world.log[0];
        let answer = asked.call("turn.step", json!({ "turn": turn, "at": at, "input": input })).unwrap();
        let text = steps(answer["rows"].as_array().unwrap())[0].to_owned();
        let other = text.replacen("\"digest\":\"", "\"digest\":\"0", 1);
        prop_assert!(other != text);
        prop_assert_eq!(asked.open(&[&other]), Err("kernel.replay".to_owned()));
        prop_assert_eq!(asked.open(&["{"]), Err("kernel.replay".to_owned()));
        prop_assert_eq!(asked.call("turn.step", json!({ "turn": 99, "at": 1, "input": Input::Cancel })), Err("kernel.number".to_owned()));
        prop_assert_eq!(asked.call("nosuch.thing", json!({})), Err("kernel.request".to_owned()));
    }
}
