//! opencode.json and outrigger.toml: reading, substitution, merging, and where each value came from.
