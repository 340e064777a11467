//! `skill`: returns the text of a skill to the model.

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::{reading, spec, text};
use crate::error::ToolError;
use crate::host::{PermissionAsk, SkillEntry, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Loads a skill: instructions for a kind of task, possibly with scripts and reference files.

If a skill fits the task, load it before you start and follow it. Paths in its text are relative to its folder, which the result names.
";

// Maximum number of files of the skill's folder in the result, as in OpenCode.
const MAX_FILES: usize = 10;

/// The skill tool.
pub(super) struct Skill {
    spec: ToolSpec,
}

impl Skill {
    pub(super) fn new() -> Self {
        Self {
            spec: reading(spec(
                "skill",
                DESCRIPTION,
                json!({"name": {"type": "string"}}),
                &["name"],
            )),
        }
    }
}

fn find(name: &str, ctx: &ToolContext) -> Result<SkillEntry, ToolError> {
    let skills = ctx.host.skills();
    if let Some(found) = skills.iter().find(|skill| skill.name == name) {
        return Ok(found.clone());
    }
    let mut names: Vec<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    names.sort_unstable();
    let names = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(", ")
    };
    Err(ToolError::failed(format!(
        "Skill \"{name}\" not found. Available skills: {names}"
    )))
}

fn files(skill: &SkillEntry) -> Vec<String> {
    let walk = crate::ignored::walk(&skill.dir)
        .sort_by_file_path(std::path::Path::cmp)
        .build();
    walk.filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter(|entry| entry.file_name() != "SKILL.md")
        .take(MAX_FILES)
        .map(|entry| format!("<file>{}</file>", entry.path().display()))
        .collect()
}

impl Tool for Skill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let name = find(text(input, "name"), ctx)?.name;
        Ok(vec![PermissionAsk {
            permission: "skill".to_owned(),
            patterns: vec![name.clone()],
            always: vec![name],
            metadata: json!({}),
            ..PermissionAsk::default()
        }])
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let skill = find(text(&input, "name"), ctx)?;
            let dir = skill.dir.display();
            let servers = ctx
                .host
                .skill_loaded(&skill.name)
                .await
                .map_or_else(String::new, |text| format!("\n\n{text}"));
            let output = format!(
                "<skill_content name=\"{name}\">\n# Skill: {name}\n\n{content}\n\nBase directory for this skill: {dir}\nRelative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.\nNote: file list is sampled.\n\n<skill_files>\n{files}\n</skill_files>{servers}\n</skill_content>",
                name = skill.name,
                content = skill.content.trim(),
                files = files(&skill).join("\n"),
            );
            Ok(ToolOutput {
                title: format!("Loaded skill: {}", skill.name),
                output,
                metadata: json!({"name": skill.name, "dir": skill.dir}),
                attachments: None,
            })
        })
    }
}
