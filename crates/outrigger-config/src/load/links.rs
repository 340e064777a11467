//! Links in a project that lead out of it, or to what is no text. The author of the project chose where they lead, and must not learn, through
//! a model or a plugin, what our process may read: agents, commands and skills are read only where they really lie.

use std::path::{Path, PathBuf};

use outrigger_protocol::permission::{Action, Rule};

use super::options::LoadOptions;
use crate::paths;
use crate::project::command_words::matches;

/// Endings of texts that a link of a project may lead to.
const TEXTS: [&str; 4] = ["markdown", "md", "mdc", "txt"];

/// What is in a project, and not among the user's own settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    project: PathBuf,
    /// Folders of the user's own settings, which may lie in a project that is the home folder: they lead where they like.
    own: Vec<PathBuf>,
    /// What may be read.
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

    /// The same where these rules say what may be read: a link leads to nothing that takes asking.
    pub(crate) fn under(self, rules: &[Rule]) -> Self {
        let is_about = |it: &&Rule| matches("read", &it.permission);
        let rules = rules.iter().filter(is_about).cloned().collect();
        Self { rules, ..self }
    }

    /// Whether a file, by where it really is, is read without asking.
    pub(crate) fn may_read(&self, real: &Path) -> bool {
        self.action(real) == Action::Allow
    }

    /// Whether a file may not be read, by its name or where links lead.
    pub(crate) fn denies(&self, path: &Path) -> bool {
        let real = path.canonicalize().ok();
        let mut names = std::iter::once(path).chain(real.as_deref());
        names.any(|it| self.action(it) == Action::Deny)
    }

    /// What the last rule says that is about a file.
    fn action(&self, path: &Path) -> Action {
        let project = self.project.canonicalize();
        let mut roots = [Some(&self.project), project.as_ref().ok()]
            .into_iter()
            .flatten();
        let below = roots.find_map(|root| path.strip_prefix(root).ok());
        let name = |it: &Path| it.to_string_lossy().into_owned();
        let (below, whole) = (name(below.unwrap_or(path)), name(path));
        let mut rules = self.rules.iter().rev();
        let last = rules.find(|rule| match rule.pattern.starts_with('/') {
            true => is_about(rule, &whole),
            false => is_about(rule, &below),
        });
        last.map_or(Action::Allow, |it| it.action)
    }

    /// Whether a file is the project's, and not one of the user's own settings.
    pub(crate) fn is_projects(&self, file: &Path) -> bool {
        !self.project.as_os_str().is_empty()
            && file.starts_with(&self.project)
            && !self.own.iter().any(|own| file.starts_with(own))
    }

    /// Whether a file of the project is somewhere else in truth, or a link to what is no text, such as the user's `.env`.
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
            // What cannot be followed is not read either.
            _ => false,
        }
    }
}

/// Whether a rule is about a file of this name. One that denies or asks stands for what a folder holds, and for any case of letters.
fn is_about(rule: &Rule, name: &str) -> bool {
    let pattern = rule.pattern.trim_start_matches("./");
    let patterns = [Some(pattern), pattern.strip_prefix("**/")];
    let mut patterns = patterns.into_iter().flatten();
    patterns.any(|pattern| match rule.action {
        Action::Allow => matches(pattern, name),
        _ => {
            let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
            matches(&pattern, &name)
                || matches(&format!("{}/*", pattern.trim_end_matches('/')), &name)
        }
    })
}

/// Why an agent or a command of an untrusted project is left out.
pub(crate) const USERS_COUNTS: &str =
    "you have one of that name, which counts: the folder is not trusted (`outrigger trust`)";

/// Why such a file is left out.
pub(crate) const LEADS_OUT: &str =
    "a link that leads out of the project, or to what is no text or takes asking";

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
