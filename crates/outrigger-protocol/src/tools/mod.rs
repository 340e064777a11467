//! Tools and their executions.

pub mod canonical;
pub mod descriptor;
pub mod invoke;
pub mod merged;
pub mod permission_names;
pub mod task_output;
pub mod tool;
