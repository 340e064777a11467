//! The real binary, end to end: a scripted model on loopback, fresh folders for each test, plugins as plain JavaScript.
//!
//! Needs a JavaScript runtime (`OUTRIGGER_BUN`, the Bun of `.work/tools`, or Bun or Node on `PATH`) for the tests with plugins.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests are tests; clippy.toml only knows the functions"
)]

mod aborts;
mod admitted;
mod attach;
mod attach_talk;
mod audit;
mod auth;
mod bad_config;
mod bad_model;
mod bad_plugins;
mod bisect;
mod boxed;
mod bridge;
mod bridge_guards;
mod brought;
mod built_once;
mod bundled;
mod cancel;
mod command_failures;
mod command_hooks;
mod commands;
mod compact;
mod compact_asked;
mod config_hook;
mod connectors;
mod contracts;
mod crash;
mod demo;
mod escapes;
mod fail_closed;
mod fetching;
mod figures;
mod files;
mod forbidden;
mod granted;
mod guard_absent;
mod held;
mod hook_block;
mod hook_effects;
mod hooks;
mod hooks_bad;
mod impostor;
mod interrupt;
mod language;
mod leftovers;
mod life;
mod loading;
mod login;
mod manifest;
mod matrix;
mod mcp;
mod mcp_shapes;
mod network;
mod npm;
mod npm_auth;
mod npm_client;
mod npm_rest;
mod omo;
mod omo_config;
mod omo_context;
mod omo_lists;
mod omo_server;
mod omo_tools;
mod output;
mod own_data;
mod own_points;
mod own_provider;
mod patch;
mod permission;
mod plain;
mod plugin_client;
mod points;
mod points_all;
mod question;
mod reach;
mod remote;
mod renewed;
mod resumed;
mod run_options;
mod secrets;
mod serve;
mod serve_folders;
mod skill_servers;
mod skills;
mod store;
mod strict;
mod structured;
mod stubborn;
mod subagents;
mod subplugins;
mod support;
mod telegram;
mod throws;
mod tool_files;
mod tool_hosts;
mod tools_declared;
mod trust;
mod turns;
mod ways_around;
