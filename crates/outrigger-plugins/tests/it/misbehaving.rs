//! The misbehaving plugin (of outrigger-test-support): every fault at three hooks, in a tool and while it is loaded, beside a plugin
//! that does nothing wrong. A line says what became of the calls of both (after a load: of a hook's calls) and what they were
//! held to; below it, who is blamed and where (`record`: in the record of the call; `apart`: given a process of its own;
//! `restart`, `limit`: in the notice; `log`, `list`: in `plugin list`), and what was logged. `PLACE` is where the fault is. What no line says since it
//! holds for each: the next call of the other plugin is answered within five times 2 s, plugins are disposed of within five
//! times 2 s, and no process is left. Whether turns finish: `turns.rs` of outrigger-cli.

mod lies;
mod log;
mod output;
mod row;

use row::table;

#[test]
fn hangs() {
    let report = table(&["never", "spin", "second", "spin_in_timer"]);
    // On a busy machine a process that starts takes longer to end, too; `do_not_end` is about that.
    let lines = report.lines().filter(|line| !line.contains("its dispose"));
    let report: String = lines.flat_map(|line| [line, "\n"]).collect();
    insta::assert_snapshot!(report, @r"
    never
      system params before: bad timeout good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (apart, log, record, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: timeout at PLACE: no answer within 700 ms
          log    plugin process bad (generation 2) is started again: bad (PLACE) did not answer within 700 ms
          log    plugin process shared (generation 1) is started again: bad (PLACE) did not answer within 700 ms
      tool: plugin.tool_timeout | plugin.tool_timeout  [a call in 20s]
          blame  bad (apart, its tool, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
          log    plugin process shared (generation 1) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.hung, log)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
    spin
      system params before: bad timeout good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (apart, log, record, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: timeout at PLACE: no answer within 700 ms
          log    plugin process bad (generation 2) is started again: bad (PLACE) did not answer within 700 ms
          log    plugin process shared (generation 1) is started again: bad (PLACE) did not answer within 700 ms
      tool: plugin.tool_timeout | plugin.tool_timeout  [a call in 20s]
          blame  bad (apart, its tool, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
          log    plugin process shared (generation 1) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.hung, log)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
    second
      system params before: bad ok good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (apart, log, record, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: timeout at PLACE: no answer within 3000 ms
          log    plugin process shared (generation 1) is started again: bad (PLACE) did not answer within 3000 ms
      tool: done | plugin.tool_timeout  [a call in 20s]
          blame  bad (apart, its tool, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process shared (generation 1) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load: bad lost good ok | bad skipped good ok  [a call in 13.5s]
          blame  bad (apart, failed plugin.hung, log, restart)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at experimental.chat.system.transform: the plugin process shared is gone (exit code 4)
          log    plugin process shared (generation 1) is started again: bad (experimental.chat.system.transform): the plugin process shared is gone (exit code 4)
    spin_in_timer
      system params before: bad lost good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (log, record, restart); nobody (all apart, restart)
          log    plugin bad: lost at PLACE: its process was held up by code that no call entered (a timer, say)
          log    plugin bad: timeout at PLACE: no answer within 700 ms
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin process shared (generation 1) is started again: code that no call entered (a timer, say) did not answer within 700 ms
          log    plugin process shared (generation 2) is started again: bad (PLACE) did not answer within 700 ms
      tool: plugin.tool_timeout | plugin.tool_timeout  [a call in 20s]
          blame  bad (its tool, log, restart); nobody (all apart, restart)
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin process shared (generation 1) is started again: code that no call entered (a timer, say): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
          log    plugin process shared (generation 2) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.hung, log)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
    ");
}

#[test]
fn timers_of_others() {
    let report = table(&["spin_later"]);
    insta::assert_snapshot!(report, @r"
    spin_later
      system params before load: bad ok good ok | bad ok good ok; open: good lost  [a call in 13.5s]
          blame  nobody (all apart, restart)
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin good: lost at chat.headers: its process was held up by code that no call entered (a timer, say)
          log    plugin process shared (generation 1) is started again: code that no call entered (a timer, say) did not answer within 3000 ms
      tool: done | done; open: good lost  [a call in 13.5s]
          blame  nobody (all apart, restart)
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin good: lost at chat.headers: its process was held up by code that no call entered (a timer, say)
          log    plugin process shared (generation 1) is started again: code that no call entered (a timer, say) did not answer within 3000 ms
    ");
}

#[test]
fn do_not_end() {
    let report = table(&["dispose_never", "dispose_spins", "signals"]);
    insta::assert_snapshot!(report, @r"
    dispose_never
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    [plugin:bad] plugin bad: its dispose goes on for more than 300 ms
          log    plugin bad: its dispose did not end within 2 s, and its process was killed
      tool: done | done  [a call in 10s]
          blame  bad (log)
          log    [plugin:bad] plugin bad: its dispose goes on for more than 300 ms
          log    plugin bad: its dispose did not end within 2 s, and its process was killed
    dispose_spins
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its dispose did not end within 2 s, and its process was killed
      tool: done | done  [a call in 10s]
          blame  bad (log)
          log    plugin bad: its dispose did not end within 2 s, and its process was killed
    signals
      system params before: bad timeout good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (apart, log, record, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: timeout at PLACE: no answer within 700 ms
          log    plugin process bad (generation 2) is started again: bad (PLACE) did not answer within 700 ms
          log    plugin process shared (generation 1) is started again: bad (PLACE) did not answer within 700 ms
      tool: plugin.tool_timeout | plugin.tool_timeout  [a call in 20s]
          blame  bad (apart, its tool, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
          log    plugin process shared (generation 1) is started again: bad (tool:act): tool.run was not answered within 2000 ms, in plugin bad (tool:act)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.hung, log)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
    ");
}

#[test]
fn ends() {
    let report = table(&[
        "exit0",
        "exit1",
        "kill",
        "abort",
        "exit_in_timer",
        "forks_and_exits",
    ]);
    insta::assert_snapshot!(report, @r"
    exit0
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (exit code 0)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (exit code 0)
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone (exit code 0)
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (exit code 0)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone (exit code 0)
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (exit code 0)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (exit code 0)
    exit1
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (exit code 1)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (exit code 1)
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone (exit code 1)
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (exit code 1)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone (exit code 1)
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (exit code 1)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (exit code 1)
    kill
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (signal 9)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (signal 9)
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone (signal 9)
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (signal 9)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone (signal 9)
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (signal 9)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (signal 9)
    abort
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (signal 6)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (signal 6)
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone (signal 6)
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (signal 6)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone (signal 6)
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (signal 6)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (signal 6)
    exit_in_timer
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (log, restart); nobody (all apart, restart)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (exit code 5)
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin process shared (generation 1) is started again: the plugin process shared is gone (exit code 5)
          log    plugin process shared (generation 2) is started again: the plugin process shared is gone (exit code 5)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (restart); nobody (all apart, restart)
          log    plugin good: it gets a process of its own: which plugin caused it is unknown
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (exit code 5)
          log    plugin process shared (generation 2) is started again: tool act of bad: the plugin process shared is gone (exit code 5)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (exit code 5)
    forks_and_exits
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (exit code 0)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (exit code 0)
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone (exit code 0)
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (exit code 0)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone (exit code 0)
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (exit code 0)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone (exit code 0)
    ");
}

#[test]
fn throws() {
    let report = table(&[
        "throw_text",
        "throw_error",
        "throw_undefined",
        "throw_cycle",
        "reject_late",
        "unhandled",
        "throw_in_timer",
    ]);
    insta::assert_snapshot!(report, @r"
    throw_text
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: a text
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.server, log)
          log    plugin bad: failed: plugin bad failed at server: export `default`: a text
    throw_error
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: an error
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.server, log)
          log    plugin bad: failed: plugin bad failed at server: export `default`: an error
    throw_undefined
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: undefined
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.server, log)
          log    plugin bad: failed: plugin bad failed at server: export `default`: undefined
    throw_cycle
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: [object Object]
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.server, log)
          log    plugin bad: failed: plugin bad failed at server: export `default`: [object Object]
    reject_late
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: late
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.server, log)
          log    plugin bad: failed: plugin bad failed at server: export `default`: late
    unhandled
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    [plugin:bad] unhandled rejection: nobody catches it (its stack names bad.mjs)
      tool: done | done  [a call in 10s]
          blame  bad (log)
          log    [plugin:bad] unhandled rejection: nobody catches it (its stack names bad.mjs)
    throw_in_timer
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    [plugin:bad] uncaught exception: in a timer (its stack names bad.mjs)
      tool: done | done  [a call in 10s]
          blame  bad (log)
          log    [plugin:bad] uncaught exception: in a timer (its stack names bad.mjs)
    ");
}

#[test]
fn floods() {
    let report = table(&[
        "stdout", "stderr", "files", "huge", "large", "deep", "requests",
    ]);
    insta::assert_snapshot!(report, @r"
    stdout
      system params before load: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  its process (log)
          log    [plugin:shared] (N lines left out, over 50 a second)
          log    [plugin:shared] xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
      tool: done | done  [a call in 50s]
          blame  its process (log)
          log    [plugin:shared] (N lines left out, over 50 a second)
          log    [plugin:shared] xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
    stderr
      system params before load: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  its process (log)
          log    [plugin:shared] (N lines left out, over 50 a second)
          log    [plugin:shared] xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
      tool: done | done  [a call in 50s]
          blame  its process (log)
          log    [plugin:shared] (N lines left out, over 50 a second)
          log    [plugin:shared] xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...
    files
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad or good (limit)
          log    plugin process shared: it has N files open of the 4096 of limits.plugin_open_files; it is refused more
      tool: done | done  [a call in 10s]
          blame  bad or good (limit)
          log    plugin process shared: it has N files open of the 4096 of limits.plugin_open_files; it is refused more
    huge
      system: bad error good ok | bad error good ok  [a call in 50s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: an answer of 209715246 bytes is over the limit of 67108864
      params: bad error good ok | bad error good ok  [a call in 50s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: an answer of 209715252 bytes is over the limit of 67108864
      before: bad error blocked | bad error blocked  [a call in 50s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 50s]
          blame  bad (its tool)
      load: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  bad (list)
          log    (plugin list) tool `act` was skipped: its description and schema have 209715331 characters, more than 1048576
    large
      system params before: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  nobody
      tool: 4194304 bytes | 4194304 bytes  [a call in 50s]
          blame  nobody
      load: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  bad (list)
          log    (plugin list) tool `act` was skipped: its description and schema have 4194435 characters, more than 1048576
    deep
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: cyclic, or nested deeper than 100 levels
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
    requests
      system params before load: bad ok good ok | bad ok good ok  [a call in 50s]
          blame  nobody
      tool: done | done  [a call in 50s]
          blame  nobody
    ");
}

/// While it loads it is a `spin`: nothing is sent to a process before it has said what it has loaded.
#[test]
fn does_not_read() {
    let report = table(&["reads_nothing"]);
    insta::assert_snapshot!(report, @r"
    reads_nothing
      system params before: bad timeout good ok | bad timeout good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process shared (generation 1) is started again: bad (PLACE) did not answer within 700 ms
      tool: plugin.tool_timeout | plugin.tool_timeout  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process shared (generation 1) is started again: bad (tool:act) did not answer within 700 ms
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.hung, log)
          log    plugin bad: failed: plugin bad did not finish its server within 3000 ms
    ");
}

#[test]
fn takes_all_memory() {
    let report = table(&["allocates", "allocates_objects"]);
    insta::assert_snapshot!(report, @r"
    allocates
      system params before: bad lost good ok | bad lost good ok  [a call in 60s]
          blame  bad (restart)
          log    (a line that names limits.plugin_memory_mb)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 60s]
          blame  bad (restart)
          log    (a line that names limits.plugin_memory_mb)
      load: good ok | good ok  [a call in 50s]
          blame  bad (failed plugin.crashed)
          log    (a line that names limits.plugin_memory_mb)
    allocates_objects
      system params before: bad lost good ok | bad lost good ok  [a call in 60s]
          blame  bad (restart)
          log    (a line that names limits.plugin_memory_mb)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 60s]
          blame  bad (restart)
          log    (a line that names limits.plugin_memory_mb)
      load: good ok | good ok  [a call in 50s]
          blame  bad (failed plugin.crashed)
          log    (a line that names limits.plugin_memory_mb)
    ");
}
