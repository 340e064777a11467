//! What the user's settings grant a plugin beyond its sandbox, in words: the audit keeps it (C13).

use std::path::PathBuf;

use crate::access::settings::PluginRules;
use crate::access::user_grants::Grant;

/// What the user's settings grant a plugin, and what they grant another one of its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserGrants {
    /// What counts for this plugin.
    pub given: Vec<String>,
    /// What is written under a name that it goes by and does not count, since any project can bring a plugin of that name.
    pub withheld: Vec<String>,
}

impl PluginRules {
    /// What these rules grant, a text for each kind.
    pub(crate) fn grants_in_words(&self) -> Vec<String> {
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths
                .iter()
                .map(|path| path.display().to_string())
                .collect()
        };
        let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
        let mut words: Vec<String> = [
            ("variables", self.env.clone()),
            ("ports", ports),
            ("reading", paths(&self.read)),
            ("writing", paths(&self.write)),
        ]
        .into_iter()
        .filter(|(_, list)| !list.is_empty())
        .map(|(word, list)| format!("{word} {}", list.join(", ")))
        .collect();
        if let Some(programs) = &self.processes {
            words.push(format!("programs {}", programs.join(", ")));
        }
        if let Some(hosts) = &self.hosts {
            let kind = if self.hosts_withheld {
                "hosts, by name alone"
            } else {
                "hosts"
            };
            words.push(format!("{kind} {}", hosts.join(", ")));
        }
        if self.unix_sockets {
            words.push("UNIX sockets".to_owned());
        }
        let keys = Grant::ALL.into_iter().filter(|grant| self.grants(*grant));
        words.extend(keys.map(|grant| format!("`{}`", grant.key())));
        words
    }

    /// The grants of other rules of the same plugin, of the kinds that these rules grant nothing of.
    pub(crate) fn lacking(&self, other: &Self) -> Self {
        fn unless<T: Clone>(own: &[T], other: &[T]) -> Vec<T> {
            match own {
                [] => other.to_vec(),
                _ => Vec::new(),
            }
        }
        Self {
            env: unless(&self.env, &other.env),
            ports: unless(&self.ports, &other.ports),
            read: unless(&self.read, &other.read),
            write: unless(&self.write, &other.write),
            unix_sockets: other.unix_sockets && !self.unix_sockets,
            approve: other.approve && !self.approve,
            rewrite: other.rewrite && !self.rewrite,
            model: other.model && !self.model,
            prompt: other.prompt && !self.prompt,
            ..Self::default()
        }
    }
}
