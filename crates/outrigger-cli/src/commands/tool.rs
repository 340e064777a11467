//! `outrigger tool`: lists the tools, and what each declares (D6).

use outrigger_agent::Agent;
use outrigger_protocol::descriptor::{Constraints, Contract, SandboxProfile, ToolDescriptor};

use crate::args::{Global, ToolCommand};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Runs the command.
pub(crate) async fn tool(global: &Global, command: ToolCommand) -> Result<u8, Failure> {
    let agent = Agent::boot(crate::boot::boot(global, &Line::new())?).await?;
    let tools = agent.tool_descriptors();
    agent.shutdown().await;
    let (found, json) = match &command {
        ToolCommand::List { json } => (tools.iter().collect::<Vec<_>>(), *json),
        ToolCommand::Show { name, json } => {
            let found: Vec<_> = tools.iter().filter(|it| it.spec.name == *name).collect();
            if found.is_empty() {
                let names: Vec<&str> = tools.iter().map(|it| it.spec.name.as_str()).collect();
                return Err(Failure::new(
                    "tool.not_found",
                    format!("there is no tool `{name}`"),
                    Some(format!("there are: {}", names.join(", "))),
                ));
            }
            (found, *json)
        }
    };
    let text: String = match &command {
        _ if json => {
            let values: Vec<_> = found.iter().map(|it| serde_json::json!(***it)).collect();
            let value = match (&command, values.as_slice()) {
                (ToolCommand::Show { .. }, [one]) => one.clone(),
                _ => values.into(),
            };
            format!(
                "{}\n",
                serde_json::to_string_pretty(&value).unwrap_or_default()
            )
        }
        ToolCommand::List { .. } => found.iter().map(|it| line(it)).collect(),
        ToolCommand::Show { .. } => found.iter().map(|it| whole(it)).collect(),
    };
    out(&text);
    Ok(0)
}

fn contract(tool: &ToolDescriptor) -> &'static str {
    tool.declared.contract.map_or("-", Contract::name)
}

fn needs(tool: &ToolDescriptor) -> String {
    let names: Vec<&str> = tool
        .declared
        .capabilities
        .iter()
        .map(|it| it.name())
        .collect();
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

fn line(tool: &ToolDescriptor) -> String {
    let sandbox = match tool.declared.constraints.sandbox_profile {
        SandboxProfile::NoIsolation => "host",
        SandboxProfile::ReadOnly => "read-only",
        SandboxProfile::WorkspaceWrite => "workspace-write",
        SandboxProfile::Process => "its plugin",
        SandboxProfile::Configured => "tools.sandbox",
    };
    one_line(format_args!(
        "{:<20} {:<8} {:<8} {:<15} {:<18} {}",
        tool.spec.name,
        tool.declared.version,
        contract(tool),
        sandbox,
        tool.spec.source,
        needs(tool),
    ))
}

fn whole(tool: &ToolDescriptor) -> String {
    let declared = &tool.declared;
    let Constraints {
        timeout_ms,
        max_retries,
        retry_backoff_ms,
        sandbox_profile,
        deterministic_hooks,
        allowed_read_roots,
        allowed_write_roots,
    } = &declared.constraints;
    let rows = [
        ("version", declared.version.clone()),
        ("source", tool.spec.source.clone()),
        ("contract", contract(tool).to_owned()),
        ("needs", needs(tool)),
        (
            "safe to repeat",
            if tool.is_repeatable() { "yes" } else { "no" }.to_owned(),
        ),
        (
            "timeout",
            timeout_ms.map_or("that of the call".to_owned(), |ms| format!("{ms} ms")),
        ),
        (
            "retries",
            match max_retries {
                0 => "none".to_owned(),
                n => format!("{n}, the first after {} ms", first_pause(*retry_backoff_ms)),
            },
        ),
        ("sandbox", profile(*sandbox_profile).to_owned()),
        (
            "equal calls",
            if *deterministic_hooks {
                "run once in a step"
            } else {
                "run each"
            }
            .to_owned(),
        ),
        ("reads", roots(allowed_read_roots.as_deref())),
        ("writes", roots(allowed_write_roots.as_deref())),
        ("input", tool.spec.input_schema.to_string()),
        (
            "output",
            declared
                .output_schema
                .as_ref()
                .map_or("anything".to_owned(), ToString::to_string),
        ),
    ];
    let mut text = one_line(format_args!("{}", tool.spec.name));
    for (key, value) in rows {
        text.push_str(&one_line(format_args!("  {key:<15} {value}")));
    }
    text
}

fn roots(roots: Option<&[String]>) -> String {
    roots.map_or("where its rules allow".to_owned(), |it| it.join(", "))
}

fn profile(profile: SandboxProfile) -> &'static str {
    match profile {
        SandboxProfile::NoIsolation => "none: it runs in the host",
        SandboxProfile::ReadOnly => "writes to temporary folders only",
        SandboxProfile::WorkspaceWrite => "writes to the project and to temporary folders",
        SandboxProfile::Process => "that of its plugin or server",
        SandboxProfile::Configured => "the setting tools.sandbox",
    }
}

fn first_pause(declared: u64) -> u64 {
    if declared == 0 { 250 } else { declared }
}
