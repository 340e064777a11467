//! The number of words that identify a command: `git commit`, `npm run build`, `ls`. "Always" allows that prefix.

/// Commands identified by more words than the first, by the number of words. The longest match wins.
const WORDS: &[(usize, &[&str])] = &[
    (
        2,
        &[
            "apt",
            "apt-get",
            "aws",
            "az",
            "brew",
            "bun",
            "bundle",
            "bunx",
            "cargo",
            "cdk",
            "composer",
            "conda",
            "deno",
            "dnf",
            "docker",
            "dotnet",
            "flutter",
            "gcloud",
            "gh",
            "git",
            "go",
            "gradle",
            "hatch",
            "helm",
            "hg",
            "jj",
            "just",
            "kubectl",
            "make",
            "mix",
            "mvn",
            "nix",
            "npm",
            "npx",
            "nvm",
            "pacman",
            "pip",
            "pip3",
            "pipenv",
            "pnpm",
            "poetry",
            "pulumi",
            "pyenv",
            "rails",
            "rake",
            "rbenv",
            "rustup",
            "service",
            "sfdx",
            "stack",
            "svn",
            "swift",
            "systemctl",
            "terraform",
            "tmux",
            "uv",
            "vagrant",
            "vercel",
            "volta",
            "yarn",
            "yum",
            "zig",
        ],
    ),
    (
        3,
        &[
            "aws s3",
            "aws ec2",
            "az group",
            "bun run",
            "bun x",
            "cargo add",
            "cargo run",
            "composer require",
            "deno task",
            "docker builder",
            "docker buildx",
            "docker compose",
            "docker container",
            "docker image",
            "docker network",
            "docker system",
            "docker volume",
            "gcloud compute",
            "gh issue",
            "gh pr",
            "gh repo",
            "gh run",
            "gh workflow",
            "git bisect",
            "git config",
            "git notes",
            "git remote",
            "git stash",
            "git submodule",
            "git worktree",
            "go mod",
            "go tool",
            "helm repo",
            "kubectl config",
            "kubectl rollout",
            "nix flake",
            "npm exec",
            "npm init",
            "npm run",
            "npm view",
            "pnpm dlx",
            "pnpm exec",
            "pnpm run",
            "poetry run",
            "rustup component",
            "rustup target",
            "rustup toolchain",
            "terraform workspace",
            "uv pip",
            "uv run",
            "uv tool",
            "yarn dlx",
            "yarn run",
            "yarn workspace",
        ],
    ),
];

/// Returns the words of the command that "always" allows.
pub(super) fn prefix<'a>(words: &'a [&'a str]) -> &'a [&'a str] {
    let count = WORDS
        .iter()
        .rev()
        .find(|(count, commands)| {
            words
                .get(..count - 1)
                .is_some_and(|head| commands.contains(&head.join(" ").as_str()))
        })
        .map_or(1, |(count, _)| *count);
    &words[..count.min(words.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        for (words, want) in [
            ("git commit -m x", "git commit"),
            ("git stash pop", "git stash pop"),
            ("git", "git"),
            ("npm run build -- --x", "npm run build"),
            ("npm --version", "npm --version"),
            ("git -C sub status", "git -C"),
            ("docker compose up -d", "docker compose up"),
            ("kubectl get pods -n x", "kubectl get"),
            ("bun run x y", "bun run x"),
            ("cargo test -p x", "cargo test"),
            ("cat x", "cat"),
            ("env ls", "env"),
            ("/bin/ls sub", "/bin/ls"),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            assert_eq!(prefix(&words).join(" "), want);
        }
    }
}
