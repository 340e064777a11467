//! A call without a bound contract does not bypass the provider of a bound one (C11).

use std::sync::Arc;

use outrigger_protocol::descriptor::Contract::{self, Edit, Exec, Read, Write};
use outrigger_protocol::descriptor::{Capability, Declared};
use outrigger_tools::FnTool;
use outrigger_tools::routes::Route;
use serde_json::{Value, json};

use crate::declared::{bind, spec, text};
use crate::support::*;

/// Contract, agent, path, provider.
type Rule = (
    Option<Contract>,
    Option<&'static str>,
    Option<&'static str>,
    &'static str,
);

/// Rules, a call, and the contract for which it is refused.
type Row<'a> = (&'a [Rule], (&'a str, Value), Option<&'a str>);

const ALL: Rule = (None, None, None, "a");
const READS: Rule = (Some(Read), None, None, "a");
const EDITS: Rule = (Some(Edit), None, None, "a");
const WRITES: Rule = (Some(Write), None, None, "a");
const RUNS: Rule = (Some(Exec), None, None, "a");
const OTHERS: Rule = (None, Some("other"), None, "a");
const SRC: Rule = (None, None, Some("src"), "a");
const DOCS_HERE: Rule = (None, None, Some("docs"), "local");
const READS_HERE: Rule = (Some(Read), None, None, "local");

#[tokio::test]
async fn nothing_goes_past_a_provider() {
    let room = Room::new();
    room.file("src/a.txt", "needle\n");
    room.file("docs/b.txt", "needle\n");
    let patch = json!({"patchText": "*** Begin Patch\n*** Delete File: docs/b.txt\n*** End Patch"});
    let glob = |path: &str| ("glob", json!({"pattern": "*.txt", "path": path}));
    let grep = ("grep", json!({"pattern": "needle"}));
    let table = ("table", json!({"path": "docs/b.csv", "action": "read"}));
    let python = ("python", json!({"script": "print(1)"}));
    let patch = ("apply_patch", patch);
    let rows: [Row<'_>; 21] = [
        (&[ALL], glob("."), Some("read")),
        (&[ALL], grep.clone(), Some("read")),
        (&[ALL], table.clone(), Some("read")),
        (&[ALL], patch.clone(), Some("read")),
        (&[ALL], python.clone(), Some("exec")),
        (&[RUNS], glob("."), None),
        (&[RUNS], python.clone(), Some("exec")),
        (&[READS], grep.clone(), Some("read")),
        (&[READS], python, None),
        (&[WRITES], grep.clone(), None),
        (&[WRITES], patch.clone(), Some("write")),
        (&[EDITS], patch.clone(), Some("edit")),
        (&[OTHERS], grep.clone(), None),
        (&[SRC], glob("src"), Some("read")),
        (&[SRC], glob("docs"), None),
        // A search from a folder above includes the folder.
        (&[SRC], grep.clone(), Some("read")),
        (&[SRC], patch, Some("read")),
        (&[DOCS_HERE, ALL], glob("docs"), None),
        (&[DOCS_HERE, ALL], glob("."), Some("read")),
        (&[READS_HERE, ALL], grep, None),
        (&[READS_HERE, WRITES], table, Some("write")),
    ];
    for (rules, (tool, input), refused) in rows {
        let rules: Vec<Route> = rules
            .iter()
            .map(|(contract, agent, path, provider)| Route {
                contract: *contract,
                agent: agent.map(str::to_owned),
                path: path.map(Into::into),
                provider: (*provider).to_owned(),
                ..Route::default()
            })
            .collect();
        let shown = format!("{tool} {input} {rules:?}");
        bind(&room, rules);
        let executed = room.execute(tool, input).await;
        let said = format!("{:?}", executed.outcome);
        let got = said.contains("tool.elsewhere");
        assert_eq!(got, refused.is_some(), "{shown}: {said}");
        if let Some(contract) = refused {
            assert!(
                said.contains(&format!("`{contract}` is done by a")),
                "{shown}: {said}"
            );
        }
    }
    // Nothing of it was done.
    assert_eq!(room.text("docs/b.txt"), "needle\n");
}

/// A tool of a plugin or a server without declared needs may do everything that a contract covers.
#[tokio::test]
async fn what_does_not_say_what_it_needs_goes_past_nobody() {
    let room = Room::new();
    for (name, undeclared, capabilities) in [
        ("silent", true, vec![]),
        ("far", false, vec![Capability::Mcp]),
        ("nothing", false, vec![]),
        ("reads", false, vec![Capability::FsRead]),
    ] {
        let declared = Declared {
            capabilities,
            ..Declared::default()
        };
        let tool = FnTool::new(spec(name), |_, _| async { Ok(text("ran")) });
        let tool = tool.declaring(declared).undeclared(undeclared);
        room.runtime.register(Arc::new(tool)).unwrap();
    }
    let rule = |contract, tool: Option<&str>, path: Option<&str>, provider: &str| Route {
        contract,
        tool: tool.map(str::to_owned),
        path: path.map(Into::into),
        provider: provider.to_owned(),
        ..Route::default()
    };
    let all = || rule(None, None, None, "a");
    for (rules, refused) in [
        (vec![], &[][..]),
        (vec![rule(None, None, None, "local")], &[]),
        (vec![all()], &["silent", "reads"]),
        (vec![rule(Some(Exec), None, None, "a")], &["silent"]),
        (
            vec![rule(None, None, Some("src"), "a")],
            &["silent", "reads"],
        ),
        (
            vec![rule(None, Some("silent"), None, "local"), all()],
            &["reads"],
        ),
        (vec![rule(None, Some("*"), None, "local"), all()], &[]),
        (
            vec![rule(None, Some("silen"), None, "local"), all()],
            &["silent", "reads"],
        ),
        (vec![rule(None, Some("silent"), None, "a")], &["silent"]),
        // For one of the contracts it may involve.
        (
            vec![rule(Some(Read), Some("silent"), None, "local"), all()],
            &["silent", "reads"],
        ),
    ] {
        let shown = format!("{rules:?}");
        bind(&room, rules);
        for name in ["silent", "far", "nothing", "reads"] {
            let said = format!("{:?}", room.execute(name, json!({})).await.outcome);
            let is = if refused.contains(&name) {
                "tool.elsewhere"
            } else {
                "ran"
            };
            assert!(said.contains(is), "{name} {shown}: {said}");
        }
    }
}
