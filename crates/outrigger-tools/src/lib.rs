//! The tool runtime (the one way to run a tool) and the bundled tools.
