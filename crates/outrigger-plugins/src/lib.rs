//! Finding, installing, loading and supervising plugins, and binding them to the hook pipeline.
