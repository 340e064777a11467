//! The only way a process is started: process group, parent-death signal, limits, Landlock, deadlines.
