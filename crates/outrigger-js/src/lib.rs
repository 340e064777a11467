//! JS plugin processes: host script, frames, RPC peer, reverse requests.
