//! Links in a project that point outside it, or to something other than text. The author of the project chose their targets, and
//! must not learn, through a model or a plugin, what Outrigger can read: agents, commands and skills are read only if they are
//! really in the project.

use std::path::{Path, PathBuf};

use outrigger_protocol::permission::{Action, Rule};

use super::options::LoadOptions;
use crate::paths;
use crate::project::command_words::matches;

/// Extensions of texts that a link of a project may point to.
const TEXTS: [&str; 4] = ["markdown", "md", "mdc", "txt"];

/// Boundaries of a project, excluding the user's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    project: PathBuf,
    /// Folders of the user's own settings, which may be in a project that is the home folder: their links may point anywhere.
    own: Vec<PathBuf>,
    /// Rules about reading.
    rules: Vec<Rule>,
}

impl Links {
    pub(crate) fn of(options: &LoadOptions) -> Self {
        let own = [".claude", ".agents", ".opencode"];
        let own = own.iter().map(|name| options.home.join(name));
        Self {
            project: options.project_folder().to_owned(),
            own: own.chain([options.xdg_config.clone()]).collect(),
            rules: Vec::new(),
        }
    }

    /// Adds rules about reading: a link must not point to a file that needs approval.
    pub(crate) fn under(self, rules: &[Rule]) -> Self {
        let is_about = |it: &&Rule| matches("read", &it.permission);
        let rules = rules.iter().filter(is_about).cloned().collect();
        Self { rules, ..self }
    }

    /// Returns whether a file, by its real path, is read without approval.
    pub(crate) fn may_read(&self, real: &Path) -> bool {
        self.action(real) == Action::Allow
    }

    /// Returns whether a file must not be read, by its name or its target.
    pub(crate) fn denies(&self, path: &Path) -> bool {
        let real = path.canonicalize().ok();
        let mut names = std::iter::once(path).chain(real.as_deref());
        names.any(|it| self.action(it) == Action::Deny)
    }

    /// Returns the action of the last rule that matches a file.
    fn action(&self, path: &Path) -> Action {
        let project = self.project.canonicalize();
        let mut roots = [Some(&self.project), project.as_ref().ok()]
            .into_iter()
            .flatten();
        let below = roots.find_map(|root| path.strip_prefix(root).ok());
        let name = |it: &Path| it.to_string_lossy().into_owned();
        let (below, whole) = (name(below.unwrap_or(path)), name(path));
        let mut rules = self.rules.iter().rev();
        rules
            .find(|rule| {
                if rule.pattern.starts_with('/') {
                    is_about(rule, &whole)
                } else {
                    is_about(rule, &below)
                }
            })
            .map_or(Action::Allow, |it| it.action)
    }

    /// Returns whether a file is the project's, and not one of the user's own settings.
    pub(crate) fn is_projects(&self, file: &Path) -> bool {
        !self.project.as_os_str().is_empty()
            && file.starts_with(&self.project)
            && !self.own.iter().any(|own| file.starts_with(own))
    }

    /// Returns whether a project file is really elsewhere, or is a link to something other than text, such as the user's `.env`.
    pub(crate) fn lead_out(&self, file: &Path) -> bool {
        if !self.is_projects(file) {
            return false;
        }
        match (file.canonicalize(), self.project.canonicalize()) {
            (Ok(real), Ok(project)) => {
                let below = file.strip_prefix(&self.project).unwrap_or(file);
                let is_link = project.join(below) != real;
                let is_text = || paths::has_extension(&real, &TEXTS);
                let may_read = || self.may_read(&real);
                !real.starts_with(&project) || is_link && !(is_text() && may_read())
            }
            // A link that cannot be resolved is not read either.
            _ => false,
        }
    }
}

/// Returns whether a rule matches a file name. One that denies or asks also covers the content of a folder, and ignores case.
fn is_about(rule: &Rule, name: &str) -> bool {
    let pattern = rule.pattern.trim_start_matches("./");
    let mut patterns = [Some(pattern), pattern.strip_prefix("**/")]
        .into_iter()
        .flatten();
    patterns.any(|pattern| match rule.action {
        Action::Allow => matches(pattern, name),
        _ => {
            let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
            matches(&pattern, &name)
                || matches(&format!("{}/*", pattern.trim_end_matches('/')), &name)
        }
    })
}

/// Why an agent or a command of an untrusted project is skipped.
pub(crate) const USERS_COUNTS: &str =
    "you have one of that name, which counts: the folder is not trusted (`outrigger trust`)";

/// Why such a file is skipped.
pub(crate) const LEADS_OUT: &str =
    "a link that leads out of the project, or to what is not text or takes asking";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_what_is_the_projects_is_held_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in [
            "home/.config/opencode/agent",
            "home/p/.opencode/agent",
            "home/p/docs",
            "out",
        ] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        for file in [
            "out/a.md",
            "home/p/docs/a.md",
            "home/p/.opencode/agent/own.md",
            "home/p/.env",
        ] {
            std::fs::write(at(file), "x").unwrap();
        }
        symlink(at("out/a.md"), at("home/p/.opencode/agent/out.md")).unwrap();
        symlink(at("home/p/docs/a.md"), at("home/p/.opencode/agent/in.md")).unwrap();
        symlink(at("out"), at("home/p/.opencode/command")).unwrap();
        symlink(at("home/p/.env"), at("home/p/.opencode/agent/env.md")).unwrap();
        symlink(at("out/a.md"), at("home/.config/opencode/agent/a.md")).unwrap();
        let links = |project: &str| {
            Links::of(&LoadOptions::new(
                at(project),
                at(project),
                at("home"),
                Default::default(),
            ))
        };
        let rule = |pattern: &str, action| Rule {
            permission: "read".into(),
            pattern: pattern.into(),
            action,
        };
        let rules = [rule("*", Action::Allow), rule("docs/*", Action::Deny)];
        let denied = links("home/p").under(&rules);
        assert!(denied.lead_out(&at("home/p/.opencode/agent/in.md")));
        assert!(!denied.lead_out(&at("home/p/docs/a.md")));
        for (project, file, out) in [
            ("home/p", "home/p/.opencode/agent/own.md", false),
            ("home/p", "home/p/.opencode/agent/in.md", false),
            ("home/p", "home/p/.opencode/agent/out.md", true),
            ("home/p", "home/p/.opencode/command/a.md", true),
            ("home/p", "home/p/.opencode/agent/env.md", true),
            ("home/p", "home/.config/opencode/agent/a.md", false),
            ("home", "home/.config/opencode/agent/a.md", false),
            ("home", "home/p/.opencode/agent/out.md", true),
        ] {
            assert_eq!(
                links(project).lead_out(&at(file)),
                out,
                "{file} of {project}"
            );
        }
    }
}
