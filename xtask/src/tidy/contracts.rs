//! Checks docs/contracts.md: every behaviour contract (C14) has a test with its own name in every
//! layer.

use super::{Repo, invariants};

const FILE: &str = "docs/contracts.md";
const LAYERS: [&str; 4] = ["unit", "integration", "browser-cdp", "e2e"];
const CONTRACTS: [&str; 3] = [
    "BHV-AGENT-HOOK-LIFECYCLE",
    "BHV-PLUGIN-FAILURE-ISOLATION",
    "BHV-CAPABILITY-PROVIDER-ROUTING",
];

pub(super) fn check(repo: &Repo) -> Vec<String> {
    let Some(text) = repo.text(FILE) else {
        return vec![format!("{FILE} is missing")];
    };
    let mut found = Vec::new();
    let mut seen = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{FILE}:{}", index + 1);
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let tests = match cells.as_slice() {
            ["", contract, layer, tests, ""] if contract.starts_with("`BHV-") => {
                let contract = contract.trim_matches('`');
                if !CONTRACTS.contains(&contract) || !LAYERS.contains(layer) {
                    found.push(format!("{place} is of no known contract and layer"));
                }
                let own = format!("::{}", contract.to_lowercase().replace('-', "_"));
                if !tests
                    .split('`')
                    .nth(1)
                    .is_some_and(|name| name.ends_with(&own))
                {
                    found.push(format!("{place} does not name a test `...{own}` first"));
                }
                seen.push((contract, *layer));
                tests
            }
            ["", rule, tests, ""] if !rule.starts_with("---") && *rule != "Rule" => tests,
            _ => continue,
        };
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if names.is_empty() {
            found.push(format!("{place} names no test"));
        }
        for name in names {
            if !invariants::shows(repo, name) {
                found.push(format!(
                    "{place} names `{name}`, which is not a test that exists"
                ));
            }
        }
    }
    for contract in CONTRACTS {
        for layer in LAYERS {
            if !seen.contains(&(contract, layer)) {
                found.push(format!("{FILE} has no row for {contract} in layer {layer}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contract_without_a_layer_or_with_another_test_is_found() {
        let own = "crates/a/src/b.rs::bhv_agent_hook_lifecycle";
        let page = format!(
            "| Contract | Layer | Shown by |\n|---|---|---|\n\
             | `BHV-AGENT-HOOK-LIFECYCLE` | unit | `{own}` |\n\
             | `BHV-AGENT-HOOK-LIFECYCLE` | integration | `crates/a/src/b.rs` |\n\
             | `BHV-AGENT-HOOK-LIFECYCLE` | browser | `{own}` |\n\n\
             | Rule | Shown by |\n|---|---|\n| Holds. | `crates/a/src/b.rs::gone` |\n| Holds. | nothing |\n"
        );
        let test = "#[test]\nfn bhv_agent_hook_lifecycle() {}\n";
        let repo = Repo::of(&[(FILE, page.as_str()), ("crates/a/src/b.rs", test)]);
        assert_eq!(
            check(&repo),
            [
                "docs/contracts.md:4 does not name a test `...::bhv_agent_hook_lifecycle` first",
                "docs/contracts.md:4 names `crates/a/src/b.rs`, which is not a test that exists",
                "docs/contracts.md:5 is of no known contract and layer",
                "docs/contracts.md:9 names `crates/a/src/b.rs::gone`, which is not a test that exists",
                "docs/contracts.md:10 names no test",
                "docs/contracts.md has no row for BHV-AGENT-HOOK-LIFECYCLE in layer browser-cdp",
                "docs/contracts.md has no row for BHV-AGENT-HOOK-LIFECYCLE in layer e2e",
                "docs/contracts.md has no row for BHV-PLUGIN-FAILURE-ISOLATION in layer unit",
                "docs/contracts.md has no row for BHV-PLUGIN-FAILURE-ISOLATION in layer integration",
                "docs/contracts.md has no row for BHV-PLUGIN-FAILURE-ISOLATION in layer browser-cdp",
                "docs/contracts.md has no row for BHV-PLUGIN-FAILURE-ISOLATION in layer e2e",
                "docs/contracts.md has no row for BHV-CAPABILITY-PROVIDER-ROUTING in layer unit",
                "docs/contracts.md has no row for BHV-CAPABILITY-PROVIDER-ROUTING in layer integration",
                "docs/contracts.md has no row for BHV-CAPABILITY-PROVIDER-ROUTING in layer browser-cdp",
                "docs/contracts.md has no row for BHV-CAPABILITY-PROVIDER-ROUTING in layer e2e",
            ]
        );
        assert_eq!(check(&Repo::of(&[])), ["docs/contracts.md is missing"]);
    }
}
