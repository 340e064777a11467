//! Plugins in real processes of Bun (or else Node): loading, composing, hanging, crashing, installing.

mod faults;
mod hooks;
mod install;
mod loading;
mod support;
mod tools;
