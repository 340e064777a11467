//! `outrigger plugin verify`: verifies signatures of plugins with the keys of the machine's policy (C7).

use outrigger_plugins::{Signed, Verification, verify};

use crate::args::Global;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Runs the command; nothing is started. Exits with the code for plugins if a signature would prevent one from starting.
pub(crate) async fn run(
    global: &Global,
    name: Option<&str>,
    digest: bool,
    json: bool,
) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let options = outrigger_agent::verify_options(&boot)?;
    let policies = outrigger_agent::policies(&boot)?;
    let found = verify(&options, &policies, name).await;
    if let (Some(name), true) = (name, found.is_empty()) {
        return Err(Failure::unknown_plugin(
            name,
            "`outrigger plugin verify` without a name lists them",
        ));
    }
    if let (true, Some(one)) = (digest, found.first()) {
        return match &one.digest {
            Some(text) => {
                out(text);
                Ok(0)
            }
            None => Err(Failure::new(
                "plugin.signature",
                one.problem.clone().unwrap_or_default(),
                None,
            )),
        };
    }
    out(&if json {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&found).unwrap_or_default()
        )
    } else if found.is_empty() {
        "no plugins (see `plugin` in opencode.json, or .opencode/plugin/)\n".to_owned()
    } else {
        found.iter().map(line).collect()
    });
    let good = found.iter().all(|it| it.problem.is_none());
    Ok(if good { 0 } else { exit::PLUGINS })
}

fn line(it: &Verification) -> String {
    let state = match &it.signed {
        Some(Signed::Good { key }) => format!("signed by {key}"),
        Some(Signed::None) => "not signed".to_owned(),
        Some(Signed::UnknownKey { key }) => format!("signed by {key}, which no policy names"),
        Some(Signed::Bad { key }) => format!("the signature by {key} is not that of these files"),
        Some(Signed::Unreadable { why }) => format!("cannot read its signature: {why}"),
        None => "cannot be inspected".to_owned(),
    };
    let mut text = one_line(format_args!("{}  ({})", it.id, it.spec));
    text.push_str(&one_line(format_args!("  {state}")));
    if let Some(digest) = &it.digest {
        text.push_str(&one_line(format_args!("  {digest}")));
    }
    if let Some(problem) = &it.problem {
        text.push_str(&one_line(format_args!("  not started: {problem}")));
    }
    text
}
