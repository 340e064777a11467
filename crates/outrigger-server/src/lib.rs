//! The HTTP router over the agent, compatible with OpenCode's v1 API.
