//! False messages of a plugin: protocol messages that are not due, and invalid values.

use super::row::table;

#[test]
fn lies() {
    let report = table(&[
        "protocol_lines",
        "answers_another",
        "answers_early",
        "answers_twice",
        "answers_again",
        "answers_for_another",
        "hello_again",
        "wrong_version",
    ]);
    insta::assert_snapshot!(report, @r#"
    protocol_lines
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  its process (log)
          log    [plugin:shared] Content-Length: 12
          log    [plugin:shared] {"jsonrpc":"2.0","id":1,"result":{}}
          log    [plugin:shared] {}
      tool: done | done  [a call in 10s]
          blame  its process (log)
          log    [plugin:shared] Content-Length: 12
          log    [plugin:shared] {"jsonrpc":"2.0","id":1,"result":{}}
          log    [plugin:shared] {}
    answers_another
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
          log    plugin bad: lost at PLACE: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: an answer to call 987654, which was not made
    answers_early
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a call of a hook was answered without any result
          log    plugin bad: lost at PLACE: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a call of a hook was answered without any result
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a call of a hook was answered without any result
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a call of a hook was answered without any result
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a call of a tool was answered without its output
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a call of a tool was answered without its output
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: loading was answered without the plugins
    answers_twice
      system params before: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (restart); nobody (all apart, restart)
          log    ... the plugin process sent something that is not a JSON-RPC message: a result of handler 0 where that of 1 was due
      tool: done | done  [a call in 10s]
          blame  nobody
      load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
    answers_again
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: done | done  [a call in 10s]
          blame  nobody
    answers_for_another
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
          log    plugin bad: lost at PLACE: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: a result of handler 7 where that of 0 was due
    hello_again
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: done | done  [a call in 10s]
          blame  nobody
    wrong_version
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart); nobody (restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone (exit code 0)
          log    plugin bad: lost at PLACE: the plugin process shared is gone (exit code 0)
          log    plugin process bad (generation 3) is started again: bad (PLACE): the plugin process bad is gone (exit code 0)
          log    plugin process bad: the plugin process bad failed: the plugin process speaks protocol 9.0, this host speaks 1.0
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone (exit code 0)
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart); nobody (restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 3) is started again: tool act of bad: the plugin process bad is gone (exit code 0)
          log    plugin process bad: the plugin process bad failed: the plugin process speaks protocol 9.0, this host speaks 1.0
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone (exit code 0)
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.process, log)
          log    plugin bad: failed: the plugin process bad failed: the plugin process speaks protocol 9.0, this host speaks 1.0
    "#);
}

#[test]
fn breaks_the_channel() {
    let report = table(&[
        "not_json",
        "not_utf8",
        "closes",
        "too_large",
        "half_a_frame",
    ]);
    insta::assert_snapshot!(report, @r"
    not_json
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
          log    plugin bad: lost at PLACE: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2
    not_utf8
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
          log    plugin bad: lost at PLACE: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: the plugin process sent something that is not a JSON-RPC message: invalid unicode code point at line 1 column 69
    closes
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone
          log    plugin bad: lost at PLACE: the plugin process shared is gone
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone
    too_large
      system params before: bad lost good ok | bad lost good ok  [a call in 13.5s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin bad: lost at PLACE: the plugin process bad is gone: a frame of 2147483647 bytes is over the limit of 67108864
          log    plugin bad: lost at PLACE: the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
          log    plugin process bad (generation 2) is started again: bad (PLACE): the plugin process bad is gone: a frame of 2147483647 bytes is over the limit of 67108864
          log    plugin process shared (generation 1) is started again: bad (PLACE): the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      tool: plugin.tool_lost | plugin.tool_lost  [a call in 20s]
          blame  bad (apart, log, restart)
          log    plugin bad: it gets a process of its own
          log    plugin process bad (generation 2) is started again: tool act of bad: the plugin process bad is gone: a frame of 2147483647 bytes is over the limit of 67108864
          log    plugin process shared (generation 1) is started again: tool act of bad: the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.crashed, log)
          log    plugin bad: failed: plugin bad ended its process during server: the plugin process shared is gone: a frame of 2147483647 bytes is over the limit of 67108864
    half_a_frame
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
fn values() {
    let report = table(&[
        "cycle",
        "bigint",
        "nan",
        "surrogate",
        "deletes",
        "types",
        "nulls",
        "input",
        "later",
        "freezes",
        "getter",
    ]);
    insta::assert_snapshot!(report, @r"
    cycle
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: cyclic, or nested deeper than 100 levels
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
    bigint
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: JSON has no BigInt
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
    nan
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
    surrogate
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: � | �  [a call in 10s]
          blame  nobody
    deletes
      system: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: system is gone
      params: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: options is gone
      before: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: args is gone
      tool: done | done  [a call in 10s]
          blame  nobody
      load: good ok | good ok  [a call in 3.5s]
          blame  nobody
    types
      system: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: system is a number now
      params: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: options is a number now
      before: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: args is a number now
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  nobody
    nulls
      system: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: system is null now
      params: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: options is null now
      before: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  bad (log)
          log    plugin bad: its answer was refused at PLACE: args is null now
      tool: plugin.tool | plugin.tool  [a call in 10s]
          blame  bad (its tool)
      load: good ok | good ok  [a call in 3.5s]
          blame  nobody
    input
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: done | done  [a call in 10s]
          blame  nobody
    later
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: done | done  [a call in 10s]
          blame  nobody
    freezes
      system params before load: bad ok good ok | bad ok good ok  [a call in 3.5s]
          blame  nobody
      tool: done | done  [a call in 10s]
          blame  nobody
    getter
      system params: bad error good ok | bad error good ok  [a call in 3.5s]
          blame  bad (log, record)
          log    plugin bad: error at PLACE: answer cannot be serialised: trap
      before: bad error blocked | bad error blocked  [a call in 3.5s]
          blame  bad (record)
      tool: done | done  [a call in 10s]
          blame  nobody
      load: good ok | good ok  [a call in 3.5s]
          blame  bad (failed plugin.load, log)
          log    plugin bad: failed: plugin bad failed at hooks: export `default`: trap
    ");
}
