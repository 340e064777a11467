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
use crate::fs::beside::Beside;
use crate::fs::programs;
use crate::namespaces::view;

/// The newest version of Landlock whose rules we have tried; what an older kernel lacks is left out.
const KNOWN: ABI = ABI::V7;

impl Policy {
    /// What of these may be read, where nothing can be covered: less what is hidden, and less what closed folders do not show.
    fn beside(&self, readable: Vec<PathBuf>) -> Beside {
        if view::is_possible() {
            return Beside {
                read: readable,
                list: Vec::new(),
            };
        }
        let kept = self.kept.covers();
        let closed = kept.closed.iter().filter_map(|it| fs::read_dir(it).ok());
        let closed = closed.flatten().flatten().map(|it| it.path());
        let closed: Vec<PathBuf> = closed.filter(|it| !kept.held.contains(it)).collect();
        let hidden = [self.hide.as_slice(), &kept.hide, &closed].concat();
        Beside::of(&readable, &hidden)
    }

    /// Makes the ruleset, in the host and before fork, since it allocates; `None` when the kernel has no Landlock.
    /// The child only hands the descriptor to `landlock_restrict_self`.
    pub(crate) fn ruleset(&self, program: &Path) -> Result<Option<OwnedFd>, RulesetError> {
        let mut ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(KNOWN))?;
        ruleset = ruleset.scope(match self.reach_out {
            true => Scope::Signal.into(),
            false => Scope::AbstractUnixSocket | Scope::Signal,
        })?;
        if self.bind_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::BindTcp)?;
        }
        if self.connect_tcp.is_some() {
            ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
        }
        let none = AccessFs::Execute;
        let (read, write) = match self.execute {
            None => (AccessFs::from_read(KNOWN), AccessFs::from_all(KNOWN)),
            Some(_) => (
                AccessFs::from_read(KNOWN) & !none,
                AccessFs::from_all(KNOWN) & !none,
            ),
        };
        let readable = programs::readable(&self.read, self.execute.as_deref());
        let Beside {
            read: readable,
            list,
        } = self.beside(readable);
        let run = programs::run(self.execute.as_deref());
        let created = ruleset
            .create()?
            .add_rules(path_beneath_rules(&readable, read))?
            .add_rules(path_beneath_rules([program], AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&run, AccessFs::from_read(KNOWN)))?
            .add_rules(path_beneath_rules(&self.write, write))?
            .add_rules(path_beneath_rules(
                self.list.iter().chain(&list),
                AccessFs::ReadDir,
            ))?;
        let created = add_ports(created, self.bind_tcp.as_deref(), AccessNet::BindTcp)?;
        let created = add_ports(created, self.connect_tcp.as_deref(), AccessNet::ConnectTcp)?;
        Ok(created.into())
    }
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
