use super::*;
use serde_json::json;

fn descriptor() -> ToolDescriptor {
    ToolDescriptor {
        spec: ToolSpec {
            name: "t".into(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            read_only: false,
            hidden: false,
            source: "plugin:p".into(),
        },
        declared: Declared {
            version: "1.0.0".into(),
            ..Declared::default()
        },
    }
}

#[test]
fn names_are_those_that_are_written() {
    for capability in Capability::ALL {
        assert_eq!(json!(capability), json!(capability.name()));
        assert_eq!(Capability::from_name(capability.name()), Some(capability));
    }
    for contract in Contract::ALL {
        assert_eq!(json!(contract), json!(contract.name()));
        assert_eq!(Contract::from_name(contract.name()), Some(contract));
    }
    assert_eq!(Contract::from_name("bash"), Some(Contract::Exec));
    assert_eq!(
        serde_json::from_value::<Contract>(json!("bash")).unwrap(),
        Contract::Exec
    );
    assert_eq!(json!(SandboxProfile::default()), json!("NoIsolation"));
}

type Change = fn(&mut ToolDescriptor);

#[test]
fn what_cannot_be_right_is_named() {
    use Capability::{Exec, FsRead, FsWrite};
    let rows: [(Change, &[&str]); 17] = [
        (|_| {}, &[]),
        (|d| d.spec.name.clear(), &["name"]),
        (|d| d.spec.name = "a\nb".into(), &["name"]),
        (|d| d.declared.version = "one".into(), &["version"]),
        (|d| d.declared.version = "1 0".into(), &["version"]),
        (
            |d| d.declared.constraints.timeout_ms = Some(0),
            &["timeout_ms"],
        ),
        (
            |d| d.declared.constraints.timeout_ms = Some(u64::MAX),
            &["timeout_ms"],
        ),
        (|d| d.declared.constraints.max_retries = 1, &["max_retries"]),
        (
            |d| {
                d.declared.safe_to_repeat = true;
                d.declared.constraints.max_retries = 11;
            },
            &["max_retries"],
        ),
        (
            |d| d.declared.constraints.retry_backoff_ms = 60_001,
            &["retry_backoff_ms"],
        ),
        (
            |d| {
                d.spec.read_only = true;
                d.declared.capabilities = vec![FsWrite];
            },
            &["capabilities"],
        ),
        (
            |d| d.declared.contract = Some(Contract::Exec),
            &["contract"],
        ),
        (
            |d| {
                d.declared.contract = Some(Contract::Edit);
                d.declared.capabilities = vec![FsWrite, Exec];
            },
            &["contract"],
        ),
        (
            |d| {
                d.declared.capabilities = vec![FsWrite];
                d.declared.constraints.sandbox_profile = SandboxProfile::ReadOnly;
            },
            &["sandbox_profile"],
        ),
        (
            |d| {
                d.declared.capabilities = vec![FsRead];
                d.declared.constraints.allowed_read_roots = Some(vec!["a/../..".into()]);
            },
            &["allowed_read_roots"],
        ),
        (
            |d| d.declared.constraints.allowed_write_roots = Some(vec!["out".into()]),
            &["allowed_write_roots"],
        ),
        (
            |d| {
                d.declared.capabilities = vec![FsRead, FsWrite];
                d.declared.constraints.allowed_write_roots = Some(vec!["out".into()]);
            },
            &[],
        ),
    ];
    for (row, (change, want)) in rows.iter().enumerate() {
        let mut descriptor = descriptor();
        change(&mut descriptor);
        let found = descriptor.problems(true);
        let keys: Vec<&str> = found.iter().map(|it| it.key).collect();
        assert_eq!(keys, *want, "row {row}: {found:?}");
    }
    let mut elsewhere = descriptor();
    elsewhere.declared.capabilities = vec![FsRead];
    elsewhere.declared.constraints.allowed_read_roots = Some(vec!["src".into()]);
    assert_eq!(elsewhere.problems(true), []);
    assert_eq!(elsewhere.problems(false).len(), 1);
}

#[test]
fn what_a_plugin_declares_is_read_strictly() {
    for (text, fits) in [
        (json!({"version": "1.2.0"}), true),
        (
            json!({"capabilities": ["fs.read"], "contract": "bash"}),
            true,
        ),
        (json!({"capabilities": ["fs.everything"]}), false),
        (json!({"constraints": {"timeout": 5}}), false),
        (json!({"colour": "red"}), false),
    ] {
        let read = serde_json::from_value::<Declared>(text.clone());
        assert_eq!(read.is_ok(), fits, "{text}");
    }
}
