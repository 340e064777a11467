//! Programs that run project files, and the names and extensions of those files.

/// Extensions that interpreters and loaders add.
pub(in crate::project) const ENDINGS: [&str; 7] = ["js", "mjs", "cjs", "ts", "py", "sh", "rb"];
/// Entry files of a folder that is named instead of a file.
pub(in crate::project) const ENTRIES: [&str; 6] = [
    "index.js",
    "index.mjs",
    "index.ts",
    "__main__.py",
    "main.py",
    "package.json",
];
/// Programs that run a file of any name, or the content of a folder.
pub(in crate::project) const INTERPRETERS: [&str; 22] = [
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "fish", "node", "bun", "deno", "tsx",
    "ts-node", "python", "python3", "perl", "ruby", "php", "lua", "pwsh", "exec", "env",
];
/// Those of them, and what starts them, that run a file which begins with bytes that are no code. JavaScript, Ruby and Lua stop there.
pub(super) const RUN_ANY_CONTENT: [&str; 13] = [
    ".", "source", "sh", "bash", "dash", "zsh", "ksh", "fish", "perl", "php", "pwsh", "exec", "env",
];
/// Extensions of data files that are written and read during work, and that no other program runs.
pub(in crate::project) const DATA: [&str; 14] = [
    "csv", "db", "jsonl", "lock", "log", "md", "mdc", "ndjson", "out", "pid", "sqlite", "tmp",
    "tsv", "txt",
];
/// Extensions of code.
pub(in crate::project) const CODE: [&str; 16] = [
    "bash", "cjs", "cts", "js", "jsx", "lua", "mjs", "mts", "php", "pl", "pm", "py", "rb", "sh",
    "ts", "tsx",
];
/// Settings of runtimes that name what is run.
pub(super) const NAMING: [&str; 7] = [
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    "bunfig.toml",
    "deno.json",
    "deno.jsonc",
    "uv.toml",
];
/// Programs that run `scripts` of a `package.json`.
pub(in crate::project) const PACKAGE_SCRIPTS: [&str; 4] = ["npm", "pnpm", "yarn", "bun"];
