//! The Landlock rules of a policy.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetError, Scope,
    path_beneath_rules,
};

use super::Policy;
use crate::fs::allowed_paths::AllowedPaths;
use crate::fs::programs;
use crate::fs::real_paths::RealPaths;
use crate::namespaces::support;

/// The newest tested version of Landlock; rules that an older kernel lacks are skipped.
const KNOWN: ABI = ABI::V7;
/// Where terminals are.
const TERMINALS: [&str; 2] = ["/dev/ptmx", "/dev/pts"];

/// The allowed paths, if not everything can be allowed.
struct Reach {
    read: AllowedPaths,
    write: AllowedPaths,
}

impl Policy {
    /// Returns what may be read and what may be changed; of `/`, no devices. If nothing can be masked, hidden paths, paths not shown by
    /// closed folders, and read-only paths that are not restored are removed.
    fn reach(&self, real: &mut RealPaths) -> Reach {
        let mut readable = programs::readable(&self.read, self.execute.as_deref());
        let names = if self.is_open() {
            &[][..]
        } else {
            self.kept.covers().fixed.as_slice()
        };
        // What appears in such a folder can be read all the same.
        let holds = |root: &&PathBuf| names.iter().any(|it| it.starts_with(root));
        readable.extend(self.write.iter().filter(holds).cloned());
        if self.is_open() || support::has_views() {
            return Reach {
                read: AllowedPaths::of(&readable, &devices(&readable), real),
                write: AllowedPaths::of_fixed(&self.write, &[], names, real),
            };
        }
        let hidden = self.hidden();
        let mut fixed = [self.read_only.as_slice(), &self.kept.covers().read_only].concat();
        fixed.retain(|it| !self.restored.contains(it));
        let mut write = self.write.clone();
        // The user's terminals would be the only ones.
        write.retain(|it| {
            !(self.own_terminals && TERMINALS.iter().any(|name| it == Path::new(name)))
        });
        let readable = [readable, fixed.clone()].concat();
        Reach {
            read: AllowedPaths::of(
                &readable,
                &[hidden.clone(), devices(&readable)].concat(),
                real,
            ),
            write: AllowedPaths::of_fixed(&write, &[hidden, fixed].concat(), names, real),
        }
    }

    /// Returns the hidden paths, one by one.
    fn hidden(&self) -> Vec<PathBuf> {
        let kept = self.kept.covers();
        let mut hidden = [self.hide.as_slice(), &kept.hide].concat();
        let all = self.shown();
        for folder in &kept.closed {
            let shown = all.iter().any(|it| it.parent() == Some(folder));
            let below = fs::read_dir(folder).into_iter().flatten().flatten();
            if shown {
                hidden.extend(below.map(|it| it.path()).filter(|it| !all.contains(it)))
            } else {
                hidden.push(folder.clone())
            }
        }
        hidden
    }

    /// Builds the ruleset in the host before fork, since it allocates; `None` if the kernel has no Landlock. The child only passes the
    /// descriptor to `landlock_restrict_self`.
    pub(crate) fn ruleset(
        &self,
        program: &Path,
        real: &mut RealPaths,
    ) -> Result<Option<OwnedFd>, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?;
        ruleset = ruleset.scope(if self.reach_out {
            Scope::Signal.into()
        } else {
            Scope::AbstractUnixSocket | Scope::Signal
        })?;
        if self.bind_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
        }
        if self.connect_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
        }
        let mut none = AccessFs::MakeBlock | AccessFs::MakeChar;
        if self.execute.is_some() {
            none |= AccessFs::Execute;
        }
        let read = AccessFs::from_read(KNOWN) & !none;
        let write = AccessFs::from_all(KNOWN) & !none;
        let reach = self.reach(real);
        let lists = self
            .list
            .iter()
            .chain(&reach.read.list)
            .chain(&reach.write.list);
        let run = programs::run(self.execute.as_deref());
        let created = ruleset
            .create()?
            .add_rules(path_beneath_rules(&reach.read.allowed, read))?
            .add_rules(path_beneath_rules([program], AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&run, AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&reach.write.allowed, write))?
            .add_rules(path_beneath_rules(lists, AccessFs::ReadDir))?;
        let created = add_ports(created, self.bind_tcp.as_deref(), AccessNet::BindTcp)?;
        let created = add_ports(created, self.connect_tcp.as_deref(), AccessNet::ConnectTcp)?;
        Ok(created.into())
    }
}

/// If `/` may be read, the device folder may not: a disk device contains every file. The few harmless devices are allowed by name.
fn devices(roots: &[PathBuf]) -> Vec<PathBuf> {
    let all = roots.iter().any(|it| it == Path::new("/"));
    all.then(|| PathBuf::from("/dev")).into_iter().collect()
}

fn add_ports(
    mut ruleset: RulesetCreated,
    ports: Option<&[u16]>,
    access: AccessNet,
) -> Result<RulesetCreated, RulesetError> {
    for port in ports.unwrap_or_default() {
        ruleset = ruleset.add_rule(NetPort::new(*port, access))?;
    }
    Ok(ruleset)
}
