//! Skills: `SKILL.md` files in the folders where OpenCode looks for them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::claude::{self, ClaudeServer};
use crate::load::links::{LEADS_OUT, Links};
use crate::opencode::markdown;
use crate::{ConfigProblem, paths};

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Name, from the front matter.
    pub name: String,
    /// When to use it. A skill without one can be called by name but is not offered to the model.
    pub description: Option<String>,
    /// Absolute path of the `SKILL.md`.
    pub location: PathBuf,
    /// Text below the front matter.
    pub content: String,
    /// Folder of the `SKILL.md` and its other files.
    pub dir: PathBuf,
    /// `mcp` of the front matter: MCP servers that it contributes, as written (oh-my-opencode's form).
    pub mcp: Option<Value>,
}

/// Files of a skill's folder that define MCP servers, in oh-my-opencode's form and in Claude Code's.
const SERVER_FILES: [&str; 2] = ["mcp.json", ".mcp.json"];

/// Returns the MCP servers of a skill, with `${VAR}` replaced from `env`: of its front matter, then those of `mcp.json` and
/// `.mcp.json` in its folder; if names repeat, the last wins. `${CLAUDE_SKILL_DIR}` is the skill's folder.
pub(crate) fn servers(
    skill: &Skill,
    env: &BTreeMap<String, String>,
) -> (Vec<ClaudeServer>, Vec<ConfigProblem>) {
    let mut env = env.clone();
    env.insert(
        "CLAUDE_SKILL_DIR".to_owned(),
        skill.dir.display().to_string(),
    );
    let (mut all, mut problems) = (Vec::<ClaudeServer>::new(), Vec::new());
    let written = skill.mcp.clone().unwrap_or_default();
    let mut found = vec![Ok(claude::servers_in(written, &skill.location, &env))];
    for name in SERVER_FILES {
        let file = skill.dir.join(name);
        let read = claude::servers_of(&file, &env);
        found.push(read.map_err(|message| ConfigProblem {
            file: file.display().to_string(),
            pointer: None,
            message,
        }));
    }
    for servers in found {
        match servers {
            Ok(servers) => {
                for server in servers {
                    all.retain(|known| known.name != server.name);
                    all.push(server);
                }
            }
            Err(problem) => problems.push(problem),
        }
    }
    (all, problems)
}

/// Folders to search. [`crate::Loaded::skill_search`] fills it in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSearch {
    /// Folders of plugins (D9): `**/SKILL.md` in each. Searched first, so that they shadow none of the user's.
    pub plugins: Vec<PathBuf>,
    /// Folders of skills fetched from URLs. The content of a URL changes without the user, so these shadow none either.
    pub fetched: Vec<PathBuf>,
    /// `.claude` and `.agents` folders, of the home folder first, then of the project from the working directory up:
    /// `skills/**/SKILL.md` in each.
    pub external: Vec<PathBuf>,
    /// Config folders: `{skill,skills}/**/SKILL.md` in each.
    pub config_dirs: Vec<PathBuf>,
    /// Folders that the configuration names in `skills.paths`: `**/SKILL.md` in each.
    pub paths: Vec<PathBuf>,
    /// Found files that point outside the project are skipped.
    pub links: Links,
    /// The project is untrusted: its skills shadow none found elsewhere.
    pub is_untrusted: bool,
}

impl SkillSearch {
    /// Returns whether a skill is from an untrusted project, and the known one is not.
    fn gives_way(&self, skill: &Skill, known: &Skill) -> bool {
        let lies_in = |it: &Skill| self.links.is_projects(&it.location);
        self.is_untrusted && lies_in(skill) && !lies_in(known)
    }
}

/// Finds the skills. If names repeat, the one found last wins, which is reported in the problems, as are unreadable files. Files
/// without a `name` are not skills and are skipped silently, as in OpenCode.
pub fn discover(search: &SkillSearch) -> (Vec<Skill>, Vec<ConfigProblem>) {
    let mut files = Vec::new();
    let skill_file = |path: &Path| path.file_name().is_some_and(|name| name == "SKILL.md");
    let roots = search.external.iter().map(|dir| dir.join("skills")).chain(
        search
            .config_dirs
            .iter()
            .flat_map(|dir| [dir.join("skill"), dir.join("skills")]),
    );
    let first = search.plugins.iter().chain(&search.fetched).cloned();
    for root in first.chain(roots).chain(search.paths.iter().cloned()) {
        for file in paths::files_below(&root, true, &skill_file) {
            if !files.contains(&file) {
                files.push(file);
            }
        }
    }
    let mut skills: Vec<Skill> = Vec::new();
    let mut problems = Vec::new();
    for file in files {
        let tell = |message| ConfigProblem {
            file: file.display().to_string(),
            pointer: None,
            message,
        };
        if search.links.lead_out(&file) {
            problems.push(tell(format!("{LEADS_OUT}; the skill is skipped")));
            continue;
        }
        match read(&file) {
            Ok(Some(skill)) => match skills.iter_mut().find(|known| known.name == skill.name) {
                Some(known) if search.gives_way(&skill, known) => {
                    let message = format!(
                        "skill `{}` is also in {}; that one counts, since the folder is not trusted",
                        skill.name,
                        known.location.display()
                    );
                    problems.push(tell(message));
                }
                Some(known) => {
                    let message = format!(
                        "skill `{}` is also in {}; this one counts",
                        skill.name,
                        known.location.display()
                    );
                    problems.push(tell(message));
                    *known = skill;
                }
                None => skills.push(skill),
            },
            Ok(None) => {}
            Err(message) => problems.push(tell(format!("{message}; the skill is skipped"))),
        }
    }
    (skills, problems)
}

fn read(file: &Path) -> Result<Option<Skill>, String> {
    let text = outrigger_files::read_to_string(file, outrigger_files::SETTINGS)
        .map_err(|error| format!("cannot read it: {}", paths::reason(&error)))?;
    let markdown = markdown::parse(&text)?;
    let text_of = |key: &str| {
        markdown
            .data
            .get(key)
            .map(|value| value.as_str().map(str::to_owned))
    };
    let (Some(Some(name)), description) = (text_of("name"), text_of("description")) else {
        return Ok(None);
    };
    if description == Some(None) {
        return Ok(None);
    }
    Ok(Some(Skill {
        name,
        description: description.flatten(),
        location: file.into(),
        content: markdown.body,
        dir: file.parent().unwrap_or(file).into(),
        mcp: markdown.data.get("mcp").cloned(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_skills_everywhere() {
        let dir = tempfile::tempdir().unwrap();
        let skill = |path: &str, name: &str, body: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(
                path,
                format!("---\nname: {name}\ndescription: about {name}\n---\n{body}\n"),
            )
            .unwrap();
        };
        skill("home/.claude/skills/a/SKILL.md", "a", "home");
        skill("project/.claude/skills/deep/er/SKILL.md", "b", "project");
        skill("project/.opencode/skill/a/SKILL.md", "a", "config");
        skill("project/.opencode/skills/c/SKILL.md", "c", "config");
        skill("extra/x/y/SKILL.md", "d", "path");
        skill("extra/x/y/OTHER.md", "no", "path");
        skill("fetched/a/SKILL.md", "a", "address");
        skill("fetched/e/SKILL.md", "e", "address");
        std::fs::write(dir.path().join("extra/SKILL.md"), "no front matter").unwrap();
        std::fs::write(dir.path().join("extra/x/SKILL.md"), "---\nname: [\n---\n").unwrap();
        let at = |path: &str| vec![dir.path().join(path)];
        let search = SkillSearch {
            plugins: Vec::new(),
            external: [
                at("home/.claude"),
                at("project/.claude"),
                at("project/.agents"),
            ]
            .concat(),
            config_dirs: at("project/.opencode"),
            paths: at("extra"),
            fetched: at("fetched"),
            ..SkillSearch::default()
        };
        let (skills, problems) = discover(&search);
        let root = dir.path().display().to_string();
        let mut seen = String::new();
        for skill in skills {
            let description = skill.description.unwrap();
            let location = skill.location.display().to_string().replace(&root, "");
            seen += &format!(
                "{} | {description} | {location} | {:?}\n",
                skill.name, skill.content
            );
        }
        for problem in problems {
            seen += &format!("{}\n", problem.to_string().replace(&root, ""));
        }
        insta::assert_snapshot!(seen, @r#"
        a | about a | /project/.opencode/skill/a/SKILL.md | "config\n"
        e | about e | /fetched/e/SKILL.md | "address\n"
        b | about b | /project/.claude/skills/deep/er/SKILL.md | "project\n"
        c | about c | /project/.opencode/skills/c/SKILL.md | "config\n"
        d | about d | /extra/x/y/SKILL.md | "path\n"
        /home/.claude/skills/a/SKILL.md: skill `a` is also in /fetched/a/SKILL.md; this one counts
        /project/.opencode/skill/a/SKILL.md: skill `a` is also in /home/.claude/skills/a/SKILL.md; this one counts
        /extra/x/SKILL.md: not valid YAML between the `---` lines: did not find expected node content at line 3 column 1, while parsing a flow node; the skill is skipped
        "#);
    }
}
