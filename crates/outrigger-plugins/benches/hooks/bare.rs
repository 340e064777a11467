//! The same runtime at the other end of the same kind of socket, with nothing to do but send back what it gets.

use outrigger_sandbox::{Child, Spec, Stdio};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::room::Room;

const SCRIPT: &str = r#"const { Bun } = globalThis;
if (Bun) {
  await Bun.connect({ fd: 3, socket: { data: (socket, chunk) => void socket.write(chunk), close: () => process.exit(0) } });
} else {
  const { Socket } = await import("node:net");
  const socket = new Socket({ fd: 3 });
  socket.on("data", (chunk) => socket.write(chunk));
  socket.on("close", () => process.exit(0));
}
"#;

pub(crate) struct Bare {
    child: Child,
    frame: Vec<u8>,
}

pub(crate) async fn start(room: &Room) -> Bare {
    let script = room.folder().join("bare.mjs");
    std::fs::write(&script, SCRIPT).unwrap();
    let spec = Spec::new(&room.runtime.path)
        .args([script.as_os_str()])
        .cwd(room.folder())
        .stdout(Stdio::Null)
        .stderr(Stdio::Null)
        .channel();
    let child = room.spawner.spawn(spec).await.unwrap();
    Bare {
        child,
        frame: vec![b'x'; 200],
    }
}

impl Bare {
    pub(crate) async fn ping(&mut self) {
        let channel = self.child.channel.as_mut().unwrap();
        channel.write_all(&self.frame).await.unwrap();
        let mut back = [0; 200];
        channel.read_exact(&mut back).await.unwrap();
    }
}
