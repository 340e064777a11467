//! `cargo xtask tidy`: rules of this repository that neither the compiler nor clippy checks.
//!
//! A rule reads the files that git would commit and returns a sentence per violation. ARCHITECTURE.md refers to it
//! by its name (`tidy:NAME`).

mod bypass;
mod code;
mod contracts;
mod grants;
mod invariants;
mod kernel;
mod modules;
mod pages;
mod peers;
mod promises;
mod requirements;
mod rules;
mod sizes;
mod width;
mod words;

use std::path::{Path, PathBuf};

use crate::sh::{self, Arguments, command};
use crate::{Result, failed, usage};

/// A rule: its name, and the check.
type Rule = (&'static str, fn(&Repo) -> Result<Vec<String>>);

const RULES: [Rule; 33] = [
    ("crate-readme", |repo| Ok(rules::crate_readme(repo))),
    ("crate-list", |repo| Ok(rules::crate_list(repo))),
    ("crate-lints", |repo| Ok(rules::crate_lints(repo))),
    ("test-support", |repo| Ok(rules::test_support(repo))),
    ("file-length", |repo| Ok(sizes::files(repo))),
    ("function-length", |repo| Ok(sizes::functions(repo))),
    ("crate-length", |repo| Ok(sizes::crates(repo))),
    ("cycles", |repo| Ok(modules::cycles(repo))),
    ("siblings", |repo| Ok(modules::siblings(repo))),
    ("layers", |repo| Ok(modules::layers(repo))),
    ("processes", |repo| Ok(rules::processes(repo))),
    ("process-time", |repo| Ok(rules::process_time(repo))),
    ("file-reads", |repo| Ok(rules::file_reads(repo))),
    ("terminal", |repo| Ok(rules::terminal(repo))),
    ("chains", |repo| Ok(rules::chains(repo))),
    ("permission-names", |repo| Ok(rules::permission_names(repo))),
    ("lock-addresses", |repo| Ok(rules::lock_addresses(repo))),
    ("machine-paths", |repo| Ok(rules::machine_paths(repo))),
    ("kernel-no-std", |repo| Ok(kernel::no_std(repo))),
    ("kernel-dependencies", |_| kernel::dependencies()),
    ("generated", |repo| {
        Ok(crate::generate::stale(|path| repo.text(path)))
    }),
    ("invariants", |repo| Ok(invariants::check(repo))),
    ("bypass", |repo| Ok(bypass::check(repo))),
    ("contracts", |repo| Ok(contracts::check(repo))),
    ("grants", |repo| Ok(grants::check(repo))),
    ("peers", |repo| Ok(peers::check(repo))),
    ("promises", |repo| Ok(promises::check(repo))),
    ("requirement-numbers", |repo| Ok(requirements::check(repo))),
    ("where", |repo| Ok(pages::paths(repo))),
    ("page-length", |repo| Ok(pages::lengths(repo))),
    ("page-width", |repo| Ok(width::check(repo))),
    ("words", |repo| Ok(words::check(repo))),
    ("build-scripts", |repo| Ok(rules::build_scripts(repo))),
];

/// The text files that git would commit, by their path from the repository's root.
#[derive(Debug, Default)]
struct Repo {
    files: Vec<(String, String)>,
}

impl Repo {
    /// Reads the working tree: tracked files, and new ones that are not ignored.
    fn load(root: &Path) -> Result<Self> {
        let names = sh::output(command("git").args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]))?;
        let paths: std::collections::BTreeSet<&str> =
            names.split('\0').filter(|name| !name.is_empty()).collect();
        let mut files = Vec::new();
        for path in paths {
            // A tracked file may be deleted in the tree, and one that is not UTF-8 has no lines to check.
            if let Ok(text) = std::fs::read_to_string(root.join(path)) {
                files.push((path.to_owned(), text));
            }
        }
        Ok(Self { files })
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|(name, _)| name == path)
            .map(|(_, text)| text.as_str())
    }

    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the names of the folders in `crates/` that are crates.
    fn crates(&self) -> Vec<&str> {
        self.iter()
            .filter_map(|(path, _)| path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml"))
            .filter(|name| !name.contains('/'))
            .collect()
    }

    /// Returns the packages whose structure is checked: the crates, and the tasks of the repository.
    fn packages(&self) -> Vec<&str> {
        let mut all = self.crates();
        all.extend(self.text("xtask/Cargo.toml").map(|_| "xtask"));
        all
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let owned = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        Self {
            files: owned.collect(),
        }
    }
}

/// Returns the source folder of a package of [`Repo::packages`].
fn source_folder(package: &str) -> String {
    match package {
        "xtask" => "xtask/src/".to_owned(),
        name => format!("crates/{name}/src/"),
    }
}

/// `cargo xtask fmt-docs`: breaks long lines of pages.
pub(crate) fn format_pages(arguments: &[String]) -> Result {
    if let Some(word) = Arguments::new(arguments).next() {
        return usage(format!("fmt-docs takes no `{word}`"));
    }
    let root: PathBuf = sh::root().into();
    width::write(&root, &Repo::load(&root)?)
}

/// Runs all rules; every offence is printed.
pub(crate) fn run(arguments: &[String]) -> Result {
    if let Some(word) = Arguments::new(arguments).next() {
        return usage(format!("tidy takes no `{word}`"));
    }
    let root: PathBuf = sh::root().into();
    let repo = Repo::load(&root)?;
    let mut offences = 0;
    for (name, rule) in RULES {
        for offence in rule(&repo)? {
            offences += 1;
            println!("tidy:{name}: {offence}");
        }
    }
    if offences > 0 {
        return failed(format!("tidy found {offences} offence(s)"));
    }
    println!(
        "tidy: {} rules hold in {} files",
        RULES.len(),
        repo.files.len()
    );
    Ok(())
}
