//! Instruction files, and folders and URLs of skills, that `config` hooks add to lists that Outrigger itself reads. An item
//! belongs to the plugins that added it: it is read only if their sandboxes may read it, requested through their proxy, and
//! servers of its skills run in their sandbox. The folder of a plugin's own file gives no access: it may be the home.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_plugins::Plugins;
use outrigger_sandbox::paths::{Roots, resolve};
use outrigger_sandbox::{Policy, SandboxOverride, SandboxOverrides};
use outrigger_workspace::ProjectLocation;
use serde_json::{Value, json};

use crate::NOTHING;

/// What plugins contribute to lists.
pub(crate) struct Contributed<'a> {
    pub(crate) plugins: &'a Plugins,
    pub(crate) location: &'a ProjectLocation,
    pub(crate) sandboxes: &'a SandboxOverrides,
}

/// A list of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Instructions,
    SkillPaths,
    SkillUrls,
}

/// What an item names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    /// A file or folder; in the last component there may be a pattern.
    path: Option<PathBuf>,
    is_in_project: bool,
    /// Label of the item's sandbox. Items that name the same file, folder or URL share it.
    label: String,
}

impl Contributed<'_> {
    /// Puts the items that plugins added to a list into their sandboxes, and removes those that these plugins could not use themselves.
    pub(crate) async fn hold(&self, list: List, before: &Value, after: &mut Value) {
        let known = before
            .pointer(list.pointer())
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        let Some(items) = after
            .pointer_mut(list.pointer())
            .and_then(Value::as_array_mut)
        else {
            return;
        };
        let mut named: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for text in items.iter().filter(|it| !known.contains(it)) {
            if let Some(text) = text.as_str() {
                let label = list.named(text, self.location).label;
                named.entry(label).or_default().push(text.to_owned());
            }
        }
        let mut owned = BTreeMap::new();
        for (label, texts) in named {
            let own = self.plugins.sandbox_of(list.pointer(), &texts).await;
            owned.insert(label, own);
        }
        items.retain_mut(|item| {
            let text = item.as_str().filter(|_| !known.contains(item));
            let Some(text) = text else { return true };
            let named = list.named(text, self.location);
            let own = owned
                .get(&named.label)
                .cloned()
                .unwrap_or_else(|| Err("it is unknown which plugin added it".to_owned()));
            match own.and_then(|own| list.admits(&named, own.as_ref()).map(|()| own)) {
                Ok(own) => {
                    if let Some(own) = own {
                        self.sandboxes.set(named.label, own);
                    }
                    // As it was checked, whatever becomes of links in it.
                    if let Some(path) = named.path.filter(|_| !named.is_in_project) {
                        *item = json!(path);
                    }
                    true
                }
                Err(why) => {
                    tracing::warn!(
                        "[config] a plugin named {item} under `{}`: {why}; skipped",
                        list.pointer().trim_start_matches('/').replace('/', ".")
                    );
                    false
                }
            }
        });
    }
}

impl List {
    pub(crate) const ALL: [Self; 3] = [Self::Instructions, Self::SkillPaths, Self::SkillUrls];

    fn pointer(self) -> &'static str {
        match self {
            Self::Instructions => "/instructions",
            Self::SkillPaths => "/skills/paths",
            Self::SkillUrls => "/skills/urls",
        }
    }

    fn named(self, text: &str, location: &ProjectLocation) -> Named {
        let is_address = text.starts_with("http://") || text.starts_with("https://");
        if self == Self::SkillUrls || self == Self::Instructions && is_address {
            return Named {
                path: None,
                is_in_project: false,
                label: match self {
                    Self::SkillUrls => outrigger_skills::sandbox_label(text),
                    // Instructions are not requested.
                    _ => format!("instructions:{text}"),
                },
            };
        }
        let path = resolve(&location.directory, Path::new(text));
        let is_in_project = !text.starts_with('~') && path.starts_with(&location.worktree);
        let path = match path.canonicalize() {
            Ok(real) if !is_in_project => real,
            _ => path,
        };
        let label = match self {
            Self::Instructions if is_pattern(&path) => folder_label(path.parent().unwrap_or(&path)),
            Self::Instructions => file_label(&path),
            _ => outrigger_skills::folder_label(&path),
        };
        Named {
            path: Some(path),
            is_in_project,
            label,
        }
    }

    /// Checks that the plugins that added an item can use it themselves; without sandboxes they can.
    fn admits(self, named: &Named, own: Option<&SandboxOverride>) -> Result<(), String> {
        let Some(own) = own else { return Ok(()) };
        let Some(path) = &named.path else {
            let is_asked = self == Self::SkillUrls && own.proxy().is_none();
            return if is_asked {
                Err(NOTHING.to_owned())
            } else {
                Ok(())
            };
        };
        let is_pattern = self == Self::Instructions && is_pattern(path);
        let read = if is_pattern {
            path.parent().unwrap_or(path)
        } else {
            path
        };
        let is_there = named.is_in_project || !is_pattern && path.exists();
        // A link in the project is judged when it is read, as that of a file of the user's ([`may_be_read`]).
        let waits = self == Self::Instructions && named.is_in_project && path.is_symlink();
        let read = if waits {
            path.parent().unwrap_or(path)
        } else {
            read
        };
        if is_there && reads(&own.policy, read) {
            return Ok(());
        }
        Err("it does not exist, or the plugin may not read it itself; grant the plugin the folder (`read` under \
             `[plugins.\"ID\"]` in outrigger.toml), or put the entry into your own opencode.json"
            .to_owned())
    }
}

/// Returns whether an instruction file, whose resolved path is `real`, may be read: the user named it, or plugins whose
/// sandboxes may read it did.
#[must_use]
pub fn may_be_read(path: &Path, real: &Path, sandboxes: &SandboxOverrides) -> bool {
    let path = resolve(Path::new("/"), path);
    let of_folder = || sandboxes.of(&folder_label(path.parent()?));
    let own = sandboxes.of(&file_label(&path)).or_else(of_folder);
    own.is_none_or(|own| reads(&own.policy, real))
}

fn file_label(path: &Path) -> String {
    format!("instructions:{}", path.display())
}

fn folder_label(path: &Path) -> String {
    format!("instructions-in:{}", path.display())
}

fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains(['*', '?', '['])
}

/// Returns whether a sandbox may read a file or folder. Reads the disk.
fn reads(policy: &Policy, path: &Path) -> bool {
    let roots = Roots::new(policy.read.iter().chain(&policy.write));
    let Ok(real) = roots.contains(path) else {
        return false;
    };
    let is_under = |hidden: &PathBuf| {
        let hidden = hidden.canonicalize().unwrap_or_else(|_| hidden.clone());
        real.starts_with(hidden)
    };
    !policy.hide.iter().any(is_under)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn sandbox(read: &[PathBuf], proxy: bool) -> SandboxOverride {
        let url = proxy.then(|| ("HTTP_PROXY".into(), "http://127.0.0.1:1".into()));
        SandboxOverride {
            policy: Policy {
                read: read.to_vec(),
                ..Policy::default()
            },
            variables: url.into_iter().collect(),
            proxy_redirect: None,
            held: Arc::new(()),
        }
    }

    struct Place {
        _dir: tempfile::TempDir,
        root: PathBuf,
        location: ProjectLocation,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in ["p/sub/a.md", "own/rules.md", "home/.ssh/id_rsa"] {
            let file = root.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let key = root.join("home/.ssh/id_rsa");
        std::os::unix::fs::symlink(&key, root.join("own/link.md")).unwrap();
        std::os::unix::fs::symlink(&key, root.join("p/link.md")).unwrap();
        let location = ProjectLocation {
            directory: root.join("p/sub"),
            worktree: root.join("p"),
            git: true,
        };
        Place {
            _dir: dir,
            root,
            location,
        }
    }

    #[test]
    fn a_plugin_names_what_its_sandbox_may_read() {
        let place = place();
        let at = |name: &str| place.root.join(name).display().to_string();
        let usual = sandbox(&[place.root.join("p"), place.root.join("own")], false);
        let narrow = sandbox(&[place.root.join("own")], false);
        for (item, of_usual, of_narrow) in [
            ("a.md".to_owned(), true, false),
            ("not-there-yet.md".to_owned(), true, false),
            ("../rules/*.md".to_owned(), true, false),
            (at("own/rules.md"), true, true),
            (at("own/link.md"), false, false),
            ("../link.md".to_owned(), false, false),
            ("../../home/.ssh/id_rsa".to_owned(), false, false),
            (at("home/.ssh/id_rsa"), false, false),
            ("~/.ssh/id_rsa".to_owned(), false, false),
            (at("own/*"), false, false),
            ("/proc/self/environ".to_owned(), false, false),
        ] {
            for list in [List::Instructions, List::SkillPaths] {
                let named = list.named(&item, &place.location);
                let admits = |own: &SandboxOverride| list.admits(&named, Some(own)).is_ok();
                // A pattern is a name like any other in the list of folders.
                if list == List::Instructions || !item.contains('*') {
                    let found = (admits(&usual), admits(&narrow));
                    // Judged when it is read.
                    let of_usual = of_usual || item == "../link.md" && list == List::Instructions;
                    assert_eq!(found, (of_usual, of_narrow), "{item} {list:?}");
                }
                assert_eq!(list.admits(&named, None), Ok(()));
            }
        }
    }

    #[test]
    fn an_instruction_file_is_read_as_long_as_the_plugin_may() {
        let place = place();
        let (own, link) = (
            place.root.join("own/rules.md"),
            place.root.join("own/link.md"),
        );
        let key = place.root.join("home/.ssh/id_rsa");
        let sandboxes = SandboxOverrides::default();
        // The user's.
        assert!(may_be_read(&link, &key, &sandboxes));
        let usual = sandbox(&[place.root.join("own"), place.root.join("p")], false);
        let named = List::Instructions.named(&own.display().to_string(), &place.location);
        sandboxes.set(named.label, usual.clone());
        assert!(may_be_read(&own, &own, &sandboxes));
        // It became a link after it was checked.
        assert!(!may_be_read(&own, &key, &sandboxes));
        let pattern = List::Instructions.named("../*.md", &place.location);
        sandboxes.set(pattern.label, usual);
        assert!(!may_be_read(
            &place.root.join("p/sub/../link.md"),
            &key,
            &sandboxes
        ));
    }

    /// Two spellings of a folder count as one item, so that the last plugin to name it cannot replace its sandbox.
    #[test]
    fn items_that_name_the_same_share_their_label() {
        let place = place();
        let label = |list: List, text: &str| list.named(text, &place.location).label;
        let sub = place.root.join("p/sub").display().to_string();
        assert_eq!(label(List::SkillPaths, "."), label(List::SkillPaths, &sub));
        let file = format!("{sub}/a.md");
        assert_eq!(
            label(List::Instructions, "./a.md"),
            label(List::Instructions, &file)
        );
        assert_ne!(
            label(List::SkillUrls, "http://a/"),
            label(List::SkillUrls, "http://b/")
        );
    }

    #[test]
    fn urls_of_skills_are_requested_by_those_who_may_connect() {
        let place = place();
        let admits = |list: List, proxy: bool| {
            let named = list.named("https://a.test/x", &place.location);
            list.admits(&named, Some(&sandbox(&[], proxy))).is_ok()
        };
        assert!(admits(List::SkillUrls, true) && !admits(List::SkillUrls, false));
        assert!(admits(List::Instructions, false));
    }
}
