//! The same runtime at the other end of the same kind of socket, with nothing to do but send back what it gets; or to do
//! the least that a hook's call asks for: read JSON, say whose code is about to run before it runs, and answer in JSON.

use outrigger_sandbox::{Child, Spec, Stdio};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::room::Room;

/// What is said before the answer to a call.
const ENTERED: &str =
    r#"{"jsonrpc":"2.0","method":"plugin.enter","params":{"plugin":"bare","what":"chat.params"}}"#;

const SCRIPT: &str = r#"const { Bun } = globalThis;
const entered = process.argv[2];
const answer = (socket, chunk) => {
  if (chunk[0] !== "{".charCodeAt(0)) return void socket.write(chunk);
  const call = JSON.parse(chunk.toString());
  socket.write(entered);
  socket.write(JSON.stringify(call));
};
if (Bun) {
  await Bun.connect({ fd: 3, socket: { data: answer, close: () => process.exit(0) } });
} else {
  const { Socket } = await import("node:net");
  const socket = new Socket({ fd: 3 });
  socket.on("data", (chunk) => answer(socket, chunk));
  socket.on("close", () => process.exit(0));
}
"#;

pub(crate) struct Bare {
    child: Child,
    frame: Vec<u8>,
    call: Value,
}

pub(crate) async fn start(room: &Room) -> Bare {
    let script = room.folder().join("bare.mjs");
    std::fs::write(&script, SCRIPT).unwrap();
    let spec = Spec::new(&room.runtime.path)
        .args([script.as_os_str(), ENTERED.as_ref()])
        .cwd(room.folder())
        .stdout(Stdio::Null)
        .stderr(Stdio::Null)
        .channel();
    let child = room.spawner.spawn(spec).await.unwrap();
    Bare {
        child,
        frame: vec![b'x'; 200],
        call: json!({"jsonrpc": "2.0", "id": 1, "params": {"text": "x".repeat(150)}}),
    }
}

impl Bare {
    /// The same bytes back.
    pub(crate) async fn ping(&mut self) {
        let channel = self.child.channel.as_mut().unwrap();
        channel.write_all(&self.frame).await.unwrap();
        let mut back = [0; 200];
        channel.read_exact(&mut back).await.unwrap();
    }

    /// JSON back, and before it who is entered, which the host has to know while nothing of it has run.
    pub(crate) async fn call(&mut self) {
        let channel = self.child.channel.as_mut().unwrap();
        let sent = serde_json::to_vec(&self.call).unwrap();
        channel.write_all(&sent).await.unwrap();
        let mut back = vec![0; ENTERED.len() + sent.len()];
        channel.read_exact(&mut back).await.unwrap();
        let (entered, answer) = back.split_at(ENTERED.len());
        let entered: Value = serde_json::from_slice(entered).unwrap();
        assert_eq!(entered["method"], "plugin.enter");
        assert_eq!(serde_json::from_slice::<Value>(answer).unwrap(), self.call);
    }
}
